"""S6: nobody who knows of the wait of a NACK queues the job before it is over."""

import pytest

from tests.sim.checkers.trace import JOB, Trace, broken


def given_back(*told: str, lost: tuple[str, ...] = ()) -> Trace:
    """At 2 s a worker gives the job back to n1 for ten seconds, of which these nodes hear."""
    trace = Trace()
    trace.add(1)
    trace.serve(1.5, "n1")
    trace.row(2, "nack.invoke", "n1", job=JOB, client="c1", ref=90)
    trace.row(2, "postpone", "n1", job=JOB, cause="nack", detail="wait=10000")
    for peer in told:
        trace.send(2, "postponed", "n1", peer, detail="wait=10000 nacks=1 new")
        trace.row(2.01, "postpone", peer, job=JOB, cause="postponed", detail="wait=10000")
    for peer in lost:
        trace.send(2, "postponed", "n1", peer, detail="wait=10000 nacks=1 new", lost=2.005)
    trace.row(2.01, "nack.ok", "n1", job=JOB, client="c1", ref=90, detail="1")
    return trace


def queue(trace: Trace, time: float, node: str, cause: str = "backed-off") -> None:
    trace.row(time, "queue", node, job=JOB, queue="q", cause=cause)


def test_a_job_may_be_queued_when_the_wait_is_over() -> None:
    trace = given_back("n2", "n3")
    queue(trace, 12.01, "n1")

    assert "S6" not in broken(trace.verdict())


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_who_knows_of_the_wait_does_not_queue_it_before(node: str) -> None:
    trace = given_back("n2", "n3")
    queue(trace, 9, node)

    assert "S6" in broken(trace.verdict())


def test_a_client_may_end_the_wait() -> None:
    trace = given_back("n2", "n3")
    queue(trace, 5, "n2", "enqueue")
    queue(trace, 9, "n1")

    assert "S6" not in broken(trace.verdict())


def test_a_holder_is_told() -> None:
    trace = given_back("n2")
    queue(trace, 9, "n3", "retry")

    assert "S6" in broken(trace.verdict())


def test_what_was_lost_is_not_known() -> None:
    trace = given_back("n2", lost=("n3",))
    queue(trace, 9, "n3", "retry")

    assert "S6" not in broken(trace.verdict())


@pytest.mark.parametrize("is_answered", [True, False])
def test_who_knows_answers_a_warning(is_answered: bool) -> None:
    trace = given_back("n2", lost=("n3",))
    trace.send(5, "willqueue", "n3", "n2")
    if is_answered:
        trace.send(5.01, "postponed", "n2", "n3", detail="wait=7000 nacks=1", lost=5.02)
    queue(trace, 9, "n3", "retry")

    assert ("S6" in broken(trace.verdict())) != is_answered
