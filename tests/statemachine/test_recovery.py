"""What a node makes of its journal when it starts."""

import attrs
import pytest

from disque_trio.statemachine.base import (
    ACKED,
    ACTIVE,
    BCAST_QUEUED,
    BCAST_WILLQUEUE,
    DELIVERED,
    OK,
    QUEUED,
    RECORDED,
    WAIT_REPL,
    Failure,
    Now,
    Status,
)
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.events import Cause, Kind
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.journaling import STOPPED
from disque_trio.statemachine.messages import (
    GotAck,
    GotJob,
    JobCopy,
    NeedJobs,
    ReplJob,
    SetAck,
    WillQueue,
    YourJobs,
)
from disque_trio.statemachine.records import DeleteJob, LoadJob, Record
from tests.rig import JOB, ME, N2, N3, ONCE, UNKNOWN, WALL, Rig, copy_of

ETIME = WALL // 1000 + 86_400
FIRST_TIME = BCAST_WILLQUEUE
"""Of an origin whose job waits for its delay."""
AGAIN = BCAST_WILLQUEUE | BCAST_QUEUED
"""Of a job that was queued once, or of a copy."""
CONFIG = Config(appendonly=True, cluster_node_timeout=1_000_000_000)
ALWAYS = attrs.evolve(CONFIG, appendfsync="always")
ONCE_MORE = attrs.evolve(CONFIG, aof_enqueue_jobs_once=True)


def recorded(copy: JobCopy, state: int = QUEUED, flags: int = AGAIN) -> LoadJob:
    return LoadJob(attrs.evolve(copy, state=state, flags=flags, etime=ETIME))


def started(*records: Record, config: Config = CONFIG, peers: int = 1, late: int = 0) -> Rig:
    """A node with a journal, `late` milliseconds after the jobs' creation."""
    rig = Rig(peers=peers, config=config)
    rig.now = Now(rig.now.mono + late, WALL + late)
    rig.machine.load(records, rig.now)
    assert rig.machine.loaded(rig.now)
    rig.take()
    rig.outboxes.clear()
    return rig


def queued_after(rig: Rig, job: Job, least: int, most: int) -> bool:
    """Is it queued in this span, and not before?"""
    rig.advance(least)
    was_queued = job.state == QUEUED
    rig.advance(most - least)
    return not was_queued and job.state == QUEUED


def test_a_job_that_was_queued_waits_a_retry_period_because_a_worker_may_have_it() -> None:
    rig = started(recorded(copy_of(retry=60)), late=5000)

    job = rig.node.jobs[JOB]

    assert (job.body, job.holders, job.expires - rig.now.mono) == (b"body", (N2, ME), 86_395_000)
    assert queued_after(rig, job, 59_700, 60_300)


def test_the_next_time_is_announced_and_counted() -> None:
    rig = started(recorded(copy_of(retry=60)))
    rig.advance(61_000)

    assert rig.node.jobs[JOB].deliveries == 1
    assert WillQueue(JOB) in [message for _, message in rig.sent()]


def test_a_delay_that_is_not_over_goes_on() -> None:
    rig = started(recorded(copy_of(delay=10, retry=60), ACTIVE, FIRST_TIME), late=4000)

    job = rig.node.jobs[JOB]

    assert queued_after(rig, job, 5900, 6100)
    assert job.deliveries == 0


def test_a_copy_gives_the_one_that_queues_it_first_a_period_more() -> None:
    rig = started(recorded(copy_of(delay=10, retry=60), ACTIVE, AGAIN), late=4000)

    assert queued_after(rig, rig.node.jobs[JOB], 65_700, 66_300)


def test_a_delay_that_is_over_is_not_applied_again() -> None:
    rig = started(recorded(copy_of(delay=10, retry=60), ACTIVE, FIRST_TIME), late=11_000)

    job = rig.node.jobs[JOB]

    assert queued_after(rig, job, 59_700, 60_300)
    assert job.deliveries == 1, "somebody may have been given it before"


def test_what_has_expired_stays_away() -> None:
    rig = started(recorded(copy_of()), recorded(copy_of()), late=86_400_000)

    assert not rig.node.jobs


def test_the_last_record_counts() -> None:
    rig = started(
        recorded(copy_of(JOB)),
        recorded(copy_of(ONCE)),
        DeleteJob(JOB),
        DeleteJob(b"D-unknown"),
        recorded(copy_of(ONCE, queue=b"other")),
    )

    assert [(job.id, job.queue) for job in rig.node.jobs.values()] == [(ONCE, b"other")]


