"""Queues after a stop in order (S21)."""

import pytest

from tests.sim.checkers.trace import JOB, Trace


def journals(queues: str) -> tuple[tuple[str, str], ...]:
    return ("appendonly", "yes"), ("appendfsync", "everysec"), ("aof-queues", queues)


def told(
    *,
    ends: str = "stop queues",
    served_at: float | None = None,
    queued_at: float | None = 11,
    cause: str = "loaded",
    to: tuple[str, ...] = (),
    loaded_at: float = 11,
    keeps: bool = False,
) -> Trace:
    """A job is queued at n1, which ends at 10 s, and starts at 11 s."""
    trace = Trace(config=journals("yes" if keeps else "no"), consumers=())
    trace.add(0, to=to, options="replicate=1 retry=30 ttl=3600")
    if served_at is not None:
        trace.row(served_at, "unqueue", "n1", job=JOB, cause="served")
        trace.row(served_at, "serve", "n1", job=JOB, client="c1")
        trace.row(served_at, "get.deliver", "n1", job=JOB, client="c1", detail="body=b")
    why, _, detail = ends.partition(" ")
    trace.row(10, "crash", "n1", cause=why, detail=detail)
    trace.row(11, "start", "n1", cause="loaded")
    trace.row(loaded_at, "hold", "n1", job=JOB, cause="loaded")
    if queued_at == 11:
        trace.row(11, "queue", "n1", job=JOB, cause=cause)
    trace.row(loaded_at, "loaded", "n1", cause="kept")
    if queued_at is not None and queued_at > 11:
        trace.row(queued_at, "queue", "n1", job=JOB, cause=cause)
    return trace


def problems(trace: Trace, *, end: float = 20) -> list[str]:
    return [v.detail for v in trace.verdict(end=end).violations if v.property == "S21"]


def test_what_was_queued_is_queued_again_at_once() -> None:
    trace = told()

    assert problems(trace) == []
    assert trace.verdict(end=20).checks["S21"]


def test_the_others_may_be_asked_before() -> None:
    assert problems(told(queued_at=12.6, cause="retry")) == []


def test_what_waits_for_retry_is_found_out() -> None:
    [problem] = problems(told(queued_at=None))

    assert problem.startswith("it was queued when n1 ended, and is not 9.0")


@pytest.mark.parametrize(("queued_at", "is_early"), [(40.7, True), (40.76, False)])
def test_what_a_worker_has_waits_for_retry_from_the_start_not_from_the_last_record(
    queued_at: float, *, is_early: bool
) -> None:
    trace = told(served_at=5, loaded_at=11.05, queued_at=queued_at, cause="retry")

    assert bool(problems(trace, end=50)) == is_early


def test_it_does_not_wait_if_an_operator_orders_so() -> None:
    for ordered_at, is_early in ((9, True), (11.5, False)):
        trace = told(served_at=5, loaded_at=11.05, queued_at=None)
        trace.row(ordered_at, "enqueue-queue.invoke", "n1", queue="q", client="a1", ref=7)
        trace.row(13, "queue", "n1", job=JOB, cause="retry")
        assert bool(problems(trace)) == is_early, ordered_at


def test_after_a_kill_or_a_stop_without_the_mark_it_may() -> None:
    for ends in ("kill", "stop"):
        assert problems(told(ends=ends, queued_at=None)) == [], ends


def test_a_killed_node_queues_nothing_at_once() -> None:
    for ends in ("kill", "stop"):
        [problem] = problems(told(ends=ends))
        assert problem.startswith("n1 queues it as it starts"), ends


def test_what_a_worker_has_is_not_queued_before_its_retry() -> None:
    [at_once] = problems(told(served_at=5))
    [early] = problems(told(served_at=5, queued_at=12.5, cause="retry"))

    assert at_once.startswith("n1 queues it as it starts")
    assert early.startswith("n1 queues it 1.500 s after its start")
    assert problems(told(served_at=5, queued_at=41, cause="retry"), end=60) == []


