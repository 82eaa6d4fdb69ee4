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


@pytest.mark.parametrize("answers", [False, True])
def test_a_node_that_has_just_started_may_not_know_that_another_keeps_the_count(
    *, answers: bool
) -> None:
    """`snoozed_and_killed`, seed 0: n1 gives the job before n3 has answered its first PING."""
    trace = Trace(config=(("appendonly", "yes"),))
    trace.add(1, to=(), options="replicate=1 retry=1 ttl=3600")
    trace.serve(1.5, "n1")
    trace.row(2, "release.invoke", "n1", job=JOB, client="c1", ref=90)
    trace.row(2, "postpone", "n1", job=JOB, cause="release", detail="wait=2000 snoozes=1")
    trace.row(2.01, "release.ok", "n1", job=JOB, client="c1", ref=90, detail="1")
    trace.row(3, "crash", "n1", cause="kill")
    trace.row(3, "start", "n1", cause="loaded")
    trace.row(3, "hold", "n1", job=JOB, cause="loaded", detail="snoozes=1 left=3598000 due=1000")
    trace.row(3, "loaded", "n1", cause="kept")
    trace.send(3.9, "ping", "n1", "n3", job="")
    if answers:
        trace.send(3.91, "pong", "n3", "n1", job="")
    trace.row(4, "queue", "n1", job=JOB, cause="backed-off")
    trace.row(4, "unqueue", "n1", job=JOB, cause="given")
    trace.row(4, "give", "n1", job=JOB, peer="n3")
    trace.send(4, "yourjobs", "n1", "n3", detail=f"jobs={JOB} holders=n1,n3")
    trace.row(4.002, "hold", "n3", job=JOB, cause="yourjobs")
    trace.row(4.002, "queue", "n3", job=JOB, cause="import")
    trace.serve(4.1, "n3", client="c3")
    trace.row(4.2, "postpone", "n3", job=JOB, cause="release", detail="wait=2000 snoozes=1")

    assert ("S14" in broken(trace.verdict())) == answers
