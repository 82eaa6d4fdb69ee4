"""The speed of queues as sources and sinks of Spark: `python -m benchmarks connector`.

Three nodes on loopback and Spark on `local[2]`. Each case runs twice: first small, so that all is
warm. Shown are rows a second by the clock, which depends on what else the machine does, and CPU
microseconds of a row by process, which hardly depend on it: from their sum follows what two quiet
cores can do at most.
"""

import argparse
import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import attrs
from rich.console import Console
from rich.table import Table

from benchmarks import meters
from benchmarks.output import add_json, split, write_json
from disque_trio.pipeline import session
from tests.cluster.processes import CALM, Cluster, Fleet
from tests.cluster.talk import connection

BODY: Final = b"x" * 200
_FILLED: Final = 500
"""Jobs that are added before replies are read."""
_WARM: Final = 10
"""The share of the rows that the first run has, as a divisor."""
_LOOK_S: Final = 0.3
PARTS: Final = ("driver", "source", "tasks", "plans", "JVM", "nodes")
"""Whose CPU time is told apart. `plans`: Python processes that live for a batch at most."""


@attrs.define(eq=False)
class Bench:
    """What all cases share."""

    spark: Any
    cluster: Cluster
    folder: Path
    extra: dict[str, str]
    """Options of the source."""
    runs: int = 0

    def options(self, queue: str) -> dict[str, str]:
        """Those of both sides."""
        nodes = ",".join(f"127.0.0.1:{server.port}" for server in self.cluster.servers)
        return {"nodes": nodes, "queue": queue, "timeout": "60"}

    def place(self) -> str:
        """A new folder."""
        self.runs += 1
        return str(self.folder / str(self.runs))


Prepared = Callable[[], None]
Case = Callable[[Bench, int, int], Prepared]
"""Prepares a case for so many rows and replicas; the result is what is measured."""


def source(bench: Bench, rows: int, replicas: int) -> Prepared:
    """From a queue into Parquet files."""
    options = {**bench.options(f"source-{bench.place()}"), **bench.extra}
    _fill(bench.cluster, options["queue"], rows, replicas)
    frame = bench.spark.readStream.format("disque").options(**options).load()
    return partial(_run, bench, frame.writeStream.format("parquet").option("path", bench.place()))


def batch_sink(bench: Bench, rows: int, replicas: int) -> Prepared:
    """From a table into a queue."""
    frame = bench.spark.range(0, rows, 1, 2).selectExpr(f"repeat('x', {len(BODY)}) as body")
    writer = frame.write.format("disque").mode("append")
    writer = writer.options(replicate=replicas, **bench.options(f"batch-{replicas}"))
    return partial(writer.save)


def stream_sink(bench: Bench, rows: int, replicas: int) -> Prepared:
    """From Parquet files into a queue, with the keys of the default."""
    files = bench.place()
    frame = bench.spark.range(0, rows, 1, 16).selectExpr(f"repeat('x', {len(BODY)}) as body")
    frame.write.parquet(files)
    stream = bench.spark.readStream.schema("body string").option("maxFilesPerTrigger", 4)
    options = {"replicate": replicas, **bench.options(f"stream-{replicas}")}
    writer = stream.parquet(files).writeStream.format("disque").options(**options)
    return partial(_run, bench, writer)