def test_another_holder_that_has_it_queued_or_in_hand_keeps_it_away() -> None:
    queued = told(queued_at=None, to=("n2",))
    queued.row(12, "queue", "n2", job=JOB, cause="retry")
    in_hand = told(queued_at=None, to=("n2",))
    in_hand.send(12, "working", "n2", "n1")

    assert problems(queued) == []
    assert problems(in_hand) == []


def test_one_that_dies_meanwhile_is_not_queued_again() -> None:
    dead, told_later = told(queued_at=None, to=("n2",)), told(queued_at=None, to=("n2",))
    for trace, node in ((dead, "n1"), (told_later, "n2")):
        trace.row(12, "dead", node, job=JOB, cause="jobstate", detail="redriven=0 left=604800000")

    assert problems(dead) == []
    assert len(problems(told_later)) == 1


def test_one_that_is_stopped_or_killed_meanwhile_is_not_judged() -> None:
    for kind in ("crash", "pause"):
        trace = told(queued_at=None)
        trace.row(11.5, kind, "n1", cause="kill" if kind == "crash" else "")
        assert problems(trace) == [], kind


def ended_while_asking(*, ends: str = "stop queues", told: str = "", is_queued: bool) -> Trace:
    """n1 starts at 11 s, and ends again at 12 s, before it has heard of the job's other holder; it
    starts again at 13 s."""
    trace = Trace(config=journals("no"), consumers=())
    trace.add(0, to=("n2",), options="replicate=2 retry=30 ttl=3600")
    for ended, cause in ((10, "stop queues"), (12, ends)):
        why, _, detail = cause.partition(" ")
        trace.row(ended, "crash", "n1", cause=why, detail=detail)
        trace.row(ended + 1, "start", "n1", cause="loaded")
        trace.row(ended + 1, "hold", "n1", job=JOB, cause="loaded")
        trace.row(ended + 1, "loaded", "n1", cause="kept")
        if told and ended == 10:
            trace.send(11.5, told, "n2", "n1")
    if is_queued:
        trace.row(14.6, "queue", "n1", job=JOB, cause="delay-over")
    return trace


def test_one_that_ends_again_while_it_asks_queues_the_job_after_its_next_start() -> None:
    [problem] = problems(ended_while_asking(is_queued=False))

    assert problem.startswith("it was queued when n1 ended, and is not 7.0")
    assert problems(ended_while_asking(is_queued=True)) == []
    assert problems(ended_while_asking(ends="kill", is_queued=False)) == []


@pytest.mark.parametrize("message", ["queued", "working"])
def test_unless_it_has_been_told_before_that_another_holder_has_the_job(message: str) -> None:
    assert problems(ended_while_asking(told=message, is_queued=False)) == []


def test_a_queue_that_is_paused_after_the_start_takes_nothing_back() -> None:
    paused, resumed, before = (told(queued_at=None) for _ in range(3))
    paused.row(11.5, "pause-queue", "n1", detail="q in")
    for trace, since, until in ((resumed, 11.5, 12), (before, 5, 10.5)):
        trace.row(since, "pause-queue", "n1", detail="q in")
        trace.row(until, "pause-queue", "n1", detail="q none")

    assert problems(paused) == []
    assert problems(resumed) == []
    assert len(problems(before)) == 1


def nacked(ends: str, cause: str = "delay-over") -> Trace:
    """A worker gives the job back, and the node ends before anybody takes it again."""
    trace = Trace(config=journals("no"), consumers=())
    trace.add(0, to=(), options="replicate=1 retry=30 ttl=3600")
    trace.serve(2)
    trace.row(3, "nack.invoke", "n1", job=JOB, client="c1")
    trace.row(3, "queue", "n1", job=JOB, cause="nack")
    why, _, detail = ends.partition(" ")
    trace.row(10, "crash", "n1", cause=why, detail=detail)
    trace.row(11, "start", "n1", cause="loaded")
    trace.row(11, "hold", "n1", job=JOB, cause="loaded")
    trace.row(11, "loaded", "n1", cause="kept")
    trace.row(12.6, "queue", "n1", job=JOB, cause=cause)
    trace.serve(13)
    return trace


