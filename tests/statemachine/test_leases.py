import pytest

from disque_trio.statemachine.base import ACTIVE, BCAST_WILLQUEUE, DELIVERED, LEASED, QUEUED
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import Queued, WillQueue, Working, YourJobs
from tests.rig import CALM, JOB, ME, N2, N3, Rig, copy_of
from tests.statemachine.federating import give
from tests.statemachine.requeuing import GRAIN, I_WIN, SPREAD, advance_to, holder_rig


def leased_rig(by: str = "GETJOB", config: Config = CALM) -> tuple[Rig, Job]:
    """Three nodes hold a job that somebody works on: it was delivered here, or is worked on."""
    rig = Rig(peers=2, config=config)
    job = rig.hold(copy_of(holders=(N2, N3, ME)))
    if by == "GETJOB":
        rig.ask("ENQUEUE", JOB)
        rig.ask("GETJOB", "FROM", "q")
    else:
        rig.ask("WORKING", JOB)
    rig.sent()
    return rig, job


# WORKING.


def test_a_node_told_of_work_on_a_job_dequeues_it_and_counts_nothing() -> None:
    rig = holder_rig(job_id=I_WIN)
    rig.ask("ENQUEUE", I_WIN)
    rig.advance(30_000)
    rig.sent()
    job = rig.node.jobs[I_WIN]

    rig.message(N2, Working(I_WIN))

    assert (job.state, job.nacks, job.deliveries) == (ACTIVE, 0, 1)
    assert job.requeue_at - rig.now.mono - 60_000 in SPREAD
    assert rig.sent() == []
    assert rig.ask("QLEN", "q") == 0


def test_working_makes_all_holders_postpone_the_job() -> None:
    rig = holder_rig()
    rig.ask("ENQUEUE", JOB)
    rig.advance(30_000)
    rig.sent()
    job = rig.node.jobs[JOB]

    assert rig.ask("WORKING", JOB) == 60

    assert rig.sent() == [(N2, Working(JOB)), (N3, Working(JOB))]
    assert job.state == ACTIVE
    assert job.flags & BCAST_WILLQUEUE
    assert job.requeue_at - rig.now.mono - 60_000 in SPREAD


# A lease that runs.


@pytest.mark.parametrize("message", [WillQueue(JOB), Queued(JOB), Queued(JOB, redelivery=True)])
@pytest.mark.parametrize("by", ["GETJOB", "WORKING"])
def test_a_holder_that_would_queue_a_leased_job_is_told(
    by: str, message: WillQueue | Queued
) -> None:
    rig, job = leased_rig(by)
    due = job.requeue_at
    rig.advance(30_000)

    rig.message(N2, message)

    assert rig.sent() == [(N2, Working(JOB))]
    # Or else two nodes could renew each other's periods for ever.
    assert job.requeue_at == due


@pytest.mark.parametrize("message", [Queued(JOB, nack=True), Queued(JOB, told=True)])
def test_a_client_may_end_a_lease(message: Queued) -> None:
    rig, job = leased_rig()

    rig.message(N2, message)
    rig.message(N2, Queued(JOB))

    assert rig.sent() == []
    assert job.requeue_at - rig.now.mono - 60_000 in SPREAD


def test_the_last_half_second_of_a_lease_is_free_to_all() -> None:
    rig, job = leased_rig()
    advance_to(rig, job.requeue_at - 500)

    rig.message(N2, WillQueue(JOB))
    rig.message(N2, Queued(JOB, redelivery=True))

    assert rig.sent() == []
    assert job.requeue_at - rig.now.mono - 60_000 in SPREAD


def test_a_lease_is_over_even_if_a_paused_queue_takes_the_job_back_later() -> None:
    rig, job = leased_rig()
    rig.ask("PAUSE", "q", "in")
    advance_to(rig, job.requeue_at + GRAIN)
    assert job.requeue_at - rig.now.mono - 60_000 in SPREAD
    rig.sent()

    rig.message(N2, Queued(JOB, redelivery=True))

    assert rig.sent() == []


def test_holders_are_warned_of_each_period_that_a_paused_queue_lets_pass() -> None:
    rig, job = leased_rig()
    rig.ask("PAUSE", "q", "in")
    for _ in range(2):
        advance_to(rig, job.requeue_at - 500 + GRAIN)
        assert rig.sent() == [(N2, WillQueue(JOB)), (N3, WillQueue(JOB))]
        advance_to(rig, job.requeue_at + GRAIN)
    rig.ask("PAUSE", "q", "none")
    advance_to(rig, job.requeue_at - 500 + GRAIN)

    rig.message(N2, Working(JOB))
    rig.advance(1000)

    assert job.state == ACTIVE


def test_the_lease_of_another_node_is_for_that_one_to_defend() -> None:
    rig, job = leased_rig()
    rig.message(N2, Working(JOB))

    rig.message(N3, Queued(JOB))

    assert rig.sent() == []
    assert job.requeue_at - rig.now.mono - 60_000 in SPREAD


def test_a_job_that_is_queued_again_is_not_leased_any_more() -> None:
    rig, _ = leased_rig()
    rig.ask("NACK", JOB)
    rig.ask("DEQUEUE", JOB)
    rig.sent()

    rig.message(N2, Queued(JOB))

    assert rig.sent() == []


def test_without_leases_a_delivery_defends_nothing() -> None:
    rig, _ = leased_rig(config=Config(cluster_node_timeout=1_000_000_000, delivery_lease=False))

    rig.message(N2, Queued(JOB))

    assert rig.sent() == []


@pytest.mark.parametrize(("has_lease", "leased"), [(True, 2), (False, 0)])
def test_jobs_that_are_fetched_together_are_leased_if_deliveries_are(
    has_lease: bool, leased: int
) -> None:
    rig = Rig(config=Config(cluster_node_timeout=1_000_000_000, delivery_lease=has_lease))
    jobs = [rig.add(), rig.add()]

    rig.ask("GETJOB", "COUNT", 2, "FROM", "q")

    assert sum(bool(job.flags & LEASED) for job in jobs) == leased
    assert all(job.flags & DELIVERED for job in jobs)


# Transfers after news of a worker.


def test_a_transfer_that_comes_after_working_is_not_queued() -> None:
    rig = Rig(peers=2)
    job = rig.hold(copy_of(holders=(N2, N3, ME)))
    rig.message(N3, Working(JOB))

    give(rig, N2, JOB)

    assert job.state == ACTIVE
    assert rig.sent() == []


@pytest.mark.parametrize("since", ["nack", "delivery", "queued", "a period", "a client"])
def test_a_job_that_was_queued_again_after_the_worker_is_taken(since: str) -> None:
    rig = Rig(peers=2)
    job = rig.hold(copy_of(holders=(N2, N3, ME)))
    rig.message(N3, Working(JOB))
    copy = copy_of(holders=(N2, N3, ME))
    if since == "nack":
        copy.nacks = 1
    elif since == "delivery":
        copy.deliveries = 1
    elif since == "queued":
        rig.message(N2, Queued(JOB, redelivery=True))
    elif since == "a period":
        advance_to(rig, job.requeue_at - 500 + GRAIN)
    else:
        rig.ask("ENQUEUE", JOB)
        rig.ask("DEQUEUE", JOB)

    rig.message(N2, YourJobs((copy,)))

    assert job.state == QUEUED
