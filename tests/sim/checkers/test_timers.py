import pytest

from disque_trio.sim.scenarios.plan import Fault
from tests.sim.checkers.scenario import JOB, Tale

OPTIONS = "replicate=3 retry=10 ttl=3600"
RECORD = "replicate=3 retry=10000 delay=0 made=7 body=1908338681 left=3600000 due=10000"


def late(tale: Tale, end: float = 60) -> list[str]:
    return [v.detail for v in tale.verdict(end).violations if v.property == "L8"]


def late_at(tale: Tale, node: str, end: float) -> list[str]:
    """What is found of this node by itself."""
    found = tale.verdict(end).violations
    return [v.detail for v in found if (v.property, v.node) == ("L8", node)]


def served(**plan: object) -> Tale:
    """A job of RETRY 10 s that n1 has delivered at 1 s; the other holders know."""
    tale = Tale(**plan)  # type: ignore[arg-type]
    tale.add(0, options=OPTIONS, record=RECORD)
    tale.serve(1)
    tale.working(1, "n1", "n2", "n3")
    return tale


def test_a_job_that_is_queued_again_after_retry_is_content() -> None:
    tale = served()
    tale.requeue(11.2, "n1")
    tale.tell(11.2, "queued", "n1", "n2")
    tale.tell(11.2, "queued", "n1", "n3")

    assert late(tale, end=12) == []


def test_a_holder_that_queues_it_later_is_found_out() -> None:
    tale = served()
    tale.requeue(11.5, "n1")

    assert late(tale, end=11.6)[0] == (
        "it should have been queued there 0.220 s ago, 10.280 s after its period began"
    )


def test_so_is_one_that_never_does() -> None:
    tale = served()

    assert len(late(tale, end=12)) >= 3


def test_news_of_another_holder_begins_the_period_anew() -> None:
    tale = served()
    tale.requeue(11, "n2")
    tale.tell(11, "queued", "n2", "n1")
    tale.tell(11, "queued", "n2", "n3")

    assert late(tale, end=20) == []


def test_holders_that_put_each_other_off_are_found_out_together() -> None:
    tale = served()
    tale.working(10, "n2", "n1", "n3")
    tale.working(10, "n1", "n2")
    tale.requeue(19, "n1")

    [found] = late(tale, end=19.1)
    assert found.startswith("queued 18.000 s after it was handed out, with nothing wrong")


def test_a_node_that_was_stopped_may_be_late() -> None:
    tale = served(faults=[Fault(kind="pause", at=0)])
    tale.say(5, "pause", "n1")
    tale.say(15, "resume", "n1")
    tale.requeue(15, "n1")
    for node in ("n2", "n3"):
        tale.requeue(11, node)

    assert late(tale, end=15.1) == []


def test_a_queue_that_is_paused_takes_it_back_a_period_later() -> None:
    tale = served()
    tale.say(5, "pause-queue", "n1", detail="q in")
    tale.say(13, "pause-queue", "n1", detail="q none")
    tale.requeue(21, "n1")
    for node in ("n2", "n3"):
        tale.requeue(11, node)

    assert late(tale, end=21.1) == []


def test_a_job_that_is_done_is_not_waited_for() -> None:
    tale = served()
    tale.ack(2)
    tale.told_of_ack(2.1, "n1", "n2")
    tale.told_of_ack(2.1, "n1", "n3")

    assert late(tale) == []


def test_a_delay_is_over_in_time() -> None:
    tale = Tale()
    record = RECORD.replace("delay=0", "delay=4000").replace("due=10000", "due=14000")
    tale.add(0, options=f"{OPTIONS} delay=4", is_queued=False, record=record)
    tale.say(4.5, "queue", "n1", job=JOB, cause="delay-over")

    assert late(tale, end=4.6) == [
        "it should have been queued there 0.470 s ago, 4.020 s after its period began"
    ]


@pytest.mark.parametrize(("heard", "queued", "due"), [(True, 15, 0), (True, 16, 1), (False, 6, 1)])
def test_who_learns_of_a_delivery_before_its_add_succeeds_keeps_a_period_from_then_on(
    heard: bool, queued: float, due: int
) -> None:
    tale = Tale()
    record = RECORD.replace("delay=0", "delay=4000").replace("due=10000", "due=14000")
    options = f"{OPTIONS} delay=4".replace("replicate=3", "replicate=2")
    tale.say(
        0, "add.invoke", "n1", queue="q", client="p1", ref=77,
        detail=f"timeout=90000 {options} body=b",
    )  # fmt: skip
    tale.say(0, "hold", "n1", job=JOB, cause="add", detail=record)
    tale.copy(0, "n1", "n2", record=record)
    tale.requeue(4, "n2", cause="delay-over")
    tale.serve(4.1, "n2")
    if heard:
        tale.working(4.1, "n2", "n1")
    tale.say(5, "add.ok", "n1", job=JOB, client="p1", ref=77)
    tale.requeue(queued, "n1")

    assert len(late_at(tale, "n1", queued)) == due


def test_a_new_job_is_queued_before_its_producer_has_its_id() -> None:
    tale = Tale()
    tale.add(0, options=OPTIONS, is_queued=False, record=RECORD)

    assert late(tale, end=1) == ["its producer has its id, and no node has queued it"]


def test_a_copy_that_says_when_it_will_be_queued_is_taken_at_its_word() -> None:
    tale = Tale()
    record = RECORD.replace("replicate=3", "replicate=1")
    tale.add(0, to=(), options="replicate=1 retry=10 ttl=3600", record=record)
    tale.say(
        1, "hold", "n2", job=JOB, cause="yourjobs",
        detail=record,
    )  # fmt: skip
    tale.requeue(12, "n2")

    assert late(tale, end=12.1)[0].startswith("it should have been queued there 0.9")


def adding(*, answered: float) -> Tale:
    """An ADDJOB waits for copies; another holder queues the job meanwhile, and delivers it."""
    tale = Tale()
    tale.say(
        0, "add.invoke", "n1", queue="q", client="p1", ref=77,
        detail=f"timeout=90000 {OPTIONS} body=b",
    )  # fmt: skip
    tale.say(0, "hold", "n1", job=JOB, cause="add", detail=RECORD)
    tale.copy(0, "n1", "n2", record=RECORD)
    tale.requeue(10, "n2")
    tale.tell(10, "queued", "n2", "n1")
    tale.serve(10.1, "n2")
    tale.say(answered, "add.ok", "n1", job=JOB, client="p1", ref=77)
    return tale


def test_a_job_that_waits_for_copies_is_not_due() -> None:
    tale = adding(answered=25)
    tale.ack(19, "n2")
    tale.say(24.9, "acked", "n1", job=JOB, cause="setack")

    assert late(tale, end=26) == []


def test_once_it_has_them_its_period_begins() -> None:
    tale = adding(answered=15)
    tale.requeue(25.5, "n1")

    assert late(tale, end=25.6)[0].startswith("it should have been queued there 0.2")
