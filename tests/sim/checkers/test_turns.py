"""S37: the groups of a queue take turns."""

from typing import Any

import attrs
import pytest

from disque_trio.sim.checkers.verdict import judge
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.statemachine.groups import Groups
from disque_trio.statemachine.job import Job
from tests.sim.mutants.plans.others import grouped
from tests.sim.runs import play


def found(plan: Plan) -> tuple[dict[str, int], set[str]]:
    """How often each property was checked, and those that do not hold."""
    judging = judge(plan)
    for row in play(plan):
        judging.see(row)
    verdict = judging.finish()
    return dict(verdict.checks), {each.property for each in verdict.violations}


def test_turns_are_checked_and_hold() -> None:
    checks, broken = found(grouped(1))

    assert checks["S37"] > 50
    assert not broken


def test_without_groups_nothing_is_checked() -> None:
    base = grouped(1)
    plain = tuple(attrs.evolve(add, group=None) for add in base.adds)

    assert "S37" not in found(attrs.evolve(base, adds=plain))[0]


@pytest.mark.pure  # a method is replaced, which the compiled form does not look up
def test_a_group_that_is_served_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    take = Groups.take

    def keeps_its_turn(groups: Any, job: Job) -> bool:
        level = groups.levels[0]
        is_here = take(groups, job)
        if is_here and level.ring[-1].group == job.group:
            level.ring.rotate(1)
        return is_here

    monkeypatch.setattr(Groups, "take", keeps_its_turn)

    assert found(grouped(1))[1] == {"S37"}
