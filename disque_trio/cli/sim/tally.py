"""Sums over a scenario's seeds: a sweep of a million seeds does not keep every result."""

from collections import Counter

import attrs

from disque_trio.cli.sim.execution import Result
from disque_trio.sim.scenarios.scenario import Scenario

SUMS = ("added", "delivered", "lost", "steps", "end")


@attrs.define
class Tally:
    """One scenario so far."""

    scenario: Scenario
    seeds: set[int] = attrs.Factory(set)
    sums: Counter[str] = attrs.Factory(Counter)
    seconds: float = 0.0
    marks: Counter[str] = attrs.Factory(Counter)
    duplicates: Counter[str] = attrs.Factory(Counter)
    _failures: dict[int, Result] = attrs.Factory(dict)

    def add(self, result: Result) -> None:
        """Count it. A second result of a seed counts only if it is the seed's first failure."""
        if not result.is_ok:
            self._failures.setdefault(result.seed, result)
        if result.seed in self.seeds:
            return
        self.seeds.add(result.seed)
        for name in SUMS:
            self.sums[name] += getattr(result, name)
        self.seconds += result.seconds
        self.marks.update(result.marks)
        self.duplicates.update(result.duplicates)

    @property
    def failed(self) -> list[Result]:
        """The seeds that failed, in the order in which they were found."""
        return list(self._failures.values())

    @property
    def gaps(self) -> list[str]:
        """What should have been seen but was not."""
        return [*(["no job was delivered"] if self.delivers_nothing else []), *self.missing]

    @property
    def delivers_nothing(self) -> bool:
        """Was no job delivered, so that nothing was tested?"""
        return bool(self.seeds) and not self.sums["delivered"]

    @property
    def missing(self) -> list[str]:
        """Marks that the scenario expects of some seed, and that none has hit."""
        expected = self.scenario.expect.sometimes if self.seeds else ()
        return [mark for mark in expected if not self.marks[mark]]