def test_nodes_that_are_not_known_any_more_are_no_holders() -> None:
    rig = started(recorded(copy_of(holders=(N2, UNKNOWN))))

    assert rig.node.jobs[JOB].holders == (N2, ME)


def test_a_job_that_waited_for_its_copies_in_an_odd_file_is_active() -> None:
    rig = started(recorded(copy_of(), WAIT_REPL))

    assert rig.node.jobs[JOB].state == ACTIVE


def test_queues_that_are_as_the_file_says_are_not_recorded_again() -> None:
    for notes in [STOPPED], []:
        rig = Rig(config=ONCE_MORE)
        rig.machine.load([recorded(copy_of()), *notes], rig.now)
        rig.machine.loaded(rig.now)

        assert rig.node.jobs[JOB].state == QUEUED
        assert bool(rig.take().records) is not bool(notes)


def test_loading_records_nothing() -> None:
    rig = Rig(config=attrs.evolve(ONCE_MORE, aof_queues=False))
    rig.machine.load([recorded(copy_of()), DeleteJob(JOB), recorded(copy_of())], rig.now)
    rig.machine.loaded(rig.now)

    assert not rig.take().records


# Acknowledgements.


def test_an_acknowledgement_goes_on_being_collected() -> None:
    rig = started(recorded(copy_of(), ACKED))
    rig.advance(2000)
    assert (N2, SetAck(JOB, 2)) in rig.sent()

    rig.message(N2, GotAck(JOB, known=True))

    assert not rig.node.jobs


def test_a_dummy_ack_goes_on_being_collected() -> None:
    rig = started(recorded(copy_of(queue=b"", holders=()), ACKED))
    assert rig.node.jobs[JOB].is_dummy

    rig.advance(2000)

    assert (N2, SetAck(JOB, 0)) in rig.sent()


# At-most-once jobs.


@pytest.mark.sample(4)
@pytest.mark.parametrize("state", [ACTIVE, QUEUED])
@pytest.mark.parametrize("config", [CONFIG, ALWAYS], ids=["everysec", "always"])
def test_an_original_server_s_at_most_once_job_may_have_been_delivered(
    config: Config, state: int
) -> None:
    rig = started(recorded(copy_of(ONCE, retry=0), state, BCAST_QUEUED), config=config)
    rig.advance(1_000_000)

    assert rig.node.jobs[ONCE].state == ACTIVE


def test_ours_has_not_if_each_delivery_was_on_disk_first() -> None:
    rig = started(recorded(copy_of(ONCE, retry=0), QUEUED, BCAST_QUEUED | RECORDED), config=ALWAYS)
    rig.advance(100)

    job = rig.node.jobs[ONCE]
    assert (job.state, job.deliveries) == (QUEUED, 0)


def test_ours_may_have_if_the_last_second_can_be_lost() -> None:
    rig = started(recorded(copy_of(ONCE, retry=0), QUEUED, BCAST_QUEUED | RECORDED))
    rig.advance(1_000_000)

    assert rig.node.jobs[ONCE].state == ACTIVE
    assert rig.ask("ENQUEUE", ONCE) == 0


@pytest.mark.slow
def test_one_that_was_delivered_stays_so() -> None:
    flags = BCAST_QUEUED | RECORDED | DELIVERED
    rig = started(recorded(copy_of(ONCE, retry=0), ACTIVE, flags), config=ALWAYS)
    rig.advance(1_000_000)

    assert rig.node.jobs[ONCE].state == ACTIVE


def test_one_whose_delay_is_not_over_is_queued_then() -> None:
    rig = started(recorded(copy_of(ONCE, retry=0, delay=10), ACTIVE, RECORDED), late=4000)

    assert queued_after(rig, rig.node.jobs[ONCE], 5900, 6100)


def test_a_copy_of_one_waits_to_be_told() -> None:
    rig = started(
        recorded(copy_of(ONCE, retry=0, delay=10), ACTIVE, BCAST_QUEUED | RECORDED), config=ALWAYS
    )
    rig.advance(1_000_000)

    assert rig.node.jobs[ONCE].state == ACTIVE


# aof-enqueue-jobs-once.


def test_after_a_controlled_restart_what_was_queued_is_queued_at_once_and_silently() -> None:
    rig = started(
        recorded(copy_of(JOB)), recorded(copy_of(ONCE, retry=0), flags=1), config=ONCE_MORE
    )

    jobs = rig.node.jobs.values()

    assert [job.state for job in jobs] == [QUEUED, QUEUED]
    assert [job.deliveries for job in jobs] == [0, 0]
    assert rig.sent() == []


