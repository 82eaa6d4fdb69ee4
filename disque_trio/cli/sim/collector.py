"""What a sweep stores in a lake beside its results: coverage, and all rows of some runs.

The lake itself is `pipeline.lake`. It needs pyarrow, so it is imported only for `--lake`.
"""

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import attrs

from disque_trio.cli.sim.execution import REPEATABLE, Result, Watcher
from disque_trio.pipeline.coverage import Coverage
from disque_trio.sim.checkers.verdict import Verdict
from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios import plan_file
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.tracing.rows import Row


@attrs.frozen
class CollectorOptions:
    """Where rows are stored, and of which runs."""

    lake: str
    """Its path, the same on every machine that runs seeds."""
    sweep: str
    """The name of this sweep, which no other has."""
    version: str
    """Of the code and the scenario."""
    share: float
    """The share of passing seeds whose rows are kept. Rows of failures always are."""
    first: int | None = None
    """A seed whose rows are kept, too."""


@attrs.frozen
class Collected:
    """What was collected of one seed."""

    run: str
    """The name of its run in the lake."""
    coverage: dict[str, int]
    plan: str | None = None
    """If its rows are kept."""
    parts: tuple[Any, ...] = ()
    """Files that were written for this seed and for those that were run with it before."""
    is_last: bool = True
    """Of the seeds that were run together: then results and files are complete."""


class Collector:
    """Collects seeds of one scenario that are run together: their rows go into one file."""

    def __init__(self, collecting: CollectorOptions, scenario: str, name: str) -> None:
        """`name` is the name of the file: a repeated task writes the same file again."""
        self._collecting = collecting
        self._version = collecting.version
        self._scenario = scenario
        self.writer: Any = import_module("disque_trio.pipeline.run_writer").RunWriter(
            collecting.lake, scenario, f"{collecting.sweep}-{name}"
        )
        """Open while seeds are run; `parts` is complete once it is closed."""
        self._coverage = Coverage()
        self._rows: list[Row] = []

    def watchers(self, seed: int, engine: str) -> list[Watcher]:
        """The watchers of the next seed's run."""
        self._coverage, self._rows = Coverage(), []
        if engine in REPEATABLE and not self._is_chosen(seed):
            return [self._coverage.see]
        return [self._coverage.see, self.keep]

    def keep(self, row: Row) -> None:
        """One of the rows that go into the lake."""
        self._rows.append(row)

    def lacks_rows_of(self, result: Result) -> bool:
        """Must the run be repeated for its rows? One that hangs would hang again."""
        hangs = any(finding.property == "hang" for finding in result.findings)
        is_seen = self._rows or result.engine not in REPEATABLE
        return not (result.is_ok or is_seen or hangs)

    def collect(self, plan: Plan, result: Result, verdict: Verdict | None) -> Collected:
        """The run is over. `verdict` is None if it failed before its end."""
        # The same history from other code is another run.
        run = self.writer.name_of(self._version, str(result.seed), result.digest)
        text = None
        if not result.is_ok or self._is_chosen(result.seed):
            self.writer.write(plan, run, self._rows, verdict)
            text = plan_file.dump(plan)
        self._rows = []
        return Collected(run, dict(self._coverage.counts), text)

    def _is_chosen(self, seed: int) -> bool:
        return seed == self._collecting.first or is_drawn(
            seed, self._scenario, self._collecting.share
        )


def is_drawn(seed: int, scenario: str, share: float) -> bool:
    """Does the seed belong to this share? It is drawn from the seed, so the same every time."""
    return stream(seed, "harvest", scenario).random() < share


def first_kept(seeds: Iterable[int], scenario: str, share: float) -> int | None:
    """A seed of these that is kept, so that a scenario of few seeds has a traced run; None without
    a share."""
    if not share:
        return None
    first = None
    for seed in seeds:
        first = seed if first is None else first
        if is_drawn(seed, scenario, share):
            return seed
    return first
