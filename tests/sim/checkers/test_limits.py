"""S38 and L15: queues with limits are delivered within them, and as fast as they allow."""

from itertools import permutations

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


def demanded(trace: Trace, since: float, until: float, node: str = "") -> None:
    """Clients wait for jobs that there are, at this node or at any."""
    time = since
    while time <= until:
        trace.row(time, "demand", node, queue="q", detail=f"since={int(since * 1e6)}")
        time += 0.5


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


def test_each_side_of_a_cut_may_have_saved_a_token() -> None:
    for sides, is_broken in ((("n2",), True), (("n2", "n3"), False)):
        trace = limited("RATE", 1, "PER", 10)
        serve(trace, 10, 9)  # all know the limits
        for node, peer in permutations(("n1", *sides), 2):
            trace.row(15, "cut", node, peer=peer)
        for number, node in enumerate(("n1", "n2", "n3")):
            serve(trace, 20 + number / 100, number, node)
        assert ("S38" in broken(trace.verdict(end=25))) == is_broken, sides


def parted(*words: str | int, at: float = 15, one_way: bool = False) -> Trace:
    """n1 is cut off from the others for long, after all have known the limits."""
    trace = limited(*words)
    demanded(trace, 9, 9)
    for other in ("n2", "n3"):
        trace.row(at, "cut", "n1", peer=other)
        if not one_way:
            trace.row(at, "cut", other, peer="n1")
    return trace


@pytest.mark.parametrize(
    "words", [("CONCURRENCY", 1, "LOOSE"), ("RATE", 1, "PER", 10, "LOOSE")], ids=lambda w: w[0]
)
def test_each_side_of_a_long_cut_has_the_whole_of_loose_limits_and_no_more(
    words: tuple[str | int, ...],
) -> None:
    for nodes, is_broken in ((("n1", "n2"), False), (("n1", "n2", "n3"), True)):
        trace = parted(*words)
        for number, node in enumerate(nodes):
            serve(trace, 50 + number / 100, number, node)
        verdict = trace.verdict(end=55)
        assert ("S38" in broken(verdict)) == is_broken, nodes
        assert verdict.checks["S38"]


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


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_each_side_of_a_long_cut_is_delivered_within_the_whole_of_loose_limits(node: str) -> None:
    for words, served, is_broken in (
        (("CONCURRENCY", 2, "LOOSE"), 1, True),
        (("CONCURRENCY", 2, "LOOSE"), 2, False),
        (("CONCURRENCY", 2), 1, False),
    ):
        trace = parted(*words)
        for number in range(served):
            serve(trace, 45 + number / 100, number, node)
        serve(trace, 45.5, 9, "n2" if node == "n1" else "n1")
        demanded(trace, 46, 52, node)
        assert ("L15" in broken(trace.verdict(end=53))) == is_broken, (words, served)


def test_clients_may_have_waited_since_before_the_cut() -> None:
    trace = parted("RATE", 10, "PER", 1, "LOOSE", at=12)
    demanded(trace, 11, 40, "n2")

    assert "L15" in broken(trace.verdict(end=45))


@pytest.mark.parametrize(("at", "one_way"), [(40, False), (15, True)])
def test_a_side_may_wait_while_the_cut_is_new_and_if_it_has_no_sides(
    at: float, *, one_way: bool
) -> None:
    trace = parted("RATE", 10, "PER", 1, "LOOSE", at=at, one_way=one_way)
    demanded(trace, 42, 46, "n1")

    assert "L15" not in broken(trace.verdict(end=50))


def serve_of(trace: Trace, time: float, number: int, group: int) -> None:
    """A job of this group is added, and delivered."""
    record = f"replicate=3 retry=10000 delay=0 group={group} left=3600000 due=10000"
    trace.add(time - 0.1, job(number), to=(), record=record)
    trace.row(time, "unqueue", "n1", job=job(number), cause="served")
    trace.row(time, "serve", "n1", job=job(number), client="c1")


@pytest.mark.parametrize(
    "words", [("GROUP-CONCURRENCY", 1), ("GROUP-RATE", 1, "GROUP-PER", 30)], ids=lambda w: w[0]
)
def test_limits_of_groups_are_judged_for_each_group(words: tuple[str | int, ...]) -> None:
    for groups, is_broken in (((1, 2, 3), False), ((1, 2, 1, 1), True)):
        trace = limited(*words)
        for number, group in enumerate(groups):
            serve_of(trace, 20 + number, number, group)
        assert ("S38" in broken(trace.verdict(end=25))) == is_broken, groups


def test_jobs_without_a_group_have_no_limits_of_groups() -> None:
    trace = limited("GROUP-CONCURRENCY", 1)
    for number in range(3):
        serve(trace, 20 + number, number)

    assert "S38" not in broken(trace.verdict(end=25))


def test_a_group_that_is_not_delivered_within_its_limits_is_found() -> None:
    for served, is_broken in ((1, False), (2, True)):
        trace = limited("GROUP-CONCURRENCY", 1)
        serve_of(trace, 20, 0, served)
        for tenth in range(205, 285, 5):
            detail = "since=20500000 group=1"
            trace.row(tenth / 10, "demand", queue="q", detail=detail)
        assert ("L15" in broken(trace.verdict(end=30))) == is_broken, served
