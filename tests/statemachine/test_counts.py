"""How many jobs of a queue are delayed, leased, delivered and acknowledged."""

import pytest

from disque_trio.statemachine.base import LAPSED, NULL_ARRAY, Status
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import Enqueue, NeedJobs, SetAck, Working
from tests.rig import JOB, ME, N2, Rig, copy_of
from tests.statemachine.counting import counts, stat


def test_a_job_is_delayed_then_queued_then_leased_then_acknowledged() -> None:
    rig = Rig()
    rig.ask("GETJOB", "NOHANG", "FROM", "q")
    job = rig.add("DELAY", 2, "RETRY", 10)
    assert counts(rig) == (1, 0, 0, 0)

    rig.advance(3_000)
    assert counts(rig) == (0, 0, 0, 0)
    assert stat(rig)[b"age-ms"] == 1_000

    rig.ask("GETJOB", "FROM", "q")
    assert counts(rig) == (0, 1, 1, 0)

    rig.ask("ACKJOB", job.id)
    assert counts(rig) == (0, 0, 1, 1)
    assert stat(rig)[b"age-ms"] == 0


def test_a_redriven_job_waits_since_it_was_redriven() -> None:
    rig = Rig()
    job = rig.add("RETRY", 10)
    rig.ask("NACK", job.id, "DEAD")
    rig.advance(3_600_000)
    rig.ask("REDRIVE", job.id)

    rig.advance(2_000)

    assert stat(rig)[b"age-ms"] == 2_000


def test_a_lease_that_is_over_is_not_counted() -> None:
    rig = Rig()
    rig.add("RETRY", 10)
    rig.ask("GETJOB", "FROM", "q")

    rig.advance(10_500)

    assert counts(rig) == (0, 0, 1, 0)
    assert stat(rig)[b"len"] == 1


def test_a_job_whose_lease_is_over_counts_as_leased_until_it_is_queued() -> None:
    rig = Rig()
    rig.add("RETRY", 10)
    rig.ask("GETJOB", "FROM", "q")
    places = set()

    for _ in range(110):
        rig.advance(100)
        places.add((counts(rig)[1], stat(rig)[b"len"]))

    assert places == {(1, 0), (0, 1)}


def _lapsed(rig: Rig) -> Job:
    """A job with this node's lease, which is over; the job is not queued yet."""
    job = rig.hold(copy_of(holders=(N2, ME)))
    rig.ask("ENQUEUE", JOB)
    rig.ask("GETJOB", "FROM", "q")
    rig.advance(job.requeue_at - rig.now.mono - 400)
    assert job.flags & LAPSED
    assert counts(rig)[1] == 1
    return job


def test_a_job_whose_lease_is_over_and_that_another_node_has_is_counted_there() -> None:
    rig = Rig(peers=1)
    job = _lapsed(rig)

    rig.message(N2, Working(job.id))

    assert counts(rig)[1] == 0


@pytest.mark.parametrize("command", ["ACKJOB", "NACK", "DELJOB", "WORKING"])
def test_a_job_whose_lease_is_over_leaves_the_count_as_a_leased_one(command: str) -> None:
    rig = Rig(peers=1)
    job = _lapsed(rig)

    rig.ask(command, job.id)

    assert counts(rig)[1] == (command == "WORKING")


def test_a_job_whose_lease_is_over_is_counted_while_its_queue_is_paused() -> None:
    rig = Rig(peers=1)
    _lapsed(rig)
    rig.ask("PAUSE", "q", "in")

    rig.advance(1_000)

    assert (counts(rig)[1], stat(rig)[b"len"]) == (1, 0)


@pytest.mark.parametrize("command", ["ACKJOB", "FASTACK"])
def test_every_way_to_acknowledge_counts(command: str) -> None:
    rig = Rig(peers=1)
    rig.add("REPLICATE", 1, "DELAY", 5)
    rig.hold(copy_of(holders=(N2, ME)))
    rig.ask("ENQUEUE", JOB)
    rig.ask("GETJOB", "FROM", "q")
    assert counts(rig) == (1, 1, 1, 0)

    rig.ask(command, JOB)
    rig.ask(command, JOB)

    assert counts(rig) == (1, 0, 1, 1)


def test_a_job_that_goes_to_another_node_is_no_delivery() -> None:
    rig = Rig(peers=1)
    rig.add("REPLICATE", 1)

    rig.message(N2, NeedJobs(b"q", 1))

    assert stat(rig)[b"jobs-out"] == 1
    assert counts(rig) == (0, 0, 0, 0)


def test_a_delayed_job_is_counted_before_its_queue_has_a_record() -> None:
    rig = Rig()

    rig.add("DELAY", 60)

    assert rig.ask("QSTAT", "q") == NULL_ARRAY
    rig.add()
    assert counts(rig) == (1, 0, 0, 0)


def test_a_delayed_job_with_a_worker_is_leased() -> None:
    rig = Rig()
    rig.ask("GETJOB", "NOHANG", "FROM", "q")
    job = rig.add("DELAY", 60)

    rig.ask("WORKING", job.id)

    assert counts(rig) == (0, 1, 0, 0)


def test_a_leased_job_of_another_node_that_is_told_to_queue_it_counts_twice() -> None:
    rig = Rig(peers=1)
    rig.ask("GETJOB", "NOHANG", "FROM", "q")
    rig.sent()
    rig.hold(copy_of(holders=(N2, ME), delay=60))
    rig.ask("WORKING", JOB)

    rig.message(N2, Enqueue(JOB, 30))
    assert counts(rig) == (1, 1, 0, 0)

    rig.ask("ACKJOB", JOB)
    assert (rig.node.delayed, rig.node.leased) == ({}, {})


def test_acknowledgements_of_several_queues_count_for_each() -> None:
    rig = Rig()
    ids = [rig.ask("ADDJOB", queue, "body", 0) for queue in ("q", "r", "q", "q")]
    rig.ask("GETJOB", "COUNT", 2, "FROM", "q")

    rig.ask("ACKJOB", *[each.text for each in ids if isinstance(each, Status)])

    assert counts(rig) == (0, 0, 2, 3)
    assert stat(rig, "r")[b"acks"] == 1


def test_an_ack_at_a_node_without_the_job_counts_nowhere() -> None:
    elsewhere = Rig(peers=1)
    elsewhere.ask("GETJOB", "NOHANG", "FROM", "q")
    assert elsewhere.ask("ACKJOB", JOB) == 0
    assert counts(elsewhere) == (0, 0, 0, 0)

    holder = Rig(peers=1)
    holder.ask("GETJOB", "NOHANG", "FROM", "q")
    holder.hold(copy_of(holders=(N2, ME)))
    holder.ask("ENQUEUE", JOB)
    holder.ask("GETJOB", "FROM", "q")
    assert counts(holder) == (0, 1, 1, 0)
    holder.message(N2, SetAck(JOB, 0))
    assert counts(holder) == (0, 0, 1, 0)


def test_an_ack_that_comes_twice_counts_once() -> None:
    rig = Rig(peers=2)
    rig.hold(copy_of(holders=(N2, ME)))
    rig.ask("ENQUEUE", JOB)

    rig.ask("ACKJOB", JOB)
    rig.ask("ACKJOB", JOB)
    rig.message(N2, SetAck(JOB, 2))

    assert stat(rig)[b"acks"] == 1


def test_delayed_jobs_of_one_request_leave_the_count() -> None:
    rig = Rig()
    jobs = [rig.add("DELAY", 60), rig.add("DELAY", 60)]

    rig.ask("ACKJOB", *[job.id for job in jobs])

    assert rig.node.delayed == {}
