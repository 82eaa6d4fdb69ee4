"""S6: nobody who knows of the wait of a NACK queues the job before it is over."""

import pytest

from tests.sim.checkers.trace import JOB, Trace, broken


def given_back(
    *told: str, lost: tuple[str, ...] = (), fsync: str = "", cut: float | None = None
) -> Trace:
    """At 2 s a worker gives the job back to n1 for ten seconds, of which these nodes hear."""
    trace = Trace(config=(("appendonly", "yes"), ("appendfsync", fsync)) if fsync else ())
    trace.add(1)
    if cut is not None:
        trace.cut(cut, ["n1"], ["n3"], until=20)
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


@pytest.mark.parametrize(("cut", "is_excused"), [(1.9, True), (4, False)])
def test_a_cut_excuses_that_a_holder_is_not_told_only_if_it_was_there(
    cut: float, is_excused: bool
) -> None:
    trace = given_back("n2", cut=cut)
    queue(trace, 9, "n3", "retry")

    assert ("S6" not in broken(trace.verdict())) == is_excused


@pytest.mark.parametrize(("fsync", "is_excused"), [("everysec", True), ("always", False)])
def test_a_node_that_starts_again_may_have_lost_only_what_was_not_on_its_disk(
    fsync: str, is_excused: bool
) -> None:
    trace = given_back("n2", "n3", fsync=fsync)
    trace.row(2.5, "crash", "n1", cause="power")
    trace.row(5, "start", "n1", cause="loaded")
    trace.row(5, "hold", "n1", job=JOB, queue="q", cause="loaded")
    trace.row(5, "loaded", "n1", cause="torn")
    queue(trace, 9, "n1")

    assert ("S6" not in broken(trace.verdict())) == is_excused


def test_a_job_that_dies_and_is_redriven_waits_no_more() -> None:
    trace = given_back("n2", "n3")
    trace.row(4, "dead", "n1", job=JOB, cause="nack-dead", detail="redriven=0 left=604800000")
    trace.row(5, "redrive.invoke", "n1", queue="q", client="a1", ref=9)
    trace.row(5, "redrive", "n1", job=JOB, cause="redriven", detail="redriven=1 left=3600000")
    queue(trace, 9, "n1", "retry")

    assert "S6" not in broken(trace.verdict())