CASES: Final[dict[str, Case]] = {
    "source": source,
    "batch-sink": batch_sink,
    "stream-sink": stream_sink,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and show."""
    options = _options(argv)
    console = Console(highlight=False)
    cases = split("--only", options.only) or list(CASES)
    extra = dict(word.split("=", 1) for word in options.option)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name, _bench(Path(name), extra) as bench:
        for case, replicas in product(cases, options.replicate):
            title = f"{case}, REPLICATE {replicas}"
            CASES[case](bench, max(options.rows // _WARM, 1), replicas)()
            found[title] = _measured(bench, CASES[case](bench, options.rows, replicas))
            console.print(f"{title}: {options.rows / found[title]['seconds']:,.0f} rows/s")
    console.print(_table(found, options.rows))
    write_json(options.json, {"rows": options.rows, "machine": meters.machine(), "cases": found})
    return 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks connector")
    parser.add_argument("--rows", type=int, default=200_000, help="of each case (200000)")
    parser.add_argument("--only", default="", metavar="CASE,CASE", help=", ".join(CASES))
    parser.add_argument("--replicate", type=int, nargs="+", default=[1, 2], help="(1 2)")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="of the source"
    )
    add_json(parser)
    return parser.parse_args(argv)


@contextlib.contextmanager
def _bench(folder: Path, extra: dict[str, str]) -> Iterator[Bench]:
    fleet = Fleet(folder / "servers")
    try:
        with session.running("local[2]") as spark:
            yield Bench(spark, fleet.cluster(3, *CALM), folder, extra)
    finally:
        fleet.close()


def _fill(cluster: Cluster, queue: str, jobs: int, replicas: int) -> None:
    """Add jobs to all nodes alike."""
    for number, server in enumerate(cluster.servers):
        left = jobs // 3 + (number < jobs % 3)
        with connection(server.port) as client:
            while left:
                some = min(left, _FILLED)
                for _ in range(some):
                    client.send("ADDJOB", queue, BODY, 5000, "REPLICATE", replicas)
                for _ in range(some):
                    client.receive()
                left -= some


def _run(bench: Bench, writer: Any) -> None:
    """Run a query to its end."""
    writer = writer.option("checkpointLocation", bench.place())
    writer.trigger(availableNow=True).start().awaitTermination()


def _measured(bench: Bench, prepared: Prepared) -> dict[str, Any]:
    """The seconds, and the CPU seconds by process."""
    with _Watch([server.pid for server in bench.cluster.servers]) as watch:
        began = time.monotonic()
        prepared()
        took = time.monotonic() - began
    return {"seconds": took, "cpu": watch.spent()}


class _Watch:
    """Adds up CPU time. Looks now and then, for Python processes end with their query."""

    def __init__(self, nodes: Sequence[int]) -> None:
        self._nodes = nodes
        self._jvm: int = session.spark_module("pyspark").SparkContext._gateway.proc.pid
        self._first: dict[tuple[str, int], float] = {}
        self._last: dict[tuple[str, int], float] = {}
        self._watching_s = 0.0
        """What it costs itself."""
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> "_Watch":
        self._first = self._last = self._seen()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._last = self._last | self._seen()

    def _work(self) -> None:
        while not self._is_over.wait(_LOOK_S):
            self._last = self._last | self._seen()
            self._watching_s = time.thread_time()

    def spent(self) -> dict[str, float]:
        """CPU seconds by part."""
        found = dict.fromkeys(PARTS, 0.0)
        for (part, pid), seconds in self._last.items():
            found[part] += seconds - self._first.get((part, pid), 0.0)
        return found

    def _seen(self) -> dict[tuple[str, int], float]:
        found = {("nodes", pid): meters.cpu_s([pid]) for pid in self._nodes}
        found["driver", 0] = time.process_time() - self._watching_s
        found["JVM", 0] = _own_s(self._jvm)
        for pid in _children(self._jvm):
            with contextlib.suppress(OSError):  # it has ended
                if part := _part(pid):
                    found[part, pid] = _own_s(pid)
        return found


def _children(parent: int) -> Iterator[int]:
    """The process's descendants."""
    with contextlib.suppress(OSError):  # it has ended
        for task in Path(f"/proc/{parent}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                yield child
                yield from _children(child)


def _own_s(pid: int) -> float:
    """CPU seconds of a process without its children."""
    _, _, facts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
    return sum(map(int, facts.split()[11:13])) / os.sysconf("SC_CLK_TCK")


def _part(pid: int) -> str:
    """Whose time it is; empty for a process that ends."""
    command = Path(f"/proc/{pid}/cmdline").read_text()
    if not command:
        return ""
    if "streaming_source" in command:
        return "source"
    return "tasks" if "daemon" in command else "plans"


def _table(found: dict[str, Any], rows: int) -> Table:
    table = Table(title=f"{rows:,} rows of {len(BODY)} bytes", box=None, header_style="bold")
    table.add_column("CPU us of a row")
    for name in (*PARTS, "all", "rows/s of two cores", "rows/s here"):
        table.add_column(name, justify="right")
    for title, facts in found.items():
        spent = [facts["cpu"][part] / rows * 1e6 for part in PARTS]
        rates = (2e6 / sum(spent), rows / facts["seconds"])
        figures = [*(f"{each:.1f}" for each in (*spent, sum(spent))), *(f"{r:,.0f}" for r in rates)]
        table.add_row(title, *figures)
    return table
