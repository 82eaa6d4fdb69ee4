import pytest

from disque_trio.statemachine.base import ACKED, ACTIVE, BCAST_QUEUED, QUEUED, Status
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import Enqueue, Queued, WillQueue
from tests.rig import CALM, JOB, N2, N3, Rig, copy_of
from tests.statemachine.requeuing import GRAIN, SPREAD, advance_to, holder_rig

# Due jobs.


def test_an_unacknowledged_job_is_announced_half_a_second_before_it_is_queued() -> None:
    rig = holder_rig()
    job = rig.node.jobs[JOB]
    due = job.requeue_at
    assert due - rig.now.mono - 60_000 in SPREAD

    advance_to(rig, due - 501)
    assert rig.sent() == []
    advance_to(rig, due - 500 + GRAIN)
    assert rig.sent() == [(N2, WillQueue(JOB)), (N3, WillQueue(JOB))]
    assert job.flags == BCAST_QUEUED
    assert job.state == ACTIVE

    advance_to(rig, due - 1)
    assert rig.sent() == []
    advance_to(rig, due + GRAIN)
    assert rig.sent() == [(N2, Queued(JOB, redelivery=True)), (N3, Queued(JOB, redelivery=True))]
    assert (job.state, job.deliveries) == (QUEUED, 1)


def test_a_requeued_job_is_delivered_to_whoever_waits() -> None:
    rig = Rig()
    job = rig.add("RETRY", 1)
    rig.request("GETJOB", "FROM", "q")
    rig.replies()
    rig.request("GETJOB", "WITHCOUNTERS", "FROM", "q")

    rig.advance(1300)

    expected = [[b"q", job.id, b"body", b"nacks", 0, b"additional-deliveries", 1]]
    assert rig.reply() == expected


def test_requeue_times_of_a_second_vary_by_a_quarter_either_way() -> None:
    rig = Rig()
    jobs = [rig.add("RETRY", 1) for _ in range(100)]
    rig.request("DEQUEUE", *(job.id for job in jobs))

    rig.advance(749)
    assert rig.ask("QLEN", "q") == 0
    rig.advance(250)
    assert 20 < len(rig.queue()) < 80
    rig.advance(250 + GRAIN)
    assert rig.ask("QLEN", "q") == 100


def test_a_job_that_is_not_fetched_renews_its_period_without_a_message() -> None:
    rig = holder_rig(retry=10)
    rig.ask("ENQUEUE", JOB)
    rig.sent()
    job = rig.node.jobs[JOB]

    rig.advance(35_000)

    assert rig.sent() == []
    assert (job.state, job.deliveries) == (QUEUED, 1)
    assert 0 < job.requeue_at - rig.now.mono <= 10_250


def test_a_queue_paused_in_input_takes_a_job_back_only_after_the_pause() -> None:
    rig = holder_rig(retry=10)
    job = rig.node.jobs[JOB]
    rig.ask("PAUSE", "q", "in")

    rig.advance(11_000)
    assert job.state == ACTIVE
    assert job.requeue_at - rig.now.mono in range(8_000, 10_300)
    assert [message for _, message in rig.sent()] == [WillQueue(JOB)] * 2

    rig.ask("PAUSE", "q", "none")
    rig.advance(11_000)
    assert job.state == QUEUED


def test_a_delayed_job_is_queued_by_its_origin_in_silence() -> None:
    rig = Rig(peers=1, config=CALM)
    job = rig.add("REPLICATE", 2, "ASYNC", "DELAY", 10)
    rig.sent()

    rig.advance(9_999)
    assert job.state == ACTIVE
    rig.advance(GRAIN)

    assert job.state == QUEUED
    assert rig.sent() == []
    assert (job.nacks, job.deliveries) == (0, 0)


def test_a_replica_waits_for_delay_and_retry_before_it_takes_over() -> None:
    rig = holder_rig(retry=10, delay=100)

    rig.advance(109_000)
    assert rig.ask("QLEN", "q") == 0
    rig.advance(1_260)
    assert rig.ask("QLEN", "q") == 1


def test_a_delayed_at_most_once_job_is_queued_even_into_a_paused_queue() -> None:
    rig = Rig()
    job = rig.add("DELAY", 5, "RETRY", 0, "REPLICATE", 1)
    rig.ask("PAUSE", "q", "in")

    rig.advance(5_000 + GRAIN)

    assert job.state == QUEUED
    assert job.requeue_at == 0


def test_an_at_most_once_job_comes_only_once() -> None:
    rig = Rig()
    job = rig.add("DELAY", 5, "RETRY", 0, "REPLICATE", 1)
    rig.advance(6_000)
    assert rig.ask("GETJOB", "FROM", "q") == [[b"q", job.id, b"body"]]

    rig.advance(1_000_000)

    assert rig.ask("QLEN", "q") == 0
    assert job.state == ACTIVE


@pytest.mark.parametrize("state", [ACTIVE, QUEUED, ACKED])
def test_a_job_expires_in_whatever_state(state: int) -> None:
    rig = Rig(peers=1, config=CALM)
    rig.hold(copy_of(ttl=20, retry=300))
    if state == QUEUED:
        rig.ask("ENQUEUE", JOB)
    elif state == ACKED:
        rig.ask("ACKJOB", JOB)
    assert rig.node.jobs[JOB].state == state

    rig.advance(20_999)
    assert JOB in rig.node.jobs
    rig.advance(GRAIN)
    assert rig.node.jobs == {}
    assert rig.ask("QLEN", "q") == 0


# Appendix B, from one seat.


def test_a_nack_is_told_to_the_other_holders() -> None:
    rig = holder_rig()
    rig.message(N2, Enqueue(JOB))
    rig.ask("GETJOB", "FROM", "q")
    rig.sent()

    assert rig.ask("NACK", JOB) == 1

    assert rig.sent() == [(N2, Queued(JOB, nack=True)), (N3, Queued(JOB, nack=True))]


def test_a_life_with_one_lost_worker() -> None:
    rig = Rig()
    reply = rig.ask("ADDJOB", "q", "body", 0, "RETRY", 10)
    assert isinstance(reply, Status)
    job: Job = rig.node.jobs[reply.text]
    rig.advance(9_000)
    rig.ask("GETJOB", "FROM", "q")

    # The worker has its whole period from the delivery on.
    rig.advance(9_700)
    assert job.state == ACTIVE
    rig.advance(600)
    assert rig.ask("GETJOB", "FROM", "q") == [[b"q", job.id, b"body"]]
    assert rig.ask("ACKJOB", job.id) == 1
    assert rig.node.jobs == {}
