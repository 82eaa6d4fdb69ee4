import pytest

from disque_trio.sim.scenarios.plan import Fault
from tests.sim.checkers.trace import JOB, Trace

OPTIONS = "replicate=3 retry=10 ttl=3600"
RECORD = "replicate=3 retry=10000 delay=0 made=7 body=1908338681 left=3600000 due=10000"


def late(trace: Trace, end: float = 60) -> list[str]:
    return [v.detail for v in trace.verdict(end).violations if v.property == "L8"]


def late_at(trace: Trace, node: str, end: float) -> list[str]:
    """What is found of this node by itself."""
    found = trace.verdict(end).violations
    return [v.detail for v in found if (v.property, v.node) == ("L8", node)]


def served(ttl: int = 3600, **plan: object) -> Trace:
    """A job of RETRY 10 s that n1 has delivered at 1 s; the other holders know."""
    trace = Trace(**plan)  # type: ignore[arg-type]
    record = RECORD.replace("left=3600", f"left={ttl}")
    trace.add(0, options=OPTIONS.replace("ttl=3600", f"ttl={ttl}"), record=record)
    trace.serve(1)
    trace.working(1, "n1", "n2", "n3")
    return trace


def test_a_job_that_is_queued_again_after_retry_is_content() -> None:
    trace = served()
    trace.requeue(11.2, "n1")
    trace.send(11.2, "queued", "n1", "n2")
    trace.send(11.2, "queued", "n1", "n3")

    assert late(trace, end=12) == []


def test_a_holder_that_queues_it_later_is_found_out() -> None:
    trace = served()
    trace.requeue(11.5, "n1")

    assert late(trace, end=11.6)[0] == (
        "it should have been queued there 0.220 s ago, 10.280 s after its period began"
    )


@pytest.mark.parametrize("ttl", [11, 3600])
def test_a_job_whose_ttl_is_over_may_be_queued_late_by_a_holder_that_still_has_it(ttl: int) -> None:
    trace = served(ttl)
    trace.row(11, "drop", "n1", job=JOB, cause="expired")
    trace.requeue(12.5, "n3")

    found = [each for each in late(trace, end=13) if "handed out" in each]
    assert bool(found) == (ttl > 12)


def test_so_is_one_that_never_does() -> None:
    trace = served()

    assert len(late(trace, end=12)) >= 3


def test_an_announcement_of_another_holder_restarts_the_period() -> None:
    trace = served()
    trace.requeue(11, "n2")
    trace.send(11, "queued", "n2", "n1")
    trace.send(11, "queued", "n2", "n3")

    assert late(trace, end=20) == []


@pytest.mark.parametrize(
    ("announced", "requeued", "is_late"),
    [(None, 13.2, False), (None, 14.2, True), (5, 15.2, False), (5, 16.2, True)],
)
def test_without_leases_a_period_begins_in_the_queue_after_a_start_or_an_announcement(
    announced: float | None, requeued: float, *, is_late: bool
) -> None:
    """everything, seeds 3961 and 4169."""
    config = [("delivery-lease", "no"), ("appendonly", "yes"), ("appendfsync", "always")]
    trace = Trace(config=config)
    trace.add(0, options=OPTIONS, record=RECORD)
    trace.row(1, "crash", "n1", cause="kill")
    trace.row(2, "start", "n1", cause="loaded")
    trace.row(2, "hold", "n1", job=JOB, queue="q", cause="loaded", detail=RECORD)
    trace.row(2, "loaded", "n1", cause="kept")
    trace.requeue(3, "n1", "delay-over")
    if announced is not None:
        trace.send(announced, "queued", "n2", "n1", lag=0)
    trace.serve(6)
    trace.requeue(requeued, "n1")

    assert bool(late_at(trace, "n1", requeued)) == is_late


def test_a_worker_without_a_reply_may_have_got_more_time_all_the_same() -> None:
    trace = served()
    trace.row(5, "working.invoke", "n1", job=JOB, client="c1", ref=60)
    trace.row(5, "working.unknown", "n1", job=JOB, client="c1", ref=60, cause="timeout")
    trace.working(5, "n1", "n2", "n3")
    trace.requeue(15.2, "n1")

    assert late(trace, end=15.2) == []


