"""Queues that are paused (S6): what a node may not do with them, for whomever."""

import pytest

from tests.sim.checkers.scenario import JOB, ONCE, Tale


def paused(way: str, job: str = JOB) -> Tale:
    """A job on n1, where its queue is paused from 1 s on."""
    tale = Tale()
    retry = 0 if job == ONCE else 10
    tale.add(0, job=job, to=(), options=f"replicate=1 retry={retry} ttl=3600")
    tale.say(1, "pause-queue", "n1", detail=f"q {way}")
    return tale


def complaints(tale: Tale) -> list[str]:
    return [v.detail for v in tale.verdict(end=60).violations if v.property == "S6"]


def gives(tale: Tale, time: float, job: str = JOB) -> None:
    tale.say(time, "unqueue", "n1", job=job, cause="given")
    tale.say(time, "give", "n1", peer="n2", job=job, cause="given")


@pytest.mark.parametrize(("way", "found"), [("out", True), ("all", True), ("in", False)])
@pytest.mark.parametrize("job", [JOB, ONCE])
def test_no_job_is_given_out_of_a_queue_that_is_paused(way: str, job: str, *, found: bool) -> None:
    tale = paused(way, job)
    gives(tale, 5, job)

    assert complaints(tale) == (["give (given) though q is paused there"] if found else [])


def test_nor_is_one_with_retry_0_served() -> None:
    tale = paused("out", ONCE)
    tale.serve(5, job=ONCE)

    assert complaints(tale) == ["serve (served) though q is paused there"]


def test_a_job_with_retry_0_is_queued_all_the_same_when_its_time_has_come() -> None:
    tale = Tale()
    tale.add(0, job=ONCE, to=(), options="replicate=1 retry=0 ttl=3600 delay=5", is_queued=False)
    tale.say(1, "pause-queue", "n1", detail="q in")
    tale.say(5.01, "queue", "n1", job=ONCE, cause="delay-over")

    assert complaints(tale) == []


@pytest.mark.parametrize("cause", ["add", "repljob"])
def test_a_queue_that_is_paused_takes_no_new_jobs_and_no_copies(cause: str) -> None:
    tale = paused("in")
    tale.say(5, "hold", "n1", job="D-0-new", queue="q", cause=cause)

    assert complaints(tale) == [f"hold ({cause}) though q is paused there"]


def test_jobs_that_move_come_into_it_all_the_same() -> None:
    tale = paused("in")
    tale.say(5, "hold", "n1", job="D-0-new", queue="q", cause="yourjobs")
    tale.say(5, "queue", "n1", job="D-0-new", cause="import")

    assert complaints(tale) == []


def test_another_node_does_not_have_it_queued_there() -> None:
    tale = Tale()
    tale.add(0, to=(), options="replicate=1 retry=10 ttl=3600", is_queued=False)
    tale.say(1, "pause-queue", "n1", detail="q in")
    tale.say(5, "queue", "n1", job=JOB, cause="enqueue-message")

    assert complaints(tale) == ["queue (enqueue-message) though q is paused there"]
