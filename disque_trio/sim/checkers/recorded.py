"""Judge a run whose rows were recorded, in a trace file or a lake."""

import traceback
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import attrs

from disque_trio.sim.checkers.case import Violation
from disque_trio.sim.checkers.verdict import Verdict, judge
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.tracing.rows import Row


@attrs.frozen
class Judged:
    """The result of judging a recorded run."""

    violations: tuple[Violation, ...]
    verdict: Verdict | None
    """None if the judge raised an exception; the first violation, S12, then describes it."""


def judged(plan: Plan, rows: Iterable[Row], *, is_live: bool) -> Judged:
    """Judge the rows of a run, in order. `is_live`: the rows are from live nodes (`merge_live`)."""
    judging = judge(plan, is_live=is_live)
    of_app = app_judges(plan)
    try:
        for row in rows:
            judging.see(row)
            for each in of_app:
                each.see(row)
        verdict = judging.finish()
        for each in of_app:
            verdict = each.joined(verdict)
    except Exception as error:  # rows that no run writes, as in a damaged trace
        failure = Violation("S12", judging.case.now, "", "", summary(error))
        return Judged((failure, *judging.case.violations), None)
    return Judged(verdict.violations, verdict)


def app_judges(plan: Plan) -> list[Any]:
    """Return the judges of the app of the plan (`testing.apps.checkers.verdict.AppJudge`), if
    any."""
    if plan.apps is None:
        return []
    return [import_module("disque_trio.testing.apps.checkers.verdict").AppJudge(plan.apps)]


def summary(error: Exception) -> str:
    """Return the error and the innermost places of its traceback, on one line."""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    places = " < ".join(
        f"{frame.filename.rpartition('disque_trio/')[2]}:{frame.lineno} {frame.name}"
        for frame in reversed(frames)
    )
    return f"{type(error).__name__}: {error} ({places})"
