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
from tests.statemachine.requeuing import GRAIN, I_WIN, SPREAD, advance_to, holder_rig

N2_WINS: JobId = b"D-bbbbbbbb-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"


# QUEUED.


def test_a_node_told_that_a_job_is_queued_postpones_it_and_counts() -> None:
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


@pytest.mark.parametrize("message", [Queued, Working])
def test_after_a_delay_that_another_node_has_cut_short_the_next_time_counts(
    message: type[Queued | Working],
) -> None:
    rig = Rig(peers=1, config=CALM)
    rig.request("ADDJOB", "q", "b", 0, "DELAY", 10, "RETRY", 60, "REPLICATE", 2)
    [job] = rig.node.jobs.values()
    rig.message(N2, GotJob(job.id))
    rig.message(N2, message(job.id))
    rig.sent()

    rig.advance(61_000)

    assert (job.state, job.deliveries) == (QUEUED, 1)
    assert rig.sent() == [(N2, WillQueue(job.id)), (N2, Queued(job.id, redelivery=True))]


@pytest.mark.parametrize(("job_id", "state"), [(N2_WINS, ACTIVE), (I_WIN, QUEUED)])
def test_of_two_nodes_that_have_it_queued_one_gives_way(job_id: JobId, state: int) -> None:
    rig = holder_rig(job_id=job_id)
    rig.ask("ENQUEUE", job_id)

    rig.message(N2, Queued(job_id))

    assert rig.node.jobs[job_id].state == state
    assert rig.ask("QLEN", "q") == (state == QUEUED)


def test_the_node_that_keeps_it_says_so() -> None:
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


def test_a_leaving_node_tells_no_holder_to_queue_a_job_that_one_has_queued() -> None:
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
def test_a_node_whose_message_shows_a_copy_is_a_holder(
    message: WillQueue | Queued | Working,
) -> None:
    rig = Rig(peers=2)
    job = rig.hold(copy_of(holders=(N2, ME)))

    rig.message(N3, message)

    assert job.holders == (N2, ME, N3)


@pytest.mark.parametrize("message", [WillQueue(JOB), Queued(JOB), Working(JOB)])
def test_the_sender_of_a_message_about_an_acknowledged_job_is_told(
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
def test_the_sender_of_a_message_about_an_unknown_job_is_not_answered(
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


def test_told_to_queue_later_than_it_would_by_itself_it_keeps_its_own_time() -> None:
    rig = holder_rig()
    due = rig.node.jobs[JOB].requeue_at

    rig.message(N2, Enqueue(JOB, delay=1000))

    assert rig.node.jobs[JOB].requeue_at == due


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


@pytest.mark.parametrize(
    "message",
    [Queued(JOB, redelivery=True), Queued(JOB, nack=True), Queued(JOB), Working(JOB)],
)
def test_a_job_that_has_been_out_already_is_not_queued_as_if_it_were_new(
    message: Queued | Working,
) -> None:
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
