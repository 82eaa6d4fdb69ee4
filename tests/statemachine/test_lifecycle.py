import pytest

from disque_trio.statemachine import lifecycle
from disque_trio.statemachine.base import (
    ACKED,
    ACTIVE,
    BCAST_QUEUED,
    BCAST_WILLQUEUE,
    DELIVERED,
    FOREVER,
    NULL_ARRAY,
    QUEUED,
    QUEUED_ONCE,
    WAIT_REPL,
)
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.messages import Queued, Working, YourJobs
from tests.rig import JOB, ME, N2, N3, ONCE, Rig, copy_of

RETRY = 60_000
SPREAD = range(-250, 250)
GRAIN = 8


def delayed_job_of_two_nodes(rig: Rig) -> bytes:
    job = rig.add("DELAY", 100, "REPLICATE", 2, "RETRY", 60, "ASYNC")
    rig.sent()
    return job.id


# Queueing.


def test_the_first_time_a_job_is_queued_is_not_announced() -> None:
    rig = Rig(peers=1)
    job_id = delayed_job_of_two_nodes(rig)

    assert rig.ask("ENQUEUE", job_id) == 1

    job = rig.node.jobs[job_id]
    assert job.state == QUEUED
    assert job.flags == BCAST_QUEUED | BCAST_WILLQUEUE
    assert (job.nacks, job.deliveries) == (0, 0)
    assert rig.sent() == []


def test_the_next_time_is_announced_and_counts_as_a_delivery() -> None:
    rig = Rig(peers=1)
    job_id = delayed_job_of_two_nodes(rig)
    rig.request("ENQUEUE", job_id)
    rig.request("DEQUEUE", job_id)

    assert rig.ask("ENQUEUE", job_id) == 1

    assert rig.sent() == [(N2, Queued(job_id, redelivery=True, told=True))]
    assert rig.node.jobs[job_id].deliveries == 1


def test_a_nack_is_announced_even_the_first_time_and_arms_nothing() -> None:
    rig = Rig(peers=1)
    job_id = delayed_job_of_two_nodes(rig)

    assert rig.ask("NACK", job_id) == 1
    assert rig.sent() == [(N2, Queued(job_id, nack=True))]
    job = rig.node.jobs[job_id]
    assert (job.nacks, job.deliveries) == (1, 0)
    assert job.flags == BCAST_WILLQUEUE

    rig.request("DEQUEUE", job_id)
    rig.request("ENQUEUE", job_id)
    assert rig.sent() == []
    assert job.flags == BCAST_QUEUED | BCAST_WILLQUEUE


def test_counters_wrap_at_sixteen_bits() -> None:
    rig = Rig()
    job = rig.add()
    job.nacks = job.deliveries = 0xFFFF

    lifecycle.count_delivery(job, nack=True, redelivery=True)

    assert (job.nacks, job.deliveries) == (0, 0)


def test_queueing_starts_the_retry_period_anew() -> None:
    rig = Rig()
    job = rig.add("RETRY", 60)
    rig.request("DEQUEUE", job.id)
    rig.advance(10_000)

    rig.request("ENQUEUE", job.id)

    assert job.requeue_at - rig.now.mono - RETRY in SPREAD


def test_the_spread_of_requeue_times_is_a_quarter_second_either_way() -> None:
    rig = Rig()

    spread = [lifecycle.desync(rig.node) for _ in range(2000)]

    assert all(ms in SPREAD for ms in spread)
    assert max(spread) > 200
    assert min(spread) < -200


def test_a_job_is_in_its_queue_once() -> None:
    rig = Rig()
    job = rig.add()

    assert rig.ask("ENQUEUE", job.id) == 0
    assert rig.queue().jobs_in == len(rig.queue()) == 1


def test_jobs_that_wait_for_copies_or_are_acknowledged_are_not_queued() -> None:
    rig = Rig(peers=2)
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 3, client=rig.connect())
    waiting = next(iter(rig.node.jobs.values()))
    acked = rig.hold(copy_of(holders=(N2, N3, ME)))
    rig.request("ACKJOB", JOB)

    assert (waiting.state, acked.state) == (WAIT_REPL, ACKED)
    assert rig.ask("ENQUEUE", waiting.id, JOB) == 0
    assert rig.ask("NACK", waiting.id, JOB) == 0


def test_an_at_most_once_job_is_queued_once_for_all() -> None:
    rig = Rig()
    job = rig.add("RETRY", 0, "REPLICATE", 1)
    assert job.flags == BCAST_QUEUED | QUEUED_ONCE
    assert job.requeue_at == 0

    assert rig.ask("DEQUEUE", job.id) == 1
    assert rig.ask("ENQUEUE", job.id) == 0
    assert rig.ask("NACK", job.id) == 0
    assert job.state == ACTIVE


def test_queueing_counts_and_refreshes_the_queue() -> None:
    rig = Rig()
    rig.add()
    rig.advance(5000)
    rig.add()

    queue = rig.queue()
    assert (queue.jobs_in, queue.jobs_out) == (2, 0)
    assert queue.accessed == rig.now.mono


# Leaving the queue.


def test_dequeueing_leaves_the_timers_as_they_are() -> None:
    rig = Rig()
    job = rig.add()
    before = job.requeue_at

    assert rig.ask("DEQUEUE", job.id) == 1

    assert (job.state, job.requeue_at, len(rig.queue())) == (ACTIVE, before, 0)
    assert rig.queue().jobs_out == 0


