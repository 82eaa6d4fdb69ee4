"""Jobs that were queued when the node ended, while it asks their other holders: what is recorded of
them until they are queued again, for the case that the node ends before."""

import attrs
import pytest

from disque_trio.statemachine.base import ACTIVE, BCAST_QUEUED, QUEUED
from disque_trio.statemachine.job import ANNOUNCE_AHEAD
from disque_trio.statemachine.journaling import STOPPED, left, stored
from disque_trio.statemachine.messages import JobError, Queued, WillQueue, Working
from disque_trio.statemachine.records import LoadJob, Record
from disque_trio.statemachine.recovery import LINKS_UP
from tests.rig import JOB, ME, N2, Rig, copy_of
from tests.statemachine.test_journaling import records
from tests.statemachine.test_recovery import ALWAYS, CONFIG, recorded, started

HELD_BY_TWO = recorded(copy_of(JOB, holders=(ME, N2)))
DECIDED = LINKS_UP + ANNOUNCE_AHEAD + 10


def asking(*notes: Record) -> Rig:
    """A node that has just started, with a job that was queued when it ended."""
    rig = started(HELD_BY_TWO, *notes, STOPPED)
    assert rig.node.jobs[JOB].state == ACTIVE
    return rig


def started_again(rig: Rig) -> Rig:
    """The same node after a kill: nobody answers it this time."""
    return started(HELD_BY_TWO, *records(rig), STOPPED)


def is_queued_soon(rig: Rig) -> bool:
    """Is the job queued once nobody has answered?"""
    rig.advance(DECIDED)
    return rig.node.jobs[JOB].state == QUEUED


def test_a_node_that_is_killed_while_it_asks_asks_again() -> None:
    assert is_queued_soon(started_again(asking()))


@pytest.mark.parametrize("aof_queues", [True, False])
@pytest.mark.parametrize("retry", [60, 0])
def test_a_job_that_returns_is_not_written_again(retry: int, *, aof_queues: bool) -> None:
    held = recorded(copy_of(JOB, holders=(ME, N2), retry=retry))
    rig = started(held, STOPPED, config=attrs.evolve(ALWAYS, aof_queues=aof_queues))

    assert is_queued_soon(rig)

    assert records(rig) == []
    assert is_queued_soon(started(held, STOPPED, config=ALWAYS))


def test_a_worker_s_nack_is_written_all_the_same() -> None:
    rig = asking()
    rig.ask("NACK", JOB)

    [record] = records(rig)
    assert isinstance(record, LoadJob)
    assert (record.copy.state, record.copy.nacks) == (QUEUED, 1)


@pytest.mark.parametrize("answer", [Queued(JOB), Working(JOB)])
def test_a_job_that_another_holder_has_taken_is_not_returned_by_the_start_after_the_next_kill(
    answer: Queued | Working,
) -> None:
    rig = asking()
    rig.message(N2, answer)

    assert rig.outboxes[-1].records == [left(JOB)]
    assert not is_queued_soon(started_again(rig))


def test_so_it_is_after_a_worker_has_asked_this_node_for_more_time() -> None:
    rig = asking()
    rig.ask("WORKING", JOB)

    assert rig.outboxes[-1].records == [left(JOB)]
    assert not is_queued_soon(started_again(rig))


def test_it_is_recorded_once() -> None:
    rig = asking()
    rig.message(N2, Working(JOB))
    rig.message(N2, Working(JOB))
    rig.ask("WORKING", JOB)

    assert records(rig) == [left(JOB)]


def test_a_worker_s_delay_is_recorded_instead() -> None:
    rig = asking()
    rig.ask("NACK", JOB, "DELAY", 30)

    [record] = records(rig)
    assert isinstance(record, LoadJob)
    assert record.copy.state == ACTIVE


def test_without_aof_queues_nothing_is_recorded() -> None:
    rig = started(HELD_BY_TWO, STOPPED, config=attrs.evolve(CONFIG, aof_queues=False))
    rig.message(N2, Working(JOB))

    assert records(rig) == []


def test_a_node_that_stops_while_it_asks_records_it_as_queued() -> None:
    rig = asking()
    rig.machine.record_queues(on=True)
    copy = stored(rig.node, rig.node.jobs[JOB])

    assert is_queued_soon(started(LoadJob(copy), STOPPED))


def test_what_is_said_while_it_stops_is_recorded() -> None:
    rig = asking()
    rig.machine.record_queues(on=True)
    rig.message(N2, Working(JOB))

    [record] = records(rig)
    assert isinstance(record, LoadJob)
    assert record.copy.state == ACTIVE


def test_other_news_leaves_it_recorded_as_queued() -> None:
    rig = asking()
    rig.message(N2, JobError(JOB, 1, b"an error"))

    [record] = records(rig)
    assert isinstance(record, LoadJob)
    assert record.copy.state == QUEUED
    assert is_queued_soon(started_again(rig))


def test_a_delay_that_was_over_stays_so_in_a_new_record() -> None:
    held = recorded(copy_of(JOB, holders=(ME, N2), delay=5))
    rig = started(held, STOPPED, late=6000)

    copy = stored(rig.node, rig.node.jobs[JOB])
    assert copy.due == 1
    assert not is_queued_soon(started(LoadJob(copy), left(JOB), late=6000))


def test_while_its_queue_is_paused_it_is_recorded_as_queued() -> None:
    rig = asking()
    rig.ask("PAUSE", "q", "in")
    rig.advance(DECIDED)

    assert rig.node.jobs[JOB].state == ACTIVE
    assert is_queued_soon(started_again(rig))


@pytest.mark.parametrize("answer", [Queued(JOB), Working(JOB)])
def test_after_it_was_taken_elsewhere_the_next_time_is_announced_and_counted(
    answer: Queued | Working,
) -> None:
    rig = asking()
    rig.message(N2, answer)
    rig.sent()
    job = rig.node.jobs[JOB]

    rig.advance(61_000)

    assert job.state == QUEUED
    assert job.deliveries == 1
    assert rig.sent() == [(N2, WillQueue(JOB)), (N2, Queued(JOB, redelivery=True))]
    assert job.flags & BCAST_QUEUED
