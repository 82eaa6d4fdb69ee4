"""Leaving nodes keep no copy."""

import pytest

from disque_trio.statemachine.base import ACKED, ACTIVE, QUEUED, Status
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import Enqueue, GotJob, ReplJob, SetAck, WillQueue
from tests.rig import JOB, ME, N2, N3, Rig, copy_of
from tests.statemachine.keying import EARLY, OTHER, ask, held, keyed_rig, say_all
from tests.statemachine.replicating import leaving_rig, repljobs, waiting_job


def test_a_leaving_node_gives_a_job_to_others_and_has_one_of_them_queue_it() -> None:
    rig = leaving_rig()
    job = waiting_job(rig, "REPLICATE", 2, "DELAY", 5)
    assert job.holders in ((N2, N3), (N3, N2))
    assert job.confirmed == ()
    assert {to for to, _ in repljobs(rig.sent())} == {N2, N3}

    rig.message(N2, GotJob(job.id))
    rig.message(N3, GotJob(job.id))

    assert rig.reply() == Status(job.id)
    assert [message for _, message in rig.sent()] == [Enqueue(job.id, delay=5)]
    assert rig.node.jobs == {}


@pytest.mark.parametrize(
    ("waited", "options", "told"),
    [
        (2000, (), [0]),
        (2900, (), []),
        (2900, ("DELAY", 4), [2]),
        (5000, ("DELAY", 4), [0]),
        (6900, ("DELAY", 4), []),
        (6900, ("RETRY", 0), [0]),
    ],
)
def test_a_holder_is_told_to_queue_when_the_delay_is_over_unless_one_may_have_done_so_already(
    waited: int, options: tuple[str | int, ...], told: list[int]
) -> None:
    rig = leaving_rig(peers=1)
    job = waiting_job(
        rig, "REPLICATE", 1, *(("RETRY", 3) if "RETRY" not in options else ()), *options
    )
    rig.advance(waited)
    rig.sent()

    rig.message(N2, GotJob(job.id))

    assert rig.reply() == Status(job.id)
    assert rig.sent() == [(N2, Enqueue(job.id, delay=delay)) for delay in told]


def test_even_a_single_copy_goes_to_another_node() -> None:
    rig = leaving_rig(peers=1)
    job = waiting_job(rig, "REPLICATE", 1)
    rig.sent()

    rig.message(N2, GotJob(job.id))

    assert rig.reply() == Status(job.id)
    assert rig.sent() == [(N2, Enqueue(job.id))]


def test_an_asynchronous_job_of_a_leaving_node_waits_for_its_copies_all_the_same() -> None:
    rig = leaving_rig()
    job = waiting_job(rig, "REPLICATE", 2, "ASYNC", "DELAY", 7)
    # Nobody may get these, and then nobody would have the job.
    assert sorted(repljobs(rig.sent())) == [(N2, False), (N3, False)]

    rig.message(N2, GotJob(job.id))
    assert rig.replies() == []
    rig.message(N3, GotJob(job.id))

    assert rig.reply() == Status(job.id)
    assert [message for _, message in rig.sent()] == [Enqueue(job.id, delay=7)]
    assert rig.node.jobs == {}


def test_a_job_acknowledged_before_any_confirmation_is_left_to_its_holders() -> None:
    rig = leaving_rig()
    job = waiting_job(rig, "REPLICATE", 2)
    rig.sent()

    rig.message(N3, SetAck(job.id, 2))

    assert rig.reply() == Status(job.id)
    assert rig.sent() == [(id, SetAck(job.id, 2)) for id in job.holders]
    assert rig.node.jobs == {}


def test_leaving_does_not_disturb_a_job_that_waits_already() -> None:
    rig = Rig(peers=1)
    job = waiting_job(rig, "REPLICATE", 2)
    rig.ask("CLUSTER", "LEAVING", "yes", client=rig.connect())

    rig.message(N2, GotJob(job.id))

    assert rig.reply() == Status(job.id)
    assert job.state == QUEUED


def test_a_node_that_has_not_confirmed_is_not_taken_for_a_holder_with_a_copy() -> None:
    rig = Rig(peers=3)
    job = waiting_job(rig, "REPLICATE", 2)
    first = job.holders[-1]
    rig.advance(60)
    second = job.holders[-1]
    assert second != first

    rig.message(second, GotJob(job.id))
    assert (job.state, job.confirmed) == (QUEUED, (ME, second))

    rig.message(second, GotJob(job.id))
    rig.message(first, GotJob(job.id))
    assert job.confirmed is None
    rig.message(first, GotJob(job.id))
    assert job.confirmed is None


def stays_after_all(rig: Rig, wait: int, *options: str | int) -> Job:
    """A leaving node has sent a job to two, one of which has it; after a while the node stays."""
    job = waiting_job(rig, "REPLICATE", 2, "RETRY", 3, *options)
    rig.message(N2, GotJob(job.id))
    rig.advance(wait)
    rig.ask("CLUSTER", "LEAVING", "no", client=rig.connect())
    rig.sent()
    rig.advance(100)
    return job


def test_a_node_that_stays_after_all_keeps_and_queues_a_job_that_no_node_can_have_queued() -> None:
    rig = leaving_rig()

    job = stays_after_all(rig, 2500)

    assert rig.reply() == Status(job.id)
    assert ME in job.holders
    assert job.state == QUEUED


@pytest.mark.parametrize("options", [(), ("DELAY", 4)])
def test_one_that_may_be_done_with_already_waits_for_a_period_and_asks(
    options: tuple[str | int, ...],
) -> None:
    rig = leaving_rig()

    job = stays_after_all(rig, 6900 if options else 2900, *options)

    assert rig.reply() == Status(job.id)
    assert job.state == ACTIVE
    rig.sent()
    rig.advance(2800)
    assert (N2, WillQueue(job.id)) in rig.sent()
    rig.message(N2, SetAck(job.id, 0))
    assert job.state == ACKED


def test_a_leaving_node_tells_whoever_sends_it_a_copy_that_the_job_is_over() -> None:
    rig = leaving_rig(peers=1)
    rig.message(N2, SetAck(JOB, 1))
    rig.sent()

    rig.message(N2, ReplJob((copy_of(),)))

    assert rig.sent() == [(N2, SetAck(JOB, 0))]


def test_a_leaving_node_answers_for_a_job_whose_predecessor_does_not_end() -> None:
    rig = keyed_rig(peers=3)
    rig.ask("CLUSTER", "LEAVING", "yes")
    asker = ask(rig, "IFEXISTS", "replace", "REPLICATE", 2, timeout=1000)
    say_all(rig, held(OTHER, EARLY))
    [id] = rig.node.adding
    job = rig.node.jobs[id]
    rig.advance(60)  # a third node is asked to keep a copy, and does not say that it does
    first, second, _ = job.holders
    for node in (first, second):
        rig.message(node, GotJob(id))

    rig.advance(1500)

    assert rig.reply(asker) == Status(id)