def test_what_was_not_queued_waits() -> None:
    rig = started(recorded(copy_of(JOB), ACTIVE), config=ONCE_MORE)

    assert queued_after(rig, rig.node.jobs[JOB], 59_700, 60_300)


def test_an_at_most_once_job_that_was_delayed_is_not_lost() -> None:
    delayed = recorded(copy_of(ONCE, retry=0, delay=10), ACTIVE, 0)
    rig = started(delayed, config=ONCE_MORE, late=60_000)
    rig.advance(100)

    assert rig.node.jobs[ONCE].state == QUEUED


def test_it_counts_for_one_restart() -> None:
    assert not started(config=ONCE_MORE).node.config.aof_enqueue_jobs_once


# Meanwhile.


def test_while_loading_nearly_every_command_is_refused() -> None:
    rig = Rig()
    rig.machine.load([], rig.now)

    for words in (("PING",), ("ADDJOB", "q", "x", "0"), ("GETJOB", "FROM", "q"), ("HELLO",)):
        assert rig.ask(*words) == Failure(b"LOADING Disque is loading the dataset in memory")
    assert isinstance(rig.ask("COMMAND", "COUNT"), int)


def test_jobs_come_to_life_in_portions() -> None:
    rig = Rig(config=CONFIG)
    rig.machine.load([recorded(copy_of(JOB)), recorded(copy_of(ONCE))], rig.now)

    assert not rig.machine.loaded(rig.now, 1)
    assert len(rig.node.jobs) == 1
    assert not rig.machine.loaded(rig.now, 1)
    assert rig.machine.loaded(rig.now, 1)

    assert len(rig.node.jobs) == 2
    assert rig.ask("PING") == Status(b"PONG")


def test_a_trace_has_the_restored_jobs_and_nothing_else() -> None:
    rig = Rig(config=CONFIG)
    rig.node.trace = []
    gone, acked = recorded(copy_of(ONCE)), recorded(copy_of(JOB), ACKED)
    rig.machine.load([gone, DeleteJob(ONCE), acked], rig.now)
    rig.machine.loaded(rig.now)

    assert [(event.kind, event.job, event.cause) for event in rig.node.trace] == [
        (Kind.HOLD, JOB, Cause.LOADED),
        (Kind.ACKED, JOB, Cause.LOADED),
    ]


# A journal that cannot be written.

NO_SPACE = Failure(b"MISCONF Errors writing to the AOF file: No space left on device")


def failing(peers: int = 2) -> Rig:
    rig = Rig(peers=peers, config=CONFIG)
    rig.machine.journal_failed("No space left on device", rig.now)
    rig.take()
    return rig


@pytest.mark.parametrize(
    "words", [("ADDJOB", "q", "x", "0"), ("GETJOB", "FROM", "q"), ("ACKJOB", JOB), ("PING",)]
)
def test_what_would_have_to_be_written_is_refused(words: tuple[str, ...]) -> None:
    assert failing().ask(*words) == NO_SPACE


def test_what_only_reads_is_answered() -> None:
    assert failing().ask("QLEN", "q") == 0


def test_clients_that_wait_for_jobs_are_told() -> None:
    rig = Rig(config=CONFIG)
    rig.request("GETJOB", "FROM", "q")
    rig.machine.journal_failed("No space left on device", rig.now)
    rig.take()

    assert rig.reply() == NO_SPACE


def test_no_jobs_are_taken_or_given() -> None:
    rig = Rig(peers=2, config=CONFIG)
    rig.add("REPLICATE", 1)
    rig.machine.journal_failed("No space left on device", rig.now)
    rig.sent()

    rig.message(N2, ReplJob((copy_of(),)))
    rig.message(N2, YourJobs((copy_of(),)))
    rig.message(N3, NeedJobs(b"q", 1))

    assert JOB not in rig.node.jobs
    assert rig.sent() == []


def test_other_messages_count_as_ever() -> None:
    rig = Rig(peers=1, config=CONFIG)
    rig.hold(copy_of())
    rig.machine.journal_failed("No space left on device", rig.now)

    rig.message(N2, SetAck(JOB, 2))

    assert rig.node.jobs[JOB].state == ACKED


def test_once_it_can_be_written_again_everything_is_as_before() -> None:
    rig = failing()
    rig.machine.journal_mended(rig.now)

    assert isinstance(rig.ask("ADDJOB", "q", "x", 0, "REPLICATE", 1), Status)
    rig.message(N2, ReplJob((copy_of(),)))
    assert (N2, GotJob(JOB)) in rig.sent()
    assert rig.ask("CONFIG", "SET", "loglevel", "debug") == OK
