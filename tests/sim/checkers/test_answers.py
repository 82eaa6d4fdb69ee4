"""L13: requests are answered in time; S19: a GETJOB leaves nothing that it asked for; L14: a node
that is down is marked as failed; S34: no copy is accepted without room for it."""

import attrs
import pytest

from disque_trio.sim.scenarios.plan import Add
from tests.sim.checkers.trace import JOB, Trace, broken

OTHER = "D-89abcdef-CCCCCCCCCCCCCCCCCCCCCCCC-003d"
THIRD = "D-89abcdef-DDDDDDDDDDDDDDDDDDDDDDDD-003d"


@pytest.mark.parametrize(("cause", "is_right"), [("timeout", False), ("quit", True)])
def test_a_getjob_ends_with_its_timeout(cause: str, *, is_right: bool) -> None:
    trace = Trace()
    trace.row(30, "get.unknown", "n1", client="c1", cause=cause)

    assert ("L13" not in broken(trace.verdict())) == is_right


def test_a_node_that_was_down_has_not_to_answer() -> None:
    trace = Trace()
    trace.crash(25, "n1", back=26)
    trace.row(30, "get.unknown", "n1", client="c1", cause="timeout")

    assert "L13" not in broken(trace.verdict())


def test_a_waitjob_ends_with_its_timeout() -> None:
    trace = Trace()
    trace.add(1)
    trace.row(30, "wait.unknown", "n1", job=JOB, client="a", cause="timeout")

    assert "L13" in broken(trace.verdict())


@pytest.mark.parametrize(
    ("options", "confirmed", "is_right"),
    [
        ("replicate=3 sync=2", (20.1, 20.9), False),
        ("replicate=3 sync=2", (20.85, 20.9), True),
        ("replicate=3", (20.1, 20.9), True),
        ("replicate=3 async", (), False),
        ("replicate=3", (20.1,), True),
    ],
)
def test_an_addjob_is_answered_when_as_many_as_sync_says_have_confirmed(
    options: str, confirmed: tuple[float, ...], *, is_right: bool
) -> None:
    trace = Trace()
    detail = f"timeout=1000 {options} retry=10 ttl=3600 body=b"
    trace.row(20, "add.invoke", "n1", queue="q", client="p1", ref=1, detail=detail)
    trace.row(20, "hold", "n1", job=JOB, cause="add")
    for peer, at in zip(("n2", "n3"), confirmed, strict=False):
        trace.copy(20, "n1", peer)
        trace.send(at - 0.002, "gotjob", peer, "n1")
    trace.row(20.904, "queue", "n1", job=JOB, cause="first")
    trace.row(20.905, "add.ok", "n1", job=JOB, client="p1", ref=1)

    assert ("L13" not in broken(trace.verdict())) == is_right


@pytest.mark.parametrize(
    ("asked", "stored", "is_right"), [("", 4, True), ("", 3, False), ("replicate=3", 4, False)]
)
def test_by_default_it_may_wait_for_a_node_that_has_joined(
    asked: str, stored: int, *, is_right: bool
) -> None:
    """everything, seed 9260: `default-replicate` is 4, and a fourth node has joined three."""
    trace = Trace(config=(("default-replicate", "4"),))
    detail = f"timeout=1000 {asked} retry=10 ttl=3600 body=b"
    record = f"replicate={stored} retry=10000 delay=0 made=1 body=1 left=3600000 due=10000"
    trace.row(20, "add.invoke", "n1", queue="q", client="p1", ref=1, detail=detail)
    trace.row(20, "hold", "n1", job=JOB, cause="add", detail=record)
    for peer, at in (("n2", 20.1), ("n3", 20.1), ("n4", 20.9)):
        trace.copy(20, "n1", peer)
        trace.send(at - 0.002, "gotjob", peer, "n1")
    trace.row(20.905, "add.ok", "n1", job=JOB, client="p1", ref=1)

    assert ("L13" not in broken(trace.verdict())) == is_right