@pytest.mark.parametrize("is_queued_last", [True, False])
def test_a_job_queued_after_a_short_wait_keeps_a_period_where_one_batch_says_both(
    *, is_queued_last: bool
) -> None:
    """everything, seed 3741."""
    trace = served()
    trace.row(2, "postpone", "n1", job=JOB, cause="nack", detail="wait=6")
    trace.requeue(2.006, "n1", cause="backed-off")
    both = [(2, "postponed"), (2.006, "queued")]
    for sent, message in both if is_queued_last else reversed(both):
        trace.send(sent, message, "n1", "n2", lag=2.01 - sent)
    trace.row(2.01, "postpone", "n2", job=JOB, cause="postponed", detail="wait=6")

    assert bool(late_at(trace, "n2", end=11.9)) != is_queued_last
    assert late_at(trace, "n2", end=13)


@pytest.mark.parametrize("is_dead", [True, False])
def test_a_worker_that_got_more_time_just_before_the_job_died_is_too_late(*, is_dead: bool) -> None:
    """swarm-extended, seed 303418."""
    trace = served()
    trace.row(3, "nack.invoke", "n1", job=JOB, client="c1", ref=61)
    trace.row(3, "working.invoke", "n1", job=JOB, client="c1", ref=60)
    if is_dead:
        detail = "redriven=0 left=604800000"
        trace.row(3.001, "dead", "n1", job=JOB, cause="nack-dead", detail=detail)
    trace.row(3.002, "working.ok", "n1", job=JOB, client="c1", ref=60, detail="10")
    trace.requeue(13, "n2")

    assert bool(late_at(trace, "n1", end=15)) != is_dead


def test_holders_that_put_each_other_off_are_found_out_together() -> None:
    trace = served()
    trace.working(10, "n2", "n1", "n3")
    trace.working(10, "n1", "n2")
    trace.requeue(19, "n1")

    [found] = late(trace, end=19.1)
    assert found.startswith("queued 18.000 s after it was handed out, with nothing wrong")


def test_a_node_that_was_stopped_may_be_late() -> None:
    trace = served(faults=[Fault(kind="pause", at=0)])
    trace.row(5, "pause", "n1")
    trace.row(15, "resume", "n1")
    trace.requeue(15, "n1")
    for node in ("n2", "n3"):
        trace.requeue(11, node)

    assert late(trace, end=15.1) == []


def test_a_queue_that_is_paused_takes_it_back_a_period_later() -> None:
    trace = served()
    trace.row(5, "pause-queue", "n1", detail="q in")
    trace.row(13, "pause-queue", "n1", detail="q none")
    trace.requeue(21, "n1")
    for node in ("n2", "n3"):
        trace.requeue(11, node)

    assert late(trace, end=21.1) == []


@pytest.mark.parametrize(
    ("ordered", "goes_on", "is_due"),
    [(12.995, None, False), (12.98, None, True), (12, 12.995, False), (12, 12.98, True)],
)
def test_a_queue_may_be_paused_until_its_node_has_read_the_order_to_go_on(
    *, ordered: float, goes_on: float | None, is_due: bool
) -> None:
    trace = Trace(faults=[Fault(kind="pause", at=0)])
    options = f"{OPTIONS} delay=4".replace("replicate=3", "replicate=1")
    trace.row(
        0, "add.invoke", "n1", queue="q", client="p1", ref=77,
        detail=f"timeout=90000 {options} body=b",
    )  # fmt: skip
    record = RECORD.replace("delay=0", "delay=4000").replace("due=10000", "due=4000")
    trace.row(0, "hold", "n1", job=JOB, queue="q", cause="add", detail=record)
    trace.row(1, "pause-queue", "n1", detail="q all")
    if goes_on:
        trace.row(2, "pause", "n1")
    trace.row(ordered, "pause-queue", "n1", detail="q none")
    if goes_on:
        trace.row(goes_on, "resume", "n1")
    trace.row(13, "add.ok", "n1", job=JOB, queue="q", client="p1", ref=77)
    trace.requeue(22, "n1", cause="delay-over")

    assert bool(late_at(trace, "n1", 22.1)) == is_due


def test_a_job_that_is_done_is_not_waited_for() -> None:
    trace = served()
    trace.ack(2)
    trace.setack(2.1, "n1", "n2")
    trace.setack(2.1, "n1", "n3")

    assert late(trace) == []


