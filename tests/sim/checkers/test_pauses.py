"""Queues that are paused (S6): what a node may not do with them, for whomever."""

import pytest

from tests.sim.checkers.trace import JOB, ONCE, Trace


def paused(way: str, job: str = JOB) -> Trace:
    """A job on n1, where its queue is paused from 1 s on."""
    trace = Trace()
    retry = 0 if job == ONCE else 10
    trace.add(0, job=job, to=(), options=f"replicate=1 retry={retry} ttl=3600")
    trace.row(1, "pause-queue", "n1", detail=f"q {way}")
    return trace


def problems(trace: Trace) -> list[str]:
    return [v.detail for v in trace.verdict(end=60).violations if v.property == "S6"]


def gives(trace: Trace, time: float, job: str = JOB) -> None:
    trace.row(time, "unqueue", "n1", job=job, cause="given")
    trace.row(time, "give", "n1", peer="n2", job=job, cause="given")


@pytest.mark.parametrize(("way", "found"), [("out", True), ("all", True), ("in", False)])
@pytest.mark.parametrize("job", [JOB, ONCE])
def test_no_job_is_given_out_of_a_queue_that_is_paused(way: str, job: str, *, found: bool) -> None:
    trace = paused(way, job)
    gives(trace, 5, job)

    assert problems(trace) == (["give (given) though q is paused there"] if found else [])


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_broadcast_pauses_the_queue_at_all_nodes_that_it_reaches(*, is_cut: bool) -> None:
    trace = Trace()
    trace.add(0, to=(), options="replicate=1 retry=10 ttl=3600")
    if is_cut:
        trace.row(50, "cut", "n2", peer="n1")
    for node, cause in (("n1", "bcast"), ("n3", "bcast"), ("n2", "")):
        trace.row(60, "pause-queue", node, cause=cause, detail="q all")
    gives(trace, 65)

    assert bool(problems(trace)) != is_cut


def test_nor_is_one_with_retry_0_served() -> None:
    trace = paused("out", ONCE)
    trace.serve(5, job=ONCE)

    assert problems(trace) == ["serve (served) though q is paused there"]


def test_a_job_with_retry_0_is_queued_all_the_same_when_its_time_has_come() -> None:
    trace = Trace()
    trace.add(0, job=ONCE, to=(), options="replicate=1 retry=0 ttl=3600 delay=5", is_queued=False)
    trace.row(1, "pause-queue", "n1", detail="q in")
    trace.row(5.01, "queue", "n1", job=ONCE, cause="delay-over")

    assert problems(trace) == []


@pytest.mark.parametrize("cause", ["add", "repljob"])
def test_a_queue_that_is_paused_takes_no_new_jobs_and_no_copies(cause: str) -> None:
    trace = paused("in")
    trace.row(5, "hold", "n1", job="D-0-new", queue="q", cause=cause)

    assert problems(trace) == [f"hold ({cause}) though q is paused there"]


def test_jobs_that_move_come_into_it_all_the_same() -> None:
    trace = paused("in")
    trace.row(5, "hold", "n1", job="D-0-new", queue="q", cause="yourjobs")
    trace.row(5, "queue", "n1", job="D-0-new", cause="import")

    assert problems(trace) == []


def test_another_node_does_not_have_it_queued_there() -> None:
    trace = Trace()
    trace.add(0, to=(), options="replicate=1 retry=10 ttl=3600", is_queued=False)
    trace.row(1, "pause-queue", "n1", detail="q in")
    trace.row(5, "queue", "n1", job=JOB, cause="enqueue-message")

    assert problems(trace) == ["queue (enqueue-message) though q is paused there"]


@pytest.mark.parametrize("cause", ["OOM", ""])
def test_a_queue_is_not_paused_by_an_order_that_is_refused(cause: str) -> None:
    trace = paused("out")
    if cause:
        trace.row(1.001, "pause-queue", "n1", cause=cause, detail="q none")
    gives(trace, 5)

    assert bool(problems(trace)) != bool(cause)


def refused(code: str, *, at: float, node: str = "n1", config: str = "0") -> list[str]:
    """n1 starts anew at 10 s, and has little memory from 30 to 40 s."""
    trace = Trace(config=(("maxmemory", config),))
    trace.crash(9, "n1", back=10)
    trace.row(30, "memory", "n1", detail="1000")
    trace.row(40, "memory", "n1", detail="0")
    trace.row(at, "pause-queue", node, detail="q all")
    trace.row(at + 0.001, "pause-queue", node, cause=code, detail="q none")
    return [v.detail for v in trace.verdict(end=60).violations if v.property == "S19"]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        (refused("OOM", at=35), False),
        (refused("OOM", at=50, config="60kb"), False),
        (refused("LOADING", at=10.01), False),
        (refused("OOM", at=50), True),
        (refused("OOM", at=35, node="n2"), True),
        (refused("LOADING", at=35), True),
    ],
)
def test_pause_is_refused_only_for_want_of_memory_or_while_a_journal_is_read(
    code: list[str], *, found: bool
) -> None:
    assert bool(code) == found
