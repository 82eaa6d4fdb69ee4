"""Leaving nodes keep no copy."""

from disque_trio.statemachine.base import QUEUED, Status
from disque_trio.statemachine.messages import Enqueue, GotJob, SetAck
from tests.rig import ME, N2, N3, Rig
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


def test_a_job_acknowledged_before_anybody_confirmed_it_is_left_to_its_holders() -> None:
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


def test_who_was_asked_and_has_not_confirmed_is_not_taken_for_a_holder_that_has_a_copy() -> None:
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
