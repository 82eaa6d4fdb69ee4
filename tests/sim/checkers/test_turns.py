"""S37: the groups of a queue take turns."""

from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from disque_trio.sim.checkers.verdict import judge
from disque_trio.sim.scenarios.plan import Add, Plan
from disque_trio.statemachine.groups import Groups
from disque_trio.statemachine.job import Job
from tests.sim.checkers.trace import JOB, Trace, broken
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


OF_GROUP = "D-01234567-ABBBBBBBBBBBBBBBBBBBBBBB-003d"
NEXT = "D-01234567-ACCCCCCCCCCCCCCCCCCCCCCC-003d"
OTHER = "D-01234567-ADDDDDDDDDDDDDDDDDDDDDDD-003d"
AGAIN = "D-01234567-AEEEEEEEEEEEEEEEEEEEEEEE-003d"
RECORD = "replicate=1 retry=10000 delay=0 made={} body=7{} left=3600000 due=10000"


def one_of_each(config: Sequence[tuple[str, str]] = ()) -> Trace:
    """n1 has served a job without a group. One of a group and another without one wait."""
    trace = Trace(config=config)
    trace.plan = attrs.evolve(
        trace.plan, adds=(Add(at=0, node=1, producer="p1", queue="q", body="b", group="g"),)
    )
    for made, (job, group) in enumerate([(JOB, ""), (OF_GROUP, " group=5"), (NEXT, "")], 1):
        trace.add(made / 10, job, to=(), record=RECORD.format(made, group))
    trace.serve(1)
    trace.send(1.1, "ping", "n1", "n2", job="")
    trace.send(1.102, "pong", "n2", "n1", job="")
    return trace


@pytest.mark.parametrize("is_new", [False, True])
def test_a_node_on_a_new_link_is_given_what_it_surely_reads(*, is_new: bool) -> None:
    """everything, seed 77 of an earlier drawing."""
    trace = one_of_each()
    if is_new:
        trace.cut(2, ["n1"], ["n2"], until=4)
    trace.row(4.1, "unqueue", "n1", job=NEXT, cause="given")
    trace.row(4.1, "give", "n1", job=NEXT, peer="n2", cause="given")

    assert ("S37" in broken(trace.verdict())) != is_new


def test_jobs_for_a_node_on_a_new_link_take_no_turns() -> None:
    """everything, seed 3625: the groups lost their places."""
    trace = one_of_each()
    trace.cut(2, ["n1"], ["n2"], until=4)
    trace.add(3, OTHER, to=(), record=RECORD.format(4, ""))
    trace.row(4.1, "unqueue", "n1", job=NEXT, cause="given")
    trace.row(4.1, "give", "n1", job=NEXT, peer="n2", cause="given")
    trace.serve(4.2, job=OTHER)

    assert "S37" in broken(trace.verdict())


@pytest.mark.parametrize("is_served", [False, True])
def test_the_timer_of_a_job_that_waits_takes_no_turn(*, is_served: bool) -> None:
    """everything, seed 81: its queue may or may not have come to it."""
    trace = one_of_each()
    trace.add(1.5, OTHER, to=(), record=RECORD.format(4, ""))
    trace.serve(2, job=OF_GROUP)
    trace.add(2.5, AGAIN, to=(), record=RECORD.format(5, " group=5"))
    trace.row(3, "unqueue", "n1", job=NEXT, cause="served" if is_served else "dropped")
    if is_served:
        trace.row(3, "serve", "n1", job=NEXT, client="c1", cause="served")
    else:
        trace.row(3, "drop", "n1", job=NEXT, cause="expired")
    trace.serve(4, job=OTHER)

    assert ("S37" in broken(trace.verdict())) == is_served


@pytest.mark.parametrize("restarts", [False, True])
def test_the_turns_of_a_node_end_with_its_process(*, restarts: bool) -> None:
    """everything, seed 827: a job went on with its stay in the queue, but not with its place."""
    trace = one_of_each(config=(("appendonly", "yes"), ("appendfsync", "always")))
    trace.add(1.5, AGAIN, to=(), record=RECORD.format(4, " group=5"))
    trace.serve(2, job=OF_GROUP)
    if restarts:
        trace.row(3, "crash", "n1", cause="kill")
        trace.row(3.5, "start", "n1", cause="loaded")
        for made, (job, group) in enumerate([(NEXT, ""), (AGAIN, " group=5")], 3):
            trace.row(3.5, "hold", "n1", job=job, cause="loaded", detail=RECORD.format(made, group))
        trace.row(3.5, "loaded", "n1", cause="kept")
        trace.requeue(3.6, "n1", "delay-over", AGAIN)
        trace.requeue(3.6, "n1", "delay-over", NEXT)
    trace.serve(4, job=AGAIN)

    assert ("S37" in broken(trace.verdict())) != restarts