@pytest.mark.parametrize(
    ("turn", "clients", "is_right"), [(1, 45, True), (1, 10, False), (2048, 45, False)]
)
def test_it_may_wait_for_a_write_for_each_client_before_it_if_a_batch_has_one_request(
    turn: int, clients: int, *, is_right: bool
) -> None:
    trace = Trace()
    adds = tuple(Add(at=0, node=1, producer=f"p{n}", queue="q", body="b") for n in range(clients))
    knobs = (("turn_of_all", turn),)
    trace.plan = attrs.evolve(trace.plan, adds=adds, knobs=knobs, sync=(200, 20_000))
    detail = "timeout=1000 replicate=1 retry=10 ttl=3600 body=b"
    trace.row(20, "add.invoke", "n1", queue="q", client="p1", ref=1, detail=detail)
    trace.row(20.9, "hold", "n1", job=JOB, cause="add")
    trace.row(20.9, "queue", "n1", job=JOB, cause="first")
    trace.row(20.9, "add.ok", "n1", job=JOB, client="p1", ref=1)

    assert ("L13" not in broken(trace.verdict())) == is_right


def test_replies_on_a_connection_keep_the_order() -> None:
    trace = Trace()
    detail = "timeout=1000 replicate=1 async retry=10 ttl=3600 body=b"
    trace.row(19, "add.invoke", "n1", queue="q", client="p1", ref=1, detail=detail)
    trace.row(20, "add.invoke", "n1", queue="q", client="p1", ref=2, detail=detail)
    trace.row(20, "hold", "n1", job=JOB, cause="add")
    trace.row(20, "queue", "n1", job=JOB, cause="first")
    trace.row(20.9, "add.refused", "n1", queue="q", client="p1", ref=1, cause="NOREPL")
    trace.row(20.9, "add.ok", "n1", job=JOB, client="p1", ref=2)

    assert "L13" not in broken(trace.verdict())


@pytest.mark.parametrize(
    ("queued", "served", "is_right"), [(2.0, 1, False), (3.0, 1, True), (2.0, 2, True)]
)
def test_a_getjob_leaves_no_job_that_it_has_asked_for(
    queued: float, served: int, *, is_right: bool
) -> None:
    trace = Trace()
    trace.plan = attrs.evolve(
        trace.plan, consumers=tuple(attrs.evolve(each, count=2) for each in trace.plan.consumers)
    )
    trace.add(1)
    trace.add(queued - 0.005, OTHER, body="c")
    jobs = ((JOB, "b"), (OTHER, "c"))[:served]
    for job, _ in jobs:
        trace.row(3, "unqueue", "n1", job=job, cause="served")
        trace.row(3, "serve", "n1", job=job, client="c1", cause="served")
    for job, body in jobs:
        detail = f"nacks=0 additional=0 body={body}"
        trace.row(3.01, "get.deliver", "n1", job=job, client="c1", detail=detail, ref=50)

    assert ("S19" not in broken(trace.verdict())) == is_right


@pytest.mark.parametrize(
    ("kind", "node", "ms", "until", "is_right"),
    [
        ("slow", "n1", 16, 9, True),
        ("slow", "n1", 16, 3.005, True),
        ("slow", "n1", 16, 2.9, False),
        ("slow", "n1", 2, 9, False),
        ("slow", "n2", 16, 9, False),
        ("delay", "n1", 16, 9, False),
    ],
)
def test_a_slow_node_ends_the_pause_of_a_queue_after_its_batch(
    kind: str, node: str, ms: int, until: float, *, is_right: bool
) -> None:
    """everything, seed 5838: a client waits, so it gets the first job when the pause ends."""
    trace = Trace()
    trace.plan = attrs.evolve(
        trace.plan, consumers=tuple(attrs.evolve(each, count=2) for each in trace.plan.consumers)
    )
    trace.row(0.5, "pause-queue", "n1", detail="q out")
    trace.add(1)
    trace.add(1.5, OTHER, body="c")
    peer = "n3" if kind == "delay" else ""
    trace.row(2, kind, node, peer=peer, detail=str(ms))
    trace.row(until, kind, node, peer=peer, detail="0")
    trace.row(3, "pause-queue", "n1", detail="q none")
    trace.row(3.013, "unqueue", "n1", job=JOB, cause="served")
    trace.row(3.013, "serve", "n1", job=JOB, client="c1", cause="served")
    detail = "nacks=0 additional=0 body=b"
    trace.row(3.014, "get.deliver", "n1", job=JOB, client="c1", detail=detail, ref=50)

    assert ("S19" not in broken(trace.verdict())) == is_right


