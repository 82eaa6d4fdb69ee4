"""ENQUEUE QUEUE: the jobs of a queue that wait for the end of their RETRY."""

import attrs
import pytest

from disque_trio.statemachine.base import BCAST_QUEUED, BCAST_WILLQUEUE, Failure
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.knobs import DEFAULTS
from disque_trio.statemachine.messages import Queued, WillQueue, Working
from disque_trio.statemachine.records import LoadJob
from tests.rig import ME, N2, Rig
from tests.statemachine.counting import stat
from tests.statemachine.restoring import job_id, restarted, was_delayed, was_queued

LOOKS = DEFAULTS.enqueuing_looks


def length(rig: Rig, queue: str = "q") -> object:
    return rig.ask("QLEN", queue)


def test_what_waits_after_a_restart_is_queued_at_once() -> None:
    rig = restarted(*(was_queued(n) for n in range(20)), was_queued(20, queue=b"other"))

    assert rig.ask("ENQUEUE", "QUEUE", "q") == 20

    assert (length(rig), length(rig, "other")) == (20, 0)
    assert stat(rig)[b"restored"] == 0
    assert rig.ask("enqueue", "queue", "q") == 0


def test_count_takes_those_that_were_added_first() -> None:
    rig = restarted(*(was_queued(n) for n in range(5)))

    assert rig.ask("ENQUEUE", "QUEUE", "q", "COUNT", 2) == 2

    [[_, first, _], [_, second, _]] = rig.ask("GETJOB", "COUNT", 5, "FROM", "q")  # type: ignore[misc]
    assert (first, second) == (job_id(0), job_id(1))


def test_delayed_jobs_and_jobs_of_workers_stay() -> None:
    rig = restarted(was_delayed(1, delay=600))
    rig.add("RETRY", 600)
    rig.ask("GETJOB", "FROM", "q")
    nacked = rig.add("RETRY", 600)
    rig.ask("GETJOB", "FROM", "q")
    rig.ask("NACK", nacked.id, "DELAY", 60)

    assert rig.ask("ENQUEUE", "QUEUE", "q") == 0

    assert length(rig) == 0


def test_a_job_that_dequeue_has_put_back_is_queued() -> None:
    rig = Rig()
    job = rig.add()
    rig.ask("DEQUEUE", job.id)

    assert rig.ask("ENQUEUE", "QUEUE", "q") == 1


def test_without_leases_a_job_that_was_delivered_stays_with_its_worker() -> None:
    rig = Rig(config=Config(delivery_lease=False, trace_sample=0))
    rig.add()
    rig.ask("GETJOB", "FROM", "q")

    assert rig.ask("ENQUEUE", "QUEUE", "q") == 0


def test_other_holders_are_asked_first_and_may_object() -> None:
    rig = restarted(*(was_queued(n, holders=(ME, N2)) for n in range(3)), peers=1)

    assert rig.ask("ENQUEUE", "QUEUE", "q") == 3
    rig.advance(508)
    told = [message.id for _, message in rig.sent() if isinstance(message, WillQueue)]
    assert sorted(told) == [job_id(n) for n in range(3)]
    rig.message(N2, Queued(job_id(0)))
    rig.message(N2, Working(job_id(1)))
    rig.advance(1000)

    assert length(rig) == 1
    assert stat(rig)[b"restored"] == 0


@pytest.mark.parametrize(
    "words",
    [
        ("QUEUE",),
        ("QUEUE", "q", "COUNT"),
        ("QUEUE", "q", "COUNT", "0"),
        ("QUEUE", "q", "COUNT", "1", "COUNT", "1"),
        ("QUEUE", "q", "FAST"),
        ("q",),
    ],
)
def test_other_words_are_refused(words: tuple[str, ...]) -> None:
    rig = restarted(was_queued(1))

    assert isinstance(rig.ask("ENQUEUE", *words), Failure)
    assert length(rig) == 0


def test_many_jobs_are_looked_at_in_pieces_between_which_others_are_served() -> None:
    rig = restarted(*(was_queued(n, queue=b"r") for n in range(LOOKS)), was_queued(LOOKS))
    other, leaving = rig.connect(), rig.connect()

    rig.request("ENQUEUE", "QUEUE", "q")
    rig.request("ENQUEUE", "QUEUE", "r", "COUNT", 1, client=leaving)
    assert rig.replies() == []
    assert rig.ask("PING", client=other) is not None
    rig.disconnect(leaving)
    rig.advance(100)

    assert rig.replies() == [1]
    assert (length(rig), length(rig, "r")) == (1, 1)
    assert not rig.node.enqueuing.orders


def test_a_job_that_is_due_sooner_is_not_put_off() -> None:
    rig = restarted(was_queued(1, holders=(ME, N2), retry=10), peers=1)
    rig.advance(9_000)
    due = rig.node.jobs[job_id(1)].requeue_at

    assert rig.ask("ENQUEUE", "QUEUE", "q") == 1

    assert rig.node.jobs[job_id(1)].requeue_at <= due


def test_the_end_of_a_lease_is_left_to_its_worker() -> None:
    rig = Rig()
    rig.add("RETRY", 10)
    rig.ask("GETJOB", "FROM", "q")
    rig.advance(9_600)

    assert rig.ask("ENQUEUE", "QUEUE", "q") == 0


def test_the_copy_of_a_job_whose_delay_is_not_over_does_not_count() -> None:
    copy = was_delayed(1, delay=600).copy
    record = LoadJob(attrs.evolve(copy, flags=BCAST_WILLQUEUE | BCAST_QUEUED, holders=(N2, ME)))
    rig = restarted(record, peers=1)

    assert not rig.node.restored
    assert rig.ask("ENQUEUE", "QUEUE", "q") == 0


def test_a_job_that_is_queued_in_a_moment_and_one_that_its_key_holds_back_stay() -> None:
    rig = restarted(was_queued(0))
    due = stat(rig)[b"restored-due-ms"]
    assert isinstance(due, int)
    rig.advance(due - 250)
    assert rig.ask("ENQUEUE", "QUEUE", "q") == 0
    rig.advance(1000)
    assert length(rig) == 1

    rig.ask("ADDJOB", "k", "one", 0, "RETRY", 600, "UNIQUE", "a")
    rig.ask("GETJOB", "FROM", "k")
    rig.ask("ADDJOB", "k", "two", 0, "RETRY", 600, "UNIQUE", "a", "IFEXISTS", "again")
    assert len(rig.node.jobs) == 3
    assert rig.ask("ENQUEUE", "QUEUE", "k") == 0
