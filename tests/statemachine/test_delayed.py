"""Delayed jobs are counted, by queue, with the moment when the first is due, and at no cost for
other jobs."""

import pytest

from disque_trio.statemachine.backlog import Backlog
from disque_trio.statemachine.invariants import check
from disque_trio.statemachine.messages import Enqueue
from tests.rig import ME, N2, WALL, Rig, copy_of
from tests.statemachine.commands.informed import fields_of
from tests.statemachine.counting import stat
from tests.statemachine.restoring import restarted, was_delayed, was_queued


def due(rig: Rig, queue: str = "q") -> tuple[object, int]:
    """How many are delayed, and in how many seconds the first is queued, rounded up; -1 if there is
    none."""
    said = stat(rig, queue)
    left = said[b"delayed-due-ms"]
    if left is None:
        return said[b"delayed"], -1
    assert isinstance(left, int)
    return said[b"delayed"], -(-left // 1000)


def test_qstat_says_when_the_first_delayed_job_is_queued() -> None:
    rig = Rig()
    rig.add()
    later, _, first = (rig.add("DELAY", delay).id for delay in (3600, 36_000, 60))
    assert due(rig) == (3, 60)

    rig.advance(20_000)
    assert due(rig) == (3, 40)

    rig.ask("DELJOB", first)
    assert due(rig) == (2, 3580)
    rig.ask("ENQUEUE", later)
    assert due(rig) == (1, 36_000 - 20)


def test_a_delay_that_is_over_is_not_counted_any_more() -> None:
    rig = Rig()
    rig.add("DELAY", 60)
    rig.add()

    rig.advance(61_000)

    assert due(rig) == (0, -1)
    assert rig.node.delayed == {}
    assert rig.node.due_seconds == 0


@pytest.mark.parametrize("command", ["NACK", "RELEASE"])
def test_the_delay_of_a_job_that_is_given_back_is_one(command: str) -> None:
    rig = Rig()
    job = rig.add()
    rig.ask("GETJOB", "FROM", "q")

    rig.ask(command, job.id, "DELAY", 7200)

    assert due(rig) == (1, 7200)


def test_so_is_what_is_left_of_it_after_a_restart() -> None:
    rig = restarted(was_delayed(1, delay=600), was_queued(2, retry=3600), late=100_000)
    assert due(rig) == (1, 500)


def test_a_holder_that_is_to_queue_it_earlier_counts_that() -> None:
    rig = Rig(peers=1)
    rig.add("REPLICATE", 1)
    job = rig.hold(copy_of(holders=(N2, ME), delay=3600, retry=0))

    rig.message(N2, Enqueue(job.id, 1800))
    assert due(rig) == (1, 1800)
    rig.message(N2, Enqueue(job.id, 60))
    assert due(rig) == (1, 60)
    check(rig.node)


def test_info_and_qscan_tell_it_too() -> None:
    rig = Rig()
    assert "delayed_jobs_first_due_ms" not in fields_of(rig, "jobs")
    rig.add("DELAY", 60)
    for delay in (90, 100):
        rig.add("DELAY", delay, queue="r")

    said = fields_of(rig, "jobs")

    assert (said["delayed_jobs"], said["delayed_jobs_by_queue"]) == ("3", "r=2,q=1")
    assert 58_000 < int(said["delayed_jobs_first_due_ms"]) <= 60_000
    reply = rig.ask("QSCAN", "0", "REPLY", "stat", "UNQUEUED")
    assert isinstance(reply, list)
    assert isinstance(reply[1], list)
    figures = reply[1][1]
    assert isinstance(figures, bytes)
    assert abs(int(figures.split()[12]) - WALL // 1000 - 60) <= 1


def test_jobs_that_are_due_in_the_same_second_take_no_memory_of_their_own() -> None:
    rig = Rig()
    rig.add("DELAY", 60)
    job = rig.add("DELAY", 60)
    assert rig.node.due_seconds == 1
    rig.add("DELAY", 90)
    assert rig.node.due_seconds == 2
    rig.ask("DELJOB", job.id)
    assert rig.node.due_seconds == 2


def test_seconds_whose_jobs_have_left_early_do_not_pile_up() -> None:
    backlog = Backlog()
    backlog.add(1000)
    for second in range(2, 5000):
        backlog.add(second * 1000)
        backlog.remove(second * 1000)

    assert len(backlog._order) < 100
    assert backlog.first_due() == 1000