@pytest.mark.parametrize(("queued", "is_right"), [(20.5, False), (21, True)])
def test_a_job_that_comes_back_into_its_queue_after_a_stop_was_not_there_before(
    queued: float, *, is_right: bool
) -> None:
    trace = Trace(config=(("appendonly", "yes"),))
    trace.plan = attrs.evolve(
        trace.plan, consumers=tuple(attrs.evolve(each, count=2) for each in trace.plan.consumers)
    )
    trace.add(1)
    trace.add(1, OTHER, body="c")
    trace.row(11, "crash", "n1", cause="stop", detail="queues")
    trace.row(20, "start", "n1", cause="loaded")
    for job in (JOB, OTHER):
        trace.row(20, "hold", "n1", job=job, queue="q", cause="loaded")
    trace.row(20, "loaded", "n1", cause="kept")
    trace.row(20.5, "queue", "n1", job=JOB, cause="delay-over")
    trace.row(queued, "queue", "n1", job=OTHER, cause="delay-over")
    trace.row(21, "unqueue", "n1", job=JOB, cause="served")
    trace.row(21, "serve", "n1", job=JOB, client="c1", cause="served")
    detail = "nacks=0 additional=0 body=b"
    trace.row(21.01, "get.deliver", "n1", job=JOB, client="c1", detail=detail, ref=50)

    assert ("S19" not in broken(trace.verdict())) == is_right


@pytest.mark.parametrize(
    ("lasts", "is_told", "is_right"), [(20, False, False), (20, True, True), (3, False, True)]
)
def test_a_node_that_is_down_is_marked_as_failed(
    lasts: float, *, is_told: bool, is_right: bool
) -> None:
    trace = Trace()
    trace.crash(30, "n3", back=30 + lasts)
    if is_told:
        trace.send(33, "fail", "n1", "n2", "", detail="n3")

    assert ("L14" not in broken(trace.verdict())) == is_right


def test_so_is_one_that_hangs() -> None:
    trace = Trace()
    trace.row(30, "pause", "n3")
    trace.row(50, "resume", "n3")

    assert "L14" in broken(trace.verdict())


@pytest.mark.parametrize("in_all", [3, 2])
def test_in_a_large_cluster_that_takes_less_time(in_all: int) -> None:
    trace = Trace(config=(("cluster-node-timeout", "10000"),))
    trace.plan = attrs.evolve(trace.plan, knobs=(("watch_all", in_all),))
    trace.crash(30, "n3", back=30 + 25)

    assert ("L14" in broken(trace.verdict())) == (in_all == 2)


@pytest.mark.parametrize(("size", "is_right"), [(500, True), (2000, False)])
def test_a_node_accepts_no_more_than_it_has_room_for(size: int, *, is_right: bool) -> None:
    trace = Trace(config=[("maxmemory", "3000b")])
    trace.add(1, body="b" * size)
    trace.add(2, OTHER, body="c" * size)
    trace.add(3, THIRD, body="d")

    assert ("S34" not in broken(trace.verdict())) == is_right


@pytest.mark.parametrize(
    ("limits", "restart", "pause", "is_right"),
    [
        ((0,), None, None, True),
        ((5000,), None, None, True),
        ((3500,), None, None, False),
        ((0, 3500), None, None, False),
        ((0, 3500), None, 0.55, True),
        ((0, 3500), None, 0.65, False),
        ((0,), 0.8, None, False),
        ((0,), 0.3, None, True),
    ],
)
def test_a_fault_may_have_left_it_more_room_than_the_plan(
    limits: tuple[int, ...], restart: float | None, pause: float | None, *, is_right: bool
) -> None:
    """everything, seed 3857."""
    trace = Trace(config=[("maxmemory", "3000b")])
    for at, limit in enumerate(limits, 5):
        trace.row(at / 10, "memory", "n1", detail=str(limit))
    if restart is not None:
        trace.crash(restart, "n1", back=restart + 0.1)
    if pause is not None:
        trace.row(pause, "pause", "n1")
        trace.row(2.5, "resume", "n1")
    trace.add(1, body="b" * 2000, to=())
    trace.add(2, OTHER, body="c" * 2000, to=())
    trace.add(3, THIRD, body="d", to=())

    assert ("S34" not in broken(trace.verdict())) == is_right