def test_a_delay_is_over_in_time() -> None:
    trace = Trace()
    record = RECORD.replace("delay=0", "delay=4000").replace("due=10000", "due=14000")
    trace.add(0, options=f"{OPTIONS} delay=4", is_queued=False, record=record)
    trace.row(4.5, "queue", "n1", job=JOB, cause="delay-over")

    assert late(trace, end=4.6) == [
        "it should have been queued there 0.470 s ago, 4.020 s after its period began"
    ]


@pytest.mark.parametrize(
    ("is_told", "queued", "due"), [(True, 15, 0), (True, 16, 1), (False, 6, 1)]
)
def test_a_node_told_of_a_delivery_before_its_add_succeeds_keeps_a_period_from_then_on(
    is_told: bool, queued: float, due: int
) -> None:
    trace = Trace()
    record = RECORD.replace("delay=0", "delay=4000").replace("due=10000", "due=14000")
    options = f"{OPTIONS} delay=4".replace("replicate=3", "replicate=2")
    trace.row(
        0, "add.invoke", "n1", queue="q", client="p1", ref=77,
        detail=f"timeout=90000 {options} body=b",
    )  # fmt: skip
    trace.row(0, "hold", "n1", job=JOB, cause="add", detail=record)
    trace.copy(0, "n1", "n2", record=record)
    trace.requeue(4, "n2", cause="delay-over")
    trace.serve(4.1, "n2")
    if is_told:
        trace.working(4.1, "n2", "n1")
    trace.row(5, "add.ok", "n1", job=JOB, client="p1", ref=77)
    trace.requeue(queued, "n1")

    assert len(late_at(trace, "n1", queued)) == due


def test_a_new_job_is_queued_before_its_producer_has_its_id() -> None:
    trace = Trace()
    trace.add(0, options=OPTIONS, is_queued=False, record=RECORD)

    assert late(trace, end=1) == ["its producer has its id, and no node has queued it"]


def test_a_copy_that_says_when_it_will_be_queued_is_taken_at_its_word() -> None:
    trace = Trace()
    record = RECORD.replace("replicate=3", "replicate=1")
    trace.add(0, to=(), options="replicate=1 retry=10 ttl=3600", record=record)
    trace.row(
        1, "hold", "n2", job=JOB, cause="yourjobs",
        detail=record,
    )  # fmt: skip
    trace.requeue(12, "n2")

    assert late(trace, end=12.1)[0].startswith("it should have been queued there 0.9")


def adding(*, answered: float) -> Trace:
    """An ADDJOB waits for copies; another holder queues the job meanwhile, and delivers it."""
    trace = Trace()
    trace.row(
        0, "add.invoke", "n1", queue="q", client="p1", ref=77,
        detail=f"timeout=90000 {OPTIONS} body=b",
    )  # fmt: skip
    trace.row(0, "hold", "n1", job=JOB, cause="add", detail=RECORD)
    trace.copy(0, "n1", "n2", record=RECORD)
    trace.requeue(10, "n2")
    trace.send(10, "queued", "n2", "n1")
    trace.serve(10.1, "n2")
    trace.row(answered, "add.ok", "n1", job=JOB, client="p1", ref=77)
    return trace


def test_a_job_that_waits_for_copies_is_not_due() -> None:
    trace = adding(answered=25)
    trace.ack(19, "n2")
    trace.row(24.9, "acked", "n1", job=JOB, cause="setack")

    assert late(trace, end=26) == []


def test_once_it_has_them_its_period_begins() -> None:
    trace = adding(answered=15)
    trace.requeue(25.5, "n1")

    assert late(trace, end=25.6)[0].startswith("it should have been queued there 0.2")


@pytest.mark.parametrize(("lag", "due"), [(1, 0), (0.9, 1)])
def test_what_is_announced_in_the_batch_that_brings_a_copy_begins_its_period_anew(
    lag: float, due: int
) -> None:
    """everything, seed 5."""
    trace = Trace()
    record = RECORD.replace("due=10000", "due=9700")
    trace.row(0, "hold", "n1", job=JOB, cause="add", detail=RECORD)
    trace.send(1, "repljob", "n1", "n2", lag=1, detail=f"jobs={JOB} holders=n1,n2")
    trace.send(1, "working", "n1", "n2", lag=lag)
    trace.row(2, "hold", "n2", job=JOB, cause="repljob", detail=record)
    trace.requeue(12, "n2")

    assert len(late_at(trace, "n2", 12)) == due
