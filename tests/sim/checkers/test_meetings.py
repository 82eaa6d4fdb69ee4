"""L9: a queued job and a waiting client of a connected cluster meet within a second."""

import attrs
import pytest

from tests.sim.checkers.trace import JOB, Trace, broken


def calm() -> Trace:
    """A job is added, and nothing is wrong."""
    trace = Trace(consumers=())
    trace.add(0)
    return trace


def apart(*, until: float, since: float = 5.0) -> Trace:
    """n1 has the job queued, and a client waits for it at n2."""
    trace = calm()
    trace.row(until, "unmet", "n1", job=JOB, peer="n2", detail=f"since={int(since * 1e6)}")
    trace.row(until, "pairs", detail="7")
    return trace


def test_they_have_a_second_and_the_ways_of_the_messages() -> None:
    verdict = apart(until=6.01).verdict(end=25)

    assert "L9" not in broken(verdict)
    assert verdict.checks["L9"] == 7


def test_they_may_not_be_apart_for_longer() -> None:
    assert "L9" in broken(apart(until=7).verdict(end=25))


def test_a_cut_between_them_is_an_excuse_and_one_elsewhere_is_none() -> None:
    for pair, is_excused in ((("n1", "n2"), True), (("n2", "n1"), True), (("n2", "n3"), False)):
        trace = calm()
        trace.row(5.5, "cut", pair[0], peer=pair[1])
        trace.row(7, "unmet", "n1", job=JOB, peer="n2", detail="since=5000000")
        assert ("L9" not in broken(trace.verdict(end=25))) == is_excused, pair


def test_a_process_that_is_stopped_is_an_excuse_but_not_a_third_one() -> None:
    for node, is_excused in (("n1", True), ("n2", True), ("n3", False)):
        trace = calm()
        trace.row(5.5, "pause", node)
        trace.row(7, "unmet", "n1", job=JOB, peer="n2", detail="since=5000000")
        assert ("L9" not in broken(trace.verdict(end=25))) == is_excused, node


def crowded(*queues: str, most: int = 1) -> Trace:
    """A job is queued at n1, which remembers for so many of these queues that clients wait."""
    trace = Trace(consumers=("n1",))
    [worker] = trace.plan.consumers
    workers = (attrs.evolve(worker, queues=queues),)
    trace.plan = attrs.evolve(trace.plan, knobs=(("demands", most),), consumers=workers)
    trace.add(0)
    return trace


@pytest.mark.parametrize(
    ("most", "wanted", "is_excused"),
    [
        (1, "q r", True),
        (1, "r q", False),
        (2, "q r", False),
        (1, "q r s q", False),
        (2, "q r q s", False),
        (2, "q r s", True),
    ],
)
def test_a_node_whose_table_of_demands_is_full_forgets_the_oldest(
    most: int, wanted: str, *, is_excused: bool
) -> None:
    trace = crowded("q", "r", "s", most=most)
    for at, queue in enumerate(wanted.split(), 1):
        trace.row(at, "recv", "n1", peer="n2", cause="waiting", queue=queue, detail="count=1")
    trace.row(7, "unmet", "n1", job=JOB, peer="n2", detail="since=5000000")

    assert ("L9" not in broken(trace.verdict(end=25))) == is_excused


@pytest.mark.parametrize(("wanted", "is_excused"), [("r", True), ("q", False)])
def test_it_may_forget_one_for_what_a_node_wants_that_it_may_not_know(
    wanted: str, *, is_excused: bool
) -> None:
    """everything, seed 2055."""
    trace = crowded("q", "r")
    trace.row(0.5, "crash", "n3", cause="kill")
    trace.row(0.6, "start", "n3", cause="fresh")
    trace.row(1, "recv", "n1", peer="n2", cause="waiting", queue="q", detail="count=1")
    trace.row(3, "recv", "n1", peer="n3", cause="waiting", queue=wanted, detail="count=1")
    trace.row(7, "unmet", "n1", job=JOB, peer="n2", detail="since=5000000")

    assert ("L9" not in broken(trace.verdict(end=25))) == is_excused


@pytest.mark.parametrize(("wanted", "is_excused"), [("q r", True), ("q", False)])
def test_it_may_forget_what_such_a_node_wanted(wanted: str, *, is_excused: bool) -> None:
    """everything, seed 5736."""
    trace = crowded("q", "r")
    trace.row(0.5, "crash", "n2", cause="kill")
    trace.row(0.6, "start", "n2", cause="fresh")
    trace.row(0.8, "recv", "n1", peer="n3", cause="waiting", queue="q", detail="count=1")
    for at, queue in enumerate(wanted.split(), 1):
        trace.row(at, "recv", "n1", peer="n2", cause="waiting", queue=queue, detail="count=1")
    for node, peer in (("n1", "n2"), ("n2", "n1")):  # now they know each other
        trace.send(10, "willqueue", node, peer)
    trace.row(100, "unmet", "n1", job=JOB, peer="n2", detail="since=95000000")

    assert ("L9" not in broken(trace.verdict(end=125))) == is_excused


@pytest.mark.parametrize(("asks_again", "is_excused"), [(False, True), (True, False)])
def test_a_queue_that_it_knows_again_for_one_node_may_be_forgotten_for_another(
    *, asks_again: bool, is_excused: bool
) -> None:
    """everything, seed 3081."""
    trace = crowded("q", "r")
    for at, (peer, queue) in enumerate([("n2", "q"), ("n3", "r"), ("n3", "q")], 1):
        trace.row(at, "recv", "n1", peer=peer, cause="waiting", queue=queue, detail="count=1")
    if asks_again:
        trace.row(4, "recv", "n1", peer="n2", cause="needjobs", queue="q", detail="count=1 waits")
    trace.row(7, "unmet", "n1", job=JOB, peer="n2", detail="since=5000000")

    assert ("L9" not in broken(trace.verdict(end=25))) == is_excused


def test_a_full_table_is_no_excuse_for_a_node_that_has_not_asked() -> None:
    trace = crowded("q", "r")
    trace.row(1, "recv", "n1", peer="n3", cause="waiting", queue="r", detail="count=1")
    trace.row(7, "unmet", "n1", job=JOB, peer="n2", detail="since=5000000")

    assert "L9" in broken(trace.verdict(end=25))


@pytest.mark.parametrize(("stays", "is_excused"), [(None, True), (1.995, True), (2.1, False)])
def test_a_leaving_node_takes_no_jobs(stays: float | None, *, is_excused: bool) -> None:
    """Nor one that started when it was told to stay: it may have missed the order."""
    trace = calm()
    trace.row(1, "leave", "n2", detail="yes")
    if stays is not None:
        trace.crash(1.5, "n2", back=2)
        trace.row(stays, "leave", "n2", detail="no")
    trace.row(7, "unmet", "n1", job=JOB, peer="n2", detail="since=5000000")

    assert ("L9" not in broken(trace.verdict(end=25))) == is_excused


def test_what_was_sent_while_a_link_was_slow_is_on_its_way_for_as_long_afterwards() -> None:
    for pair, lag, is_excused in (
        (("n1", "n2"), 2000, True),
        (("n2", "n1"), 2000, True),
        (("n1", "n2"), 500, False),
        (("n1", "n3"), 2000, False),
    ):
        trace = calm()
        trace.row(3, "delay", pair[0], peer=pair[1], detail=str(lag))
        trace.row(4, "delay", pair[0], peer=pair[1], detail="0")
        trace.row(7, "unmet", "n1", job=JOB, peer="n2", detail="since=5000000")
        assert ("L9" not in broken(trace.verdict(end=25))) == is_excused, (pair, lag)
