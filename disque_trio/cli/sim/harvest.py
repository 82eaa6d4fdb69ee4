"""What a sweep brings into a lake beside its results: coverage, and whole runs of some seeds.

The lake itself is `pipeline.lake`, which needs pyarrow and is imported only when asked for.
"""

from importlib import import_module
from typing import Any

import attrs

from disque_trio.cli.sim.execution import REPEATABLE, Result, Watcher
from disque_trio.pipeline.coverage import Coverage
from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios import plan_file
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.tracing.rows import Row


@attrs.frozen
class Harvest:
    """Where to, and how much."""

    lake: str
    """Its path: the same folder wherever seeds are run."""
    sweep: str
    """Names this sweep among all."""
    version: str
    """Of the code and the scenario."""
    share: float
    """Of the seeds that pass, whose rows are kept. Those of failures always are."""


@attrs.frozen
class Crop:
    """What a seed brings in."""

    run: str
    """Its name in the lake."""
    coverage: dict[str, int]
    plan: str | None = None
    """If its rows are kept."""
    parts: tuple[Any, ...] = ()
    """Files that were written for this seed and those before it, of those that were run with it."""
    is_last: bool = True
    """Of those that were run with it. Only then do files and results belong together."""


class Reaper:
    """Harvests the seeds of one scenario that are run together: their rows go into one file."""

    def __init__(self, harvest: Harvest, scenario: str, name: str) -> None:
        """`name` is that of the file: whoever does this work again writes the same."""
        self._share = harvest.share
        self._version = harvest.version
        self._scenario = scenario
        self.barn: Any = import_module("disque_trio.pipeline.harvest").Barn(
            harvest.lake, scenario, f"{harvest.sweep}-{name}"
        )
        """To be opened while seeds are run, and closed before its `parts` count."""
        self._coverage = Coverage()
        self._rows: list[Row] = []

    def watchers(self, seed: int, engine: str) -> list[Watcher]:
        """Who watches the run of the next seed."""
        self._coverage, self._rows = Coverage(), []
        if engine in REPEATABLE and not self._is_chosen(seed):
            return [self._coverage.see]
        return [self._coverage.see, self.keep]

    def keep(self, row: Row) -> None:
        """One of the rows that go into the lake."""
        self._rows.append(row)

    def lacks_rows_of(self, result: Result) -> bool:
        """Whether the run should be seen once more. One that hangs would do so again."""
        hangs = any(finding.property == "hang" for finding in result.findings)
        is_seen = self._rows or result.engine not in REPEATABLE
        return not (result.is_ok or is_seen or hangs)

    def reap(self, plan: Plan, result: Result) -> Crop:
        """The run is over."""
        # Other code may come to the same history: that is another run.
        run = self.barn.name_of(self._version, str(result.seed), result.digest)
        text = None
        if not result.is_ok or self._is_chosen(result.seed):
            self.barn.bring(plan, run, self._rows)
            text = plan_file.dump(plan)
        self._rows = []
        return Crop(run, dict(self._coverage.counts), text)

    def _is_chosen(self, seed: int) -> bool:
        """By lot, which falls the same way every time."""
        return stream(seed, "harvest", self._scenario).random() < self._share
