import pytest

from disque_trio.statemachine.base import ACKED
from disque_trio.statemachine.memory import DUMMY_BYTES, JOB_BYTES, QUEUE_BYTES, of_job, of_queue
from tests.rig import JOB, ME, N2, N3, Rig, copy_of


def test_an_empty_node_holds_nothing() -> None:
    assert Rig().node.memory.held == 0


def test_a_job_weighs_its_record_and_its_body() -> None:
    rig = Rig()

    job = rig.add(body="0123456789")

    assert of_job(job) == JOB_BYTES + 10
    assert of_queue(rig.queue()) == QUEUE_BYTES + 1
    assert rig.node.memory.held == of_job(job) + of_queue(rig.queue())


@pytest.mark.parametrize("command", ["ACKJOB", "FASTACK", "DELJOB"])
def test_a_job_that_leaves_is_let_off(command: str) -> None:
    rig = Rig()
    job = rig.add()

    rig.request(command, job.id)

    assert rig.node.memory.held == of_queue(rig.queue())


def test_a_queue_that_is_dropped_is_let_off() -> None:
    rig = Rig()
    rig.request("GETJOB", "NOHANG", "FROM", "q")
    assert rig.node.memory.held == QUEUE_BYTES + 1

    rig.advance(300_000)

    assert not rig.node.queues
    assert rig.node.memory.held == 0


def test_a_flush_lets_off_everything() -> None:
    rig = Rig()
    rig.add()

    rig.request("DEBUG", "FLUSHALL")

    assert rig.node.memory.held == 0


def test_a_dummy_ack_weighs_what_a_record_does() -> None:
    rig = Rig(peers=1)

    rig.request("ACKJOB", JOB)

    assert rig.node.memory.held == of_job(rig.node.jobs[JOB]) == DUMMY_BYTES
    assert list(rig.node.memory.dummies) == [JOB]


def test_jobs_with_the_same_holders_share_the_list_and_the_name() -> None:
    rig = Rig(peers=2)
    ids = [JOB[:-6] + b"%d-05a1" % number for number in (1, 2)]

    one, other = [rig.hold(copy_of(id, holders=(N2, N3), queue=bytes([97 + 1]) * 9)) for id in ids]

    assert one.holders is other.holders
    assert one.holders == (N2, N3, ME)
    assert one.queue is other.queue


def test_queued_jobs_share_the_name_of_their_queue() -> None:
    rig = Rig()

    jobs = [rig.add(queue="a long name") for _ in range(2)]

    assert jobs[0].queue is jobs[1].queue is rig.queue(b"a long name").name


def test_an_acknowledged_job_that_waits_for_others_may_be_evicted() -> None:
    rig = Rig(peers=1)
    job = rig.hold(copy_of())
    assert not rig.node.memory.evictable

    rig.request("ACKJOB", job.id)

    assert job.state == ACKED
    assert list(rig.node.memory.evictable) == [job.id]


def test_an_at_most_once_job_may_be_evicted_once_it_was_delivered() -> None:
    rig = Rig()
    job = rig.add("RETRY", 0, "REPLICATE", 1)
    assert not rig.node.memory.evictable

    rig.request("GETJOB", "FROM", "q")

    assert list(rig.node.memory.evictable) == [job.id]
