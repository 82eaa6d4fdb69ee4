import pytest

from disque_trio.statemachine.base import (
    ACKED,
    ACTIVE,
    BCAST_QUEUED,
    BCAST_WILLQUEUE,
    QUEUED,
    WAIT_REPL,
    JobId,
    Status,
)
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import (
    DelJob,
    Enqueue,
    GotAck,
    GotJob,
    Queued,
    SetAck,
    WillQueue,
    Working,
    YourJobs,
)
from tests.rig import CALM, JOB, ME, N2, N3, ONCE, Rig, copy_of

GRAIN = 8
SPREAD = range(-250, 250)
N2_WINS: JobId = b"D-bbbbbbbb-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
I_WIN: JobId = b"D-bbbbbbbb-BBBBBBBBBBBBBBBBBBBBBBBB-05a1"


def holder_rig(*, retry: int = 60, delay: int = 0, job_id: JobId = JOB) -> Rig:
    """Three nodes hold a job that waits for its retry here."""
    rig = Rig(peers=2, config=CALM)
    rig.hold(copy_of(job_id, holders=(N2, N3, ME), retry=retry, delay=delay))
    return rig


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


def advance_to(rig: Rig, moment: int) -> None:
    rig.advance(moment - rig.now.mono)


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


def test_a_job_that_nobody_fetches_renews_its_period_and_tells_nobody() -> None:
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


# QUEUED.


def test_who_hears_that_a_job_is_queued_postpones_it_and_counts() -> None:
    rig = holder_rig()
    job = rig.node.jobs[JOB]
    rig.advance(59_600)
    rig.sent()

    rig.message(N2, Queued(JOB, redelivery=True))
    assert job.requeue_at - rig.now.mono - 60_000 in SPREAD
    assert job.flags & BCAST_WILLQUEUE
    assert (job.nacks, job.deliveries) == (0, 1)

    rig.message(N2, Queued(JOB, nack=True))
    rig.message(N2, Queued(JOB))
    assert (job.nacks, job.deliveries) == (1, 1)
    assert rig.sent() == []


@pytest.mark.parametrize(("job_id", "state"), [(N2_WINS, ACTIVE), (I_WIN, QUEUED)])
def test_of_two_nodes_that_have_it_queued_one_gives_way(job_id: JobId, state: int) -> None:
    rig = holder_rig(job_id=job_id)
    rig.ask("ENQUEUE", job_id)

    rig.message(N2, Queued(job_id))

    assert rig.node.jobs[job_id].state == state
    assert rig.ask("QLEN", "q") == (state == QUEUED)


def test_the_one_who_keeps_it_says_so() -> None:
    rig = holder_rig(job_id=I_WIN)
    rig.ask("ENQUEUE", I_WIN)
    rig.sent()

    # It comes from one that was not a holder yet when the job was queued here.
    rig.message(N2, Queued(I_WIN))

    assert rig.sent() == [(N2, Queued(I_WIN))]


def test_queued_for_a_job_that_waits_for_copies_postpones_it_too() -> None:
    rig = Rig(peers=2)
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 3, "RETRY", 100)
    job = next(iter(rig.node.jobs.values()))

    rig.message(N2, Queued(job.id, redelivery=True))

    assert (job.state, job.deliveries) == (WAIT_REPL, 1)
    assert job.requeue_at - rig.now.mono - 100_000 in SPREAD


@pytest.mark.parametrize("kind", [Queued, Working])
def test_a_job_that_others_have_queued_is_not_queued_for_having_its_copies(
    kind: type[Queued | Working],
) -> None:
    rig = Rig(peers=2, config=CALM)
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 3, "RETRY", 100)
    job = next(iter(rig.node.jobs.values()))
    rig.message(N2, kind(job.id))
    rig.advance(10_000)

    rig.message(N2, GotJob(job.id))
    rig.message(N3, GotJob(job.id))

    assert rig.reply() == Status(job.id)
    assert (job.state, rig.ask("QLEN", "q")) == (ACTIVE, 0)
    rig.sent()
    rig.advance(91_000)
    assert job.state == QUEUED
    assert rig.sent()[-1] == (N3, Queued(job.id, redelivery=True))


def test_a_leaving_node_has_nobody_queue_a_job_that_somebody_has_queued() -> None:
    rig = Rig(peers=2, config=CALM)
    rig.ask("CLUSTER", "LEAVING", "yes")
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2)
    job = next(iter(rig.node.jobs.values()))
    rig.message(N2, Queued(job.id, redelivery=True))
    rig.sent()

    rig.message(N2, GotJob(job.id))
    rig.message(N3, GotJob(job.id))

    assert rig.reply() == Status(job.id)
    assert rig.sent() == []


def test_an_at_most_once_job_is_not_given_a_time_by_what_others_say() -> None:
    rig = Rig(peers=1)
    rig.hold(copy_of(ONCE, retry=0))

    rig.message(N2, Queued(ONCE))
    rig.message(N2, Working(ONCE))

    assert rig.node.jobs[ONCE].requeue_at == 0


# WORKING.


def test_who_hears_of_work_on_a_job_takes_it_out_and_counts_nothing() -> None:
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


