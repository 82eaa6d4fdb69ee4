"""S14: counts of snoozes are what was done and told, and no more."""

import pytest

from tests.sim.checkers.trace import JOB, Trace, broken

META = "nacks=0 additional=0"


def snoozed(said: int = 1, told: str = "wait=2000 nacks=0 snoozes=1 new") -> Trace:
    """At 2 s a worker gives the job back to n1, and n2 is told so."""
    trace = Trace()
    trace.add(1)
    trace.serve(1.5, "n1")
    trace.row(2, "release.invoke", "n1", job=JOB, client="c1", ref=90)
    detail = f"wait=2000 snoozes={said}" if said else "wait=2000"
    trace.row(2, "postpone", "n1", job=JOB, cause="release", detail=detail)
    trace.send(2, "postponed", "n1", "n2", detail=told)
    trace.row(2.01, "release.ok", "n1", job=JOB, client="c1", ref=90, detail="1")
    return trace


def test_the_node_of_the_release_counts_one_more_and_tells_it() -> None:
    assert "S14" not in broken(snoozed().verdict())


@pytest.mark.parametrize("said", [0, 2])
def test_no_less_and_no_more(said: int) -> None:
    assert "S14" in broken(snoozed(said).verdict())


@pytest.mark.parametrize("told", ["wait=2000 nacks=0 new", "wait=2000 nacks=0 snoozes=3 new"])
def test_others_are_told_what_it_counts(told: str) -> None:
    assert "S14" in broken(snoozed(told=told).verdict())


@pytest.mark.parametrize(("count", "is_right"), [(0, False), (1, True), (2, False)])
def test_who_was_told_counts_it(count: int, is_right: bool) -> None:
    trace = snoozed()
    trace.row(3, "postpone", "n2", job=JOB, cause="postponed", detail=f"wait=9 snoozes={count}")

    assert ("S14" not in broken(trace.verdict())) == is_right


def test_one_batch_may_tell_of_several() -> None:
    """swarm, seed 282: n2 hears of two snoozes at once."""
    trace = snoozed()
    trace.row(2.5, "postpone", "n1", job=JOB, cause="release", detail="wait=2000 snoozes=2")
    trace.send(2.5, "postponed", "n1", "n2", detail="wait=2000 nacks=0 snoozes=2 new", lag=0.5)
    for count in (1, 2):
        detail = f"wait=2000 snoozes={count}"
        trace.row(3, "postpone", "n2", job=JOB, cause="postponed", detail=detail)

    assert "S14" not in broken(trace.verdict())