def nacked_elsewhere(*messages: str, delay: str = "") -> Trace:
    """n1 is killed while it has a job queued that was given back. While it asks n2 whether it may
    queue the job again, n2 sends these messages, or it has word of a delay itself. RETRY is over
    when it queues the job."""
    trace = Trace(config=journals("yes"), consumers=())
    trace.add(0, to=("n2",), options="replicate=1 retry=2 ttl=3600")
    trace.serve(2)
    trace.row(3, "nack.invoke", "n1", job=JOB, client="c1")
    trace.row(3, "queue", "n1", job=JOB, cause="nack")
    trace.row(10, "crash", "n1", cause="kill")
    trace.row(11, "start", "n1", cause="loaded")
    trace.row(11, "hold", "n1", job=JOB, cause="loaded")
    trace.row(11, "loaded", "n1", cause="kept")
    trace.row(11.5, "queue", "n2", job=JOB, cause="retry")
    trace.serve(11.6, "n2", client="c2")
    for message in messages:
        trace.send(11.7, message, "n2", "n1", detail="wait=2000 nacks=1 new")
    if delay:
        trace.row(11.8, "postpone", "n1", job=JOB, cause=delay, detail="wait=2000")
    trace.row(14, "queue", "n1", job=JOB, cause="retry")
    trace.serve(14.1)
    return trace


@pytest.mark.parametrize("message", ["queued", "working", "postponed"])
def test_a_stay_in_the_queue_does_not_go_on_once_another_node_has_the_job(message: str) -> None:
    """Seed 1 of `recorded_waits`: what follows is the end of a new period."""
    assert nacked_elsewhere(message).verdict(end=20).duplicates == {"D1": 2}


def test_nor_once_a_client_has_it_or_has_given_it_back() -> None:
    worked_on = nacked_elsewhere()
    worked_on.row(11.8, "working.invoke", "n1", job=JOB, client="c2", ref=7)
    worked_on.row(11.81, "working.ok", "n1", job=JOB, client="c2", ref=7, detail="2")

    assert worked_on.verdict(end=20).duplicates == {"D1": 2}
    assert nacked_elsewhere(delay="nack").verdict(end=20).duplicates == {"D1": 2}
    assert nacked_elsewhere().verdict(end=20).duplicates == {"D1": 1, "D4": 1}


def test_a_job_that_was_given_back_before_the_stop_was_asked_for() -> None:
    for cause in ("delay-over", "retry"):
        assert nacked("stop queues", cause).verdict(end=20).duplicates == {"D0": 1}
    assert nacked("stop queues", "first").verdict(end=20).duplicates == {"DX": 1}
    assert nacked("kill").verdict(end=20).duplicates != {"D0": 1}


def test_after_a_kill_the_same_holds_where_journals_have_the_queues() -> None:
    kept = told(ends="kill", keeps=True)
    [late] = problems(told(ends="kill", keeps=True, queued_at=None))
    [early] = problems(told(ends="kill", keeps=True, served_at=5))

    assert problems(kept) == []
    assert kept.verdict(end=20).marks["kill.queues_kept"]
    assert late.startswith("it was queued when n1 ended")
    assert early == "n1 queues it as it starts, and had not when it ended"


@pytest.mark.parametrize(
    ("left_at", "kills", "cause"), [(9.9999, 1, "D0"), (9.9999, 2, "D0"), (9.9, 1, "DX")]
)
def test_a_kill_undoes_a_delivery_of_which_there_is_no_record_yet(
    left_at: float, kills: int, cause: str
) -> None:
    trace = Trace(config=journals("yes"), consumers=())
    trace.add(0, to=(), options="replicate=1 retry=30 ttl=3600")
    trace.serve(2)
    trace.row(3, "nack.invoke", "n1", job=JOB, client="c1")
    trace.row(3, "queue", "n1", job=JOB, cause="nack")
    trace.row(left_at, "unqueue", "n1", job=JOB, cause="served")
    trace.row(left_at, "serve", "n1", job=JOB, client="c2")
    for ended in range(10, 10 + 2 * kills, 2):
        trace.row(ended, "crash", "n1", cause="kill")
        trace.row(ended + 1, "start", "n1", cause="loaded")
        trace.row(ended + 1, "hold", "n1", job=JOB, cause="loaded")
        trace.row(ended + 1, "loaded", "n1", cause="kept")
    trace.row(14.6, "queue", "n1", job=JOB, cause="delay-over")
    trace.serve(15)

    assert trace.verdict(end=20).duplicates == {cause: 1}


