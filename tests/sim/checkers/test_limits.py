"""S38 and L15: queues with limits are delivered within them, and as fast as they allow."""

import pytest

from tests.sim.checkers.trace import Trace, broken


def job(number: int) -> str:
    """The id of a job that is delivered at least once."""
    return f"D-01234567-{number:024d}-003d"


def limited(*words: str | int) -> Trace:
    """At 1 s the queue gets limits, which all nodes know a few seconds later."""
    trace = Trace()
    trace.row(1, "limit", "n1", detail=" ".join(map(str, ("q", *words))))
    return trace


def serve(trace: Trace, time: float, number: int, node: str = "n1") -> None:
    """A job with RETRY 10 is added, and delivered."""
    trace.add(time - 0.1, job(number), node=node, to=())
    trace.row(time, "unqueue", node, job=job(number), cause="served")
    trace.row(time, "serve", node, job=job(number), client="c1")


def test_leases_beyond_concurrency_are_found_whichever_node_gives_them() -> None:
    for nodes, is_broken in ((("n1", "n2"), False), (("n1", "n2", "n3"), True)):
        trace = limited("CONCURRENCY", 2)
        for number, node in enumerate(nodes):
            serve(trace, 20 + number, number, node)
        assert ("S38" in broken(trace.verdict(end=25))) == is_broken, nodes


@pytest.mark.parametrize(
    ("kind", "cause"), [("acked", "ackjob"), ("queue", "nack"), ("postpone", "nack")]
)
def test_a_lease_that_has_ended_does_not_count(kind: str, cause: str) -> None:
    trace = limited("CONCURRENCY", 1)
    serve(trace, 20, 1)
    trace.row(21, kind, "n1", job=job(1), cause=cause)
    serve(trace, 22, 2)

    assert "S38" not in broken(trace.verdict(end=25))


def test_nor_does_one_whose_retry_is_over_or_whose_node_has_started_again() -> None:
    for is_over in (True, False):
        trace = limited("CONCURRENCY", 1)
        serve(trace, 20, 1)
        if not is_over:
            trace.row(21, "crash", "n1", cause="kill")
            trace.row(22, "start", "n1", cause="empty")
        serve(trace, 31 if is_over else 23, 2, "n2")
        assert "S38" not in broken(trace.verdict(end=35)), is_over


def test_deliveries_beyond_the_rate_are_found_in_any_time() -> None:
    # Two per second with a burst of three: at most 3 + 1 + 2 * 1.05 at once.
    for count, is_broken in ((6, False), (7, True)):
        trace = limited("RATE", 2, "PER", 1, "BURST", 3)
        for number in range(count):
            serve(trace, 20 + number / 100, number, f"n{number % 3 + 1}")
        assert ("S38" in broken(trace.verdict(end=25))) == is_broken, count


@pytest.mark.parametrize(
    "words", [("CONCURRENCY", 1, "LOOSE"), ("RATE", 1, "PER", 1, "LOOSE")], ids=lambda each: each[0]
)
def test_loose_limits_are_judged_in_calm(words: tuple[str | int, ...]) -> None:
    for is_calm in (True, False):
        trace = limited(*words)
        if not is_calm:
            trace.row(30, "cut", "n1", peer="n2")
        for number in range(1, 6):
            serve(trace, 40 + number / 100, number)
        assert ("S38" in broken(trace.verdict(end=45))) == is_calm


def test_limits_count_once_all_nodes_know_them() -> None:
    for at, is_broken in ((3.0, False), (20.0, True)):
        trace = limited("CONCURRENCY", 1)
        serve(trace, at, 1)
        serve(trace, at + 0.5, 2)
        assert ("S38" in broken(trace.verdict(end=25))) == is_broken, at


def test_a_node_that_joins_does_not_know_them_yet() -> None:
    trace = limited("CONCURRENCY", 1)
    serve(trace, 20, 1)
    trace.row(20.5, "start", "n4", cause="fresh")
    serve(trace, 21, 2, "n2")

    assert "S38" not in broken(trace.verdict(end=25))


def test_limits_that_are_removed_do_not_count() -> None:
    trace = limited("CONCURRENCY", 1)
    trace.row(15, "limit", "n1", detail="q NONE")
    serve(trace, 20, 1)
    serve(trace, 21, 2)

    assert "S38" not in broken(trace.verdict(end=25))


def demanded(trace: Trace, since: float, until: float) -> None:
    """Clients wait for jobs that there are."""
    time = since
    while time <= until:
        trace.row(time, "demand", queue="q", detail=f"since={int(since * 1e6)}")
        time += 0.5


def test_a_queue_that_is_not_delivered_within_its_limits_is_found() -> None:
    for until, is_broken in ((22.0, False), (24.0, True)):
        trace = limited("CONCURRENCY", 1, "RATE", 2, "PER", 1)
        demanded(trace, 20, until)
        verdict = trace.verdict(end=30)
        assert ("L15" in broken(verdict)) == is_broken, until
        assert verdict.checks["L15"]


def test_a_rate_of_which_half_is_used_is_found() -> None:
    for every, is_broken in ((0.1, False), (0.2, True)):
        trace = limited("RATE", 10, "PER", 1)
        for number in range(int(10 / every)):
            serve(trace, 20 + number * every, number)
        demanded(trace, 20, 30)
        assert ("L15" in broken(trace.verdict(end=35))) == is_broken, every


def test_it_may_wait_for_a_lease() -> None:
    trace = limited("CONCURRENCY", 1)
    serve(trace, 20, 1)
    demanded(trace, 20.1, 28)

    assert "L15" not in broken(trace.verdict(end=30))


def test_it_may_wait_while_something_is_wrong() -> None:
    trace = limited("CONCURRENCY", 1)
    trace.row(19, "cut", "n1", peer="n2")
    demanded(trace, 20, 28)

    assert "L15" not in broken(trace.verdict(end=30))