def test_a_client_that_works_on_a_job_has_everybody_postpone_it() -> None:
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
def test_who_would_queue_a_job_that_somebody_works_on_is_told(
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


# WILLQUEUE.


def test_a_warning_is_answered_by_whoever_has_it_queued() -> None:
    rig = holder_rig()
    rig.ask("ENQUEUE", JOB)
    rig.sent()

    rig.message(N2, WillQueue(JOB))

    assert rig.sent() == [(N2, Queued(JOB)), (N3, Queued(JOB))]


def test_a_warning_is_not_answered_by_others() -> None:
    rig = holder_rig()
    before = rig.node.jobs[JOB].requeue_at

    rig.message(N2, WillQueue(JOB))

    assert rig.sent() == []
    assert rig.node.jobs[JOB].requeue_at == before


@pytest.mark.parametrize("message", [WillQueue(JOB), Queued(JOB), Working(JOB)])
def test_who_speaks_of_a_copy_is_a_holder(message: WillQueue | Queued | Working) -> None:
    rig = Rig(peers=2)
    job = rig.hold(copy_of(holders=(N2, ME)))

    rig.message(N3, message)

    assert job.holders == (N2, ME, N3)


@pytest.mark.parametrize("message", [WillQueue(JOB), Queued(JOB), Working(JOB)])
def test_who_speaks_of_an_acknowledged_job_learns_of_it(
    message: WillQueue | Queued | Working,
) -> None:
    rig = holder_rig()
    rig.ask("ACKJOB", JOB)
    rig.sent()

    rig.message(N2, message)

    assert rig.sent() == [(N2, SetAck(JOB, 3))]


@pytest.mark.parametrize("message", [WillQueue(JOB), Queued(JOB), Working(JOB)])
def test_the_collection_waits_for_a_holder_that_turns_up_late(
    message: WillQueue | Queued | Working,
) -> None:
    rig = Rig(peers=2, config=CALM)
    rig.hold(copy_of(holders=(N2, ME)))
    rig.ask("ACKJOB", JOB)
    rig.sent()

    rig.message(N3, message)
    assert rig.sent() == [(N3, SetAck(JOB, 3))]

    rig.message(N2, GotAck(JOB, known=True))
    assert JOB in rig.node.jobs
    rig.message(N3, GotAck(JOB, known=True))
    assert rig.sent() == [(N2, DelJob(JOB)), (N3, DelJob(JOB))]


@pytest.mark.parametrize("message", [WillQueue(JOB), Queued(JOB), Working(JOB), Enqueue(JOB)])
def test_who_speaks_of_an_unknown_job_is_not_answered(
    message: WillQueue | Queued | Working | Enqueue,
) -> None:
    rig = Rig(peers=1)

    rig.message(N2, message)

    assert rig.sent() == []
    assert rig.node.jobs == {}


def test_an_answered_warning_postpones_the_whole_period() -> None:
    rig = holder_rig()
    job = rig.node.jobs[JOB]
    advance_to(rig, job.requeue_at - 500 + GRAIN)
    rig.sent()

    rig.message(N2, Queued(JOB))
    rig.advance(10_000)

    assert job.state == ACTIVE
    assert rig.sent() == []


# ENQUEUE.


def test_a_node_that_is_told_to_queues_in_silence() -> None:
    rig = holder_rig()

    rig.message(N2, Enqueue(JOB))

    job = rig.node.jobs[JOB]
    assert (job.state, job.deliveries) == (QUEUED, 0)
    assert job.flags & BCAST_QUEUED
    assert rig.sent() == []


def test_told_to_queue_later_it_warns_the_others_first() -> None:
    rig = holder_rig()
    rig.message(N2, Enqueue(JOB, delay=10))
    job = rig.node.jobs[JOB]
    assert job.requeue_at == rig.now.mono + 10_000

    rig.advance(9_500 + GRAIN)
    assert rig.sent() == [(N2, WillQueue(JOB)), (N3, WillQueue(JOB))]
    rig.advance(500)
    assert (job.state, job.deliveries) == (QUEUED, 0)
    assert rig.sent() == []


@pytest.mark.parametrize("delay", [0, 5])
def test_an_at_most_once_job_that_came_without_a_time_is_given_one(delay: int) -> None:
    rig = Rig(peers=2)
    job = rig.hold(copy_of(ONCE, retry=0, holders=(N2, N3, ME)))

    rig.message(N2, Enqueue(ONCE, delay=delay))
    rig.advance(delay * 1000 + GRAIN)

    assert job.state == QUEUED
    assert rig.sent() == []


@pytest.mark.parametrize("delay", [0, 5])
def test_an_at_most_once_job_that_had_its_turn_is_given_none(delay: int) -> None:
    rig = Rig(peers=1)
    rig.message(N2, YourJobs((copy_of(ONCE, retry=0),)))
    rig.ask("GETJOB", "FROM", "q")

    rig.message(N2, Enqueue(ONCE, delay=delay))

    job = rig.node.jobs[ONCE]
    assert (job.state, job.requeue_at) == (ACTIVE, 0)


@pytest.mark.parametrize("message", [Queued(JOB, redelivery=True), Queued(JOB, nack=True)])
def test_a_job_that_has_been_out_already_is_not_queued_as_if_it_were_new(message: Queued) -> None:
    rig = holder_rig()
    rig.message(N3, message)

    rig.message(N2, Enqueue(JOB))

    assert rig.node.jobs[JOB].state == ACTIVE


def test_a_queue_paused_in_input_is_not_added_to() -> None:
    rig = holder_rig()
    rig.ask("PAUSE", "q", "in")
    before = rig.node.jobs[JOB].requeue_at

    rig.message(N2, Enqueue(JOB))

    assert (rig.node.jobs[JOB].state, rig.node.jobs[JOB].requeue_at) == (ACTIVE, before)


def test_only_active_jobs_are_told_to_queue() -> None:
    rig = holder_rig()
    rig.ask("ACKJOB", JOB)
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 3)
    waiting = next(job for job in rig.node.jobs.values() if job.state == WAIT_REPL)
    rig.sent()

    rig.message(N2, Enqueue(JOB))
    rig.message(N2, Enqueue(waiting.id))

    assert rig.node.jobs[JOB].state == ACKED
    assert waiting.state == WAIT_REPL
    assert rig.sent() == []


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