@pytest.mark.parametrize(("is_received", "duplicates"), [(True, {"D1": 1}), (False, {})])
def test_a_later_kill_does_not_undo_a_delivery_that_was_received(
    duplicates: dict[str, int], *, is_received: bool
) -> None:
    """everything, seed 8633: two kills, each soon after a serve of what may be the same stay."""
    trace = Trace(config=journals("yes"), consumers=())
    trace.add(0, to=(), options="replicate=1 retry=6 ttl=3600")
    for served, client in ((4, "c1"), (12, "c2")):
        trace.row(served, "queue", "n1", job=JOB, cause="retry")
        trace.row(served, "unqueue", "n1", job=JOB, cause="served")
        trace.row(served, "serve", "n1", job=JOB, client=client)
        if client == "c2" and is_received:
            trace.row(served + 0.002, "get.deliver", "n1", job=JOB, client=client)
        trace.row(served + 0.004, "crash", "n1", cause="kill")
        trace.row(served + 2, "start", "n1", cause="loaded")
        trace.row(served + 2, "hold", "n1", job=JOB, cause="loaded")
        trace.row(served + 2, "loaded", "n1", cause="kept")
    trace.row(20, "queue", "n1", job=JOB, cause="retry")
    trace.serve(20.1)

    assert trace.verdict(end=25).duplicates == duplicates


def test_after_a_loss_of_power_nothing_is_due() -> None:
    for cause in ("power", "error"):
        trace = told(ends=cause, keeps=True, queued_at=None)
        assert problems(trace) == []
        assert not trace.verdict(end=20).checks.get("S21")


@pytest.mark.parametrize("queued_at", [11, None])
def test_what_happened_just_before_a_kill_may_have_no_record(queued_at: float | None) -> None:
    assert problems(told(ends="kill", keeps=True, served_at=9.9999, queued_at=queued_at)) == []


@pytest.mark.parametrize("served_at", [5, None])
def test_where_the_disk_was_in_trouble_a_kill_may_lose_it_or_not(served_at: float | None) -> None:
    for queued_at in (11, None):
        trace = told(ends="error", keeps=True, served_at=served_at, queued_at=queued_at)
        assert problems(trace) == []


@pytest.mark.parametrize(
    ("message", "told_at", "is_early"),
    [("working", 11.7, True), ("queued", 11.7, True), ("", 0, False), ("working", 12.9979, False)],
)
def test_what_a_node_was_told_after_its_start_outlives_the_next_kill(
    message: str, told_at: float, *, is_early: bool
) -> None:
    """It is killed again at 13 s, and queues the job at 15.6 s."""
    trace = Trace(config=journals("yes"), consumers=())
    trace.add(0, to=("n2",), options="replicate=2 retry=30 ttl=3600")
    trace.serve(2)
    trace.row(3, "nack.invoke", "n1", job=JOB, client="c1")
    trace.row(3, "queue", "n1", job=JOB, cause="nack")
    for ended in (10, 13):
        trace.row(ended, "crash", "n1", cause="kill")
        trace.row(ended + 1, "start", "n1", cause="loaded")
        trace.row(ended + 1, "hold", "n1", job=JOB, cause="loaded")
        trace.row(ended + 1, "loaded", "n1", cause="kept")
        if ended == 10 and message:
            trace.send(told_at, message, "n2", "n1")
    trace.row(15.6, "queue", "n1", job=JOB, cause="delay-over")

    assert bool(problems(trace)) == is_early
