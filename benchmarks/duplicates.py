"""Duplicate deliveries by cause and number of copies: `python -m benchmarks duplicates`.

A scenario's plans are run with REPLICATE 1, 2 and 3 in all of their ADDJOBs, and otherwise
unchanged; so the faults, the adds and the workers are the same in the three columns.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.output import add_json, write_json
from disque_trio.cli.sim.options import SEEDS
from disque_trio.sim.checkers.verdict import judge
from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.sim.scenarios.scenario import Scenario

COPIES: Final = (1, 2, 3)
DEFAULTS: Final = ("split-brain-halves", "kill-restart")
FOLDER: Final = Path(__file__).parents[1] / "scenarios"


@attrs.define
class Tally:
    """The sum of the results of many seeds."""

    seeds: int = 0
    jobs: int = 0
    deliveries: int = 0
    cuts: int = 0
    in_cuts: int = 0
    lost: int = 0
    excused: int = 0
    violated: int = 0
    causes: Counter[str] = attrs.Factory(Counter)

    def add(self, scenario: Scenario, seed: int, copies: int) -> None:
        """Run one more seed."""
        plan = expand(scenario, seed)
        adds = tuple(attrs.evolve(add, replicate=copies) for add in plan.adds)
        plan = attrs.evolve(plan, adds=adds)
        bench = judge(plan)
        simulate(plan, bench.see)
        verdict = bench.finish()
        self.seeds += 1
        self.jobs += verdict.metrics.jobs
        self.deliveries += verdict.deliveries
        self.cuts += len(verdict.metrics.cuts)
        self.in_cuts += sum(cut.duplicates for cut in verdict.metrics.cuts)
        self.lost += verdict.lost
        self.excused += verdict.excused
        self.violated += not verdict.ok
        self.causes.update(verdict.duplicates)


def main(argv: Sequence[str]) -> int:
    """Run, and print; the exit code."""
    options = _options(argv)
    console = Console(highlight=False)
    facts: dict[str, dict[int, Tally]] = {}
    for path in options.files or [FOLDER / f"{name}.toml" for name in DEFAULTS]:
        scenario = load(path)
        tallies = facts[scenario.name] = {copies: Tally() for copies in COPIES}
        for seed in track(options.seeds, scenario.name, console=console, transient=True):
            for copies, tally in tallies.items():
                tally.add(scenario, seed, copies)
        console.print(_table(scenario.name, options.seeds, tallies))
    plain = {
        name: {copies: attrs.asdict(tally) for copies, tally in tallies.items()}
        for name, tallies in facts.items()
    }
    write_json(options.json, plain)
    return int(any(tally.violated for tallies in facts.values() for tally in tallies.values()))


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks duplicates",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="*", type=Path, help=f"scenarios ({', '.join(DEFAULTS)})")
    parser.add_argument("--seeds", type=SEEDS, default=range(50), metavar="A:B")
    add_json(parser)
    return parser.parse_args(argv)


def _table(name: str, seeds: range, tallies: dict[int, Tally]) -> Table:
    all_ = list(tallies.values())
    title = f"{name}, seeds {seeds.start}:{seeds.stop}"
    table = Table("", *(f"REPLICATE {copies}" for copies in tallies), title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    rows = [
        ("jobs", [f"{tally.jobs:,}" for tally in all_]),
        ("lost", [f"{tally.lost:,}" for tally in all_]),
        ("excused: all copies destroyed", [f"{tally.excused:,}" for tally in all_]),
        ("runs violated", [f"{tally.violated:,}" for tally in all_]),
        ("cuts", [f"{tally.cuts:,}" for tally in all_]),
        ("duplicates per cut", [_per(tally.in_cuts, tally.cuts) for tally in all_]),
    ]
    rows.extend(
        (f"{cause} per 1,000 jobs", [_per(1000 * each.causes[cause], each.jobs) for each in all_])
        for cause in sorted({cause for tally in all_ for cause in +tally.causes})
    )
    for about, cells in rows:
        table.add_row(about, *cells)
    return table


def _per(count: float, whole: float) -> str:
    return f"{count / whole:,.2f}" if whole else "–"
