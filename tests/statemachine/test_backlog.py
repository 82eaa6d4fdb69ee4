"""Jobs that wait for the end of their RETRY after a restart are counted, by queue, with the moment
when the first is due."""

import random

import pytest

from disque_trio.statemachine.backlog import Backlog
from disque_trio.statemachine.base import NULL_ARRAY, RESTORED
from disque_trio.statemachine.messages import Queued, Working
from disque_trio.statemachine.records import DeleteJob
from tests.rig import ME, N2, WALL, Rig, copy_of
from tests.statemachine.commands.informed import fields_of
from tests.statemachine.counting import stat
from tests.statemachine.restoring import job_id, restarted, was_delayed, was_queued


def figures(rig: Rig, *option: str) -> list[bytes]:
    reply = rig.ask("QSCAN", "0", "REPLY", "stat", *option)
    assert isinstance(reply, list)
    assert isinstance(reply[1], list)
    _name, word = reply[1]
    assert isinstance(word, bytes)
    return word.split()


def test_jobs_that_wait_after_a_restart_are_counted_until_they_are_queued() -> None:
    rig = restarted(*(was_queued(n) for n in range(20)), was_queued(20, retry=3600))
    assert (stat(rig)[b"unqueued"], stat(rig)[b"restored"], stat(rig)[b"len"]) == (21, 21, 0)
    due = stat(rig)[b"restored-due-ms"]
    assert isinstance(due, int)
    assert 58_500 < due <= 60_250

    rig.advance(61_000)
    assert (stat(rig)[b"unqueued"], stat(rig)[b"restored"], stat(rig)[b"len"]) == (1, 1, 20)
    due = stat(rig)[b"restored-due-ms"]
    assert isinstance(due, int)
    assert 3_536_000 < due < 3_540_000

    rig.advance(3_600_000)
    assert (stat(rig)[b"restored"], stat(rig)[b"restored-due-ms"]) == (0, None)
    assert not rig.node.restored


def test_a_queue_that_was_never_used_is_unknown_and_one_with_waiting_jobs_is_not() -> None:
    rig = restarted(was_queued(1))

    assert rig.ask("QSTAT", "other") is NULL_ARRAY
    assert rig.ask("QSCAN", "0") == [b"0", []]
    assert rig.ask("QSCAN", "0", "UNQUEUED") == [b"0", [b"q"]]
    *plain, unqueued, restored, due, delayed_due = figures(rig, "UNQUEUED")
    assert len(plain) == 9
    assert (unqueued, restored, delayed_due) == (b"1", b"1", b"0")
    assert 59 <= int(due) - WALL // 1000 <= 61


def test_qscan_without_the_option_tells_the_figures_of_before() -> None:
    rig = Rig()
    rig.add()

    assert len(figures(rig)) == 9


def test_the_reasons_are_counted_apart() -> None:
    rig = restarted(was_queued(1), was_delayed(2, delay=600))
    rig.add("RETRY", 600)
    rig.ask("GETJOB", "FROM", "q")

    said = stat(rig)

    assert (said[b"restored"], said[b"delayed"], said[b"leased"]) == (1, 1, 1)
    assert said[b"unqueued"] == 3


def test_a_copy_of_another_node_s_job_is_not_queued_here() -> None:
    rig = Rig(peers=1)
    rig.hold(copy_of(holders=(N2, ME)))
    rig.ask("GETJOB", "NOHANG", "FROM", "q")

    assert (stat(rig)[b"unqueued"], stat(rig)[b"restored"]) == (1, 0)


def test_what_another_holder_says_ends_the_wait() -> None:
    rig = restarted(*(was_queued(n, holders=(ME, N2)) for n in range(3)), peers=1)

    rig.message(N2, Queued(job_id(0)))
    rig.message(N2, Working(job_id(1)))

    assert (stat(rig)[b"unqueued"], stat(rig)[b"restored"]) == (3, 1)


@pytest.mark.parametrize("holders", [(ME,), (ME, N2)])
def test_a_restored_job_that_is_acknowledged_is_not_counted_any_more(
    holders: tuple[bytes, ...],
) -> None:
    rig = restarted(*(was_queued(n, holders=holders) for n in range(3)), peers=1)

    rig.ask("ACKJOB", job_id(0), job_id(1))

    assert (stat(rig)[b"unqueued"], stat(rig)[b"restored"]) == (1, 1)


def test_info_names_the_queues_and_the_first_moment() -> None:
    rig = restarted(*(was_queued(n) for n in range(3)), was_queued(3, queue=b"r", retry=10))

    said = fields_of(rig, "jobs")

    assert said["unqueued_jobs"] == said["restored_jobs"] == "4"
    assert said["restored_jobs_by_queue"] == "q=3,r=1"
    assert 8_000 < int(said["restored_jobs_first_due_ms"]) <= 10_250
    rig.advance(61_000)
    assert "restored_jobs_by_queue" not in fields_of(rig, "jobs")


def test_jobs_that_expired_while_the_node_was_down_are_counted() -> None:
    rig = restarted(
        was_queued(1), was_queued(1), was_queued(2), was_queued(3), DeleteJob(job_id(3)),
        late=86_401_000,
    )  # fmt: skip

    assert fields_of(rig, "jobs")["expired_while_down"] == "2"
    assert not rig.node.expired
    assert not rig.node.jobs


@pytest.mark.pure
def test_waiting_after_a_restart_costs_no_memory_of_its_own() -> None:
    rig = restarted(*(was_queued(n) for n in range(2)))

    one, other = (rig.node.jobs[job_id(n)] for n in range(2))

    assert one.flags & RESTORED
    assert one.flags is other.flags


def test_the_first_moment_is_that_of_the_jobs_that_are_left() -> None:
    dice, backlog = random.Random(7), Backlog()
    left: list[int] = []
    for _ in range(3000):
        if left and dice.random() < 0.5:
            backlog.remove(left.pop(dice.randrange(len(left))))
        else:
            left.append(dice.randrange(50_000))
            backlog.add(left[-1])
        assert backlog.number == len(left)
        if left:
            assert backlog.first_due() == min(left) // 1000 * 1000