def test_a_fetch_marks_the_job_and_counts() -> None:
    rig = Rig()
    job = rig.add()
    rig.advance(5000)

    rig.request("GETJOB", "FROM", "q")

    assert job.state == ACTIVE
    assert job.flags & DELIVERED
    assert (rig.queue().jobs_out, rig.queue().accessed) == (1, rig.now.mono)


def test_an_expired_job_is_never_delivered() -> None:
    rig = Rig()
    short = rig.add("TTL", 1, "RETRY", 5)
    long = rig.add()
    rig.now.mono += 1000
    rig.now.wall += 1000

    reply = rig.ask("GETJOB", "FROM", "q")

    assert reply == [[b"q", long.id, b"body"]]
    assert short.id not in rig.node.jobs
    assert rig.queue().jobs_out == 1


def test_a_queue_of_expired_jobs_is_empty() -> None:
    rig = Rig()
    rig.add("TTL", 1, "RETRY", 5)
    rig.now.mono += 1000

    assert rig.ask("GETJOB", "NOHANG", "FROM", "q") == NULL_ARRAY
    assert rig.node.jobs == {}


@pytest.mark.parametrize("ttl", [1, 60, 86_400])
def test_a_job_lives_exactly_as_long_as_its_ttl(ttl: int) -> None:
    rig = Rig()
    job = rig.add("TTL", ttl, "RETRY", 0, "REPLICATE", 1)

    rig.advance(ttl * 1000 - 1)
    assert job.id in rig.node.jobs
    rig.advance(GRAIN)
    assert job.id not in rig.node.jobs
    assert rig.ask("QLEN", "q") == 0


def test_a_forgotten_job_leaves_no_timer() -> None:
    rig = Rig()
    job = rig.add()
    rig.request("DELJOB", job.id)
    rig.advance(400_000)

    assert (job.due, job.slot) == (0, None)
    assert rig.machine.deadline() == FOREVER


# Delivery is a lease.


def test_a_delivery_starts_the_period_anew_here_and_at_the_other_holders() -> None:
    rig = Rig(peers=2)
    job = rig.hold(copy_of(holders=(N2, N3, ME)))
    rig.request("ENQUEUE", JOB)
    rig.advance(30_000)
    rig.sent()

    rig.request("GETJOB", "FROM", "q")

    assert rig.sent() == [(N2, Working(JOB)), (N3, Working(JOB))]
    assert job.requeue_at - rig.now.mono - RETRY in SPREAD
    assert job.flags & BCAST_WILLQUEUE


def test_without_leases_a_delivery_leaves_the_period_as_it_is() -> None:
    rig = Rig(peers=1, config=Config(delivery_lease=False))
    job = rig.hold(copy_of())
    rig.request("ENQUEUE", JOB)
    before = job.requeue_at
    rig.advance(30_000)
    rig.sent()

    rig.request("GETJOB", "FROM", "q")

    assert rig.sent() == []
    assert job.requeue_at == before


def test_an_at_most_once_delivery_has_no_lease() -> None:
    rig = Rig(peers=1)
    rig.message(N2, YourJobs((copy_of(ONCE, retry=0),)))

    rig.request("GETJOB", "FROM", "q")

    assert (N2, Working(ONCE)) not in rig.sent()
    assert rig.node.jobs[ONCE].requeue_at == 0


# Queues come and go.


def test_a_queue_unused_for_five_minutes_is_dropped() -> None:
    rig = Rig()
    rig.request("GETJOB", "NOHANG", "FROM", "q")

    rig.advance(299_000)
    assert b"q" in rig.node.queues
    rig.advance(1000 + GRAIN)
    assert b"q" not in rig.node.queues
    assert rig.machine.deadline() == FOREVER


def test_use_postpones_the_drop() -> None:
    rig = Rig()
    rig.request("GETJOB", "NOHANG", "FROM", "q")
    rig.advance(200_000)
    rig.request("DELJOB", rig.add().id)

    rig.advance(299_000)
    assert b"q" in rig.node.queues
    rig.advance(2000)
    assert b"q" not in rig.node.queues


def test_a_queue_with_jobs_a_pause_or_waiting_clients_stays() -> None:
    rig = Rig()
    job = rig.add(queue="full")
    rig.request("PAUSE", "paused", "in")
    rig.request("GETJOB", "FROM", "awaited", client=rig.connect())

    rig.advance(3_600_000)
    assert set(rig.node.queues) == {b"full", b"paused", b"awaited"}

    rig.request("DELJOB", job.id)
    rig.request("PAUSE", "paused", "none")
    rig.advance(10_000 + GRAIN)
    assert set(rig.node.queues) == {b"awaited"}


def test_a_queue_is_dropped_when_its_last_client_goes_after_a_long_wait() -> None:
    rig = Rig()
    worker = rig.connect()
    rig.request("GETJOB", "FROM", "q", "r", client=worker)
    rig.advance(299_000)
    rig.add(queue="q")
    assert rig.replies(worker) != []

    assert set(rig.node.queues) == {b"q", b"r"}
    rig.request("GETJOB", "FROM", "r", client=worker)
    rig.advance(1000)
    rig.disconnect(worker)
    assert set(rig.node.queues) == {b"q"}


def test_a_job_whose_queue_was_dropped_is_found_in_its_new_one() -> None:
    rig = Rig()
    job = rig.add("RETRY", 600)
    other = rig.add()
    rig.request("DEQUEUE", job.id)
    rig.request("DELJOB", other.id)
    rig.advance(310_000)
    assert b"q" not in rig.node.queues

    rig.advance(300_000)

    assert rig.ask("QLEN", "q") == 1
    assert rig.ask("GETJOB", "FROM", "q") == [[b"q", job.id, b"body"]]
