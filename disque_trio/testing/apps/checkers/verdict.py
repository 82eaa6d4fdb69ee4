"""Checks a run of an app."""

import attrs

from disque_trio.sim.checkers.case import Violation
from disque_trio.sim.checkers.verdict import Verdict
from disque_trio.sim.scenarios.apps import AppsPlan
from disque_trio.testing.apps.checkers import (
    continuations,
    ends,
    flows,
    outcomes,
    processes,
    ticks,
    timing,
    waiters,
)
from disque_trio.testing.apps.checkers.history import History
from disque_trio.tracing.rows import Row


class AppJudge:
    """Checks all rows of one run."""

    def __init__(self, plan: AppsPlan) -> None:
        self.history = History(plan)

    def see(self, row: Row) -> None:
        """Process the next row."""
        self.history.see(row)
        if row.kind == "app.ended":
            processes.see(self.history, row)

    def joined(self, verdict: Verdict) -> Verdict:
        """The verdict on the nodes, together with violations by the app."""
        violations = sorted((*verdict.violations, *self.finish()), key=lambda found: found.time)
        return attrs.evolve(verdict, ok=not violations, violations=tuple(violations))

    def finish(self) -> list[Violation]:
        """Finish the run. Returns the violations in order of time."""
        history = self.history
        history.finish()
        for each in (ends, outcomes, timing, continuations, flows, waiters, ticks, processes):
            each.check(history)
        timing.check_crashes(history)
        return sorted(history.violations, key=lambda found: found.time)
