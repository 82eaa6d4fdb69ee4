"""`make histories SEEDS=200`: plays seeds, and judges each run by its rows and by what its clients
saw. Prints where the two judges disagree, and how much there was to judge."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Final

import attrs
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from disque_trio.sim.histories.judge import by_property
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.terminal.options import whole
from tests.arguments import scenario
from tests.sim.histories.played import judged

_FIGURES: Final = (
    "calls", "added", "unknown", "deliveries", "redelivered", "after_ack", "open", "keys",
    "unjudged_keys", "faults",
)  # fmt: skip


@attrs.frozen(kw_only=True)
class Both:
    """What the judges say of one run."""

    path: str
    seed: int
    is_right: bool
    """By its rows."""
    broken: dict[str, int]
    """By its history: how often each property was broken."""
    figures: Counter[str]


def main(arguments: list[str]) -> int:
    """The exit status: 1 if a run is wrong by either judge."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim.histories", description=__doc__)
    parser.add_argument("files", nargs="*", default=["scenarios/everything.toml"])
    parser.add_argument("--seeds", type=whole(1), default=200, help="how many of each file (200)")
    parser.add_argument("--processes", type=whole(1), default=2, help="how many at once (2)")
    options = parser.parse_args(arguments)
    for path in options.files:
        try:
            scenario(path)
        except argparse.ArgumentTypeError as error:
            parser.error(str(error))
    console = Console()
    found = list(_played(console, options.files, options.seeds, options.processes))
    console.print(_table(found))
    return int(any(each.broken or not each.is_right for each in found))


def _played(console: Console, files: list[str], seeds: int, processes: int) -> Iterable[Both]:
    with Progress(console=console) as progress, ProcessPoolExecutor(processes) as pool:
        task = progress.add_task("runs", total=len(files) * seeds)
        runs = [pool.submit(_both, path, seed) for seed in range(seeds) for path in files]
        for run in as_completed(runs):
            both = run.result()
            progress.advance(task)
            if both.broken or not both.is_right:
                rows = "passed" if both.is_right else "violated"
                told = ", ".join(f"{name} {times}" for name, times in both.broken.items())
                console.print(
                    f"{both.path} seed {both.seed}: by rows {rows}, by history {told or 'passed'}",
                    highlight=False,
                )
            yield both


def _both(path: str, seed: int) -> Both:
    is_right, verdict = judged(expand(load(path), seed))
    return Both(
        path=path,
        seed=seed,
        is_right=is_right,
        broken=by_property(verdict.violations),
        figures=Counter({name: getattr(verdict, name) for name in _FIGURES}),
    )


def _table(found: list[Both]) -> Table:
    table = Table("", "", title=f"{len(found):,} runs", show_header=False)
    table.columns[1].justify = "right"
    for name in _FIGURES:
        table.add_row(name.replace("_", " "), f"{sum(each.figures[name] for each in found):,}")
    agree = sum(each.is_right != bool(each.broken) for each in found)
    table.add_row("judges agree", f"{agree:,}")
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
