"""The speed of ingesting and querying a lake: `python -m benchmarks lake`.

Two scenarios are simulated once, and their traces are copied under new seeds until there are enough
rows, so that the rows are realistic. They are ingested as files of JSON lines; then each view is
computed, and its result discarded, and the figures of the report are asked. Both elapsed time and
CPU time are measured.
"""

import argparse
import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks.output import add_json, write_json
from disque_trio.pipeline import session
from disque_trio.pipeline.lake import asking
from disque_trio.pipeline.lake.compaction import compact
from disque_trio.pipeline.lake.ingestion import ingest
from disque_trio.pipeline.lake.store import Lake
from disque_trio.pipeline.lake.views import VIEWS
from disque_trio.pipeline.report import facts
from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.sim.traces import files as traces_files
from disque_trio.tracing.rows import Row

SCENARIOS: Final = ("split-brain-halves", "kill-restart")
_FOLDER: Final = Path(__file__).parents[1] / "scenarios"
_OF_SWEEPS: Final = ("seeds", "failures", "causes")
"""Views over results, of which there are none here. `causes` is measured, as it then uses the
rows."""
_ASKED: Final = (
    *(name for name in VIEWS if name not in _OF_SWEEPS),
    "causes",
)
_STEPS: Final = ("ingest", "compact", *_ASKED, "report")

Measures = dict[str, tuple[float, float]]
"""Elapsed seconds and CPU seconds, by step."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and show."""
    options = _options(argv)
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        lake, files, rows = _lake(options, Path(name))
        console.print(f"{rows:,} rows, {len(files)} files to ingest")
        with session.running(options.master, memory=options.memory) as spark:
            found = _measured(_works(spark, lake, files), spark, options.only, console)
    console.print(_table(found, rows))
    measures = {name: {"seconds": took, "cpu": cpu} for name, (took, cpu) in found.items()}
    write_json(options.json, {"rows": rows, "measures": measures})
    return 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks lake")
    parser.add_argument("--rows", type=int, default=10_000_000, help="how many (10000000)")
    parser.add_argument("--master", default="local[2]", help="where Spark runs (local[2])")
    parser.add_argument("--memory", default="4g", help="of Spark (4g)")
    parser.add_argument("--folder", help="where there is room: 300 bytes for each row")
    parser.add_argument("--lake", help="ask this lake instead of making one")
    parser.add_argument("--only", nargs="+", choices=_STEPS, metavar="STEP", help="such as jobs")
    add_json(parser)
    return parser.parse_args(argv)


def _lake(options: argparse.Namespace, folder: Path) -> tuple[Lake, list[str], int]:
    """The lake, the files that it lacks yet, and how many rows it has with them."""
    if options.lake is not None:
        lake = Lake.open(options.lake)
        return lake, [], sum(part.rows for part in lake.parts("rows"))
    files, rows = _files(folder, options.rows)
    return Lake.open(f"{folder}/lake", create=True), files, rows


def _files(folder: Path, wanted: int) -> tuple[list[str], int]:
    """Trace files with at least so many rows in all."""
    originals = [_trace(folder, scenario) for scenario in SCENARIOS]
    files: list[str] = []
    rows, seed = 0, 0
    while rows < wanted:
        for scenario, lines, count in originals:
            plan = expand(load(str(_FOLDER / f"{scenario}.toml")), seed)
            path = folder / f"{scenario}-{seed}.jsonl"
            traces_files.create(str(path), plan).close()
            with path.open("ab") as file:
                file.write(lines)
            files.append(str(path))
            rows += count
        seed += 1
    return files, rows


def _trace(folder: Path, scenario: str) -> tuple[str, bytes, int]:
    """A run's rows as lines, and how many there are."""
    plan = expand(load(str(_FOLDER / f"{scenario}.toml")), 3)
    path = folder / "original.jsonl"
    writer = traces_files.create(str(path), plan)
    rows: list[Row] = []
    simulate(plan, rows.append)
    writer.write(rows)
    writer.close()
    _, _, lines = path.read_bytes().partition(b"\n")
    path.unlink()
    return scenario, lines, len(rows)


def _measured(
    works: Iterable[tuple[str, Callable[[], object]]],
    spark: Any,
    only: Sequence[str] | None,
    console: Console,
) -> Measures:
    found: Measures = {}
    spark.range(10).mapInArrow(lambda batches: batches, "id bigint").collect()  # all is warm now
    for name, work in works:
        if only is not None and name not in only:
            continue
        began, spent = time.monotonic(), _cpu_s()
        work()
        found[name] = (time.monotonic() - began, _cpu_s() - spent)
        console.print(f"{name}: {found[name][0]:.1f} s, {found[name][1]:.1f} of a processor")
    return found


def _works(
    spark: Any, lake: Lake, files: Sequence[str]
) -> Iterator[tuple[str, Callable[[], object]]]:
    if files:
        yield "ingest", partial(ingest, spark, lake, files)
        yield "compact", partial(compact, lake)
    for view in _ASKED:
        yield view, partial(_ask, spark, lake, view)
    yield "report", partial(facts.ask, spark, lake)


def _ask(spark: Any, lake: Lake, view: str) -> None:
    asking.attach(spark, lake, view)
    spark.table(view).write.format("noop").mode("overwrite").save()


def _cpu_s() -> float:
    """CPU seconds of the JVM and the Python processes that it has started, ended ones included."""
    ours, ticks = {_jvm()}, 0
    for pid in sorted(int(path.name) for path in Path("/proc").glob("[0-9]*")):
        with contextlib.suppress(OSError):  # it has ended
            _, _, facts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
            fields = facts.split()
            if pid in ours or int(fields[1]) in ours:
                ours.add(pid)
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _jvm() -> int:
    context = session.spark_module("pyspark").SparkContext
    pid: int = context._gateway.proc.pid
    return pid


def _table(found: Measures, rows: int) -> Table:
    table = Table(title=f"{rows:,} rows", box=None, header_style="bold")
    table.add_column("")
    for name in ("seconds", "of processors", "rows a second"):
        table.add_column(name, justify="right")
    for name, (took, cpu) in found.items():
        table.add_row(name, f"{took:,.1f}", f"{cpu:,.0f}", f"{rows / took:,.0f}")
    return table
