import pytest

from disque_trio.statemachine.base import ACKED, Status
from disque_trio.statemachine.client import Blocked
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import DelJob, GotAck, SetAck
from tests.rig import CALM, JOB, ME, N2, N3, N4, UNKNOWN, Rig, copy_of
from tests.statemachine.acknowledging import GRAIN, rig_with_job, setack_times

# ACKJOB for a job that is here.


def test_an_acknowledged_job_goes_when_every_holder_has_taken_note() -> None:
    rig = rig_with_job(N2, N3, ME)

    assert rig.ask("ACKJOB", JOB) == 1
    assert rig.sent() == [(N2, SetAck(JOB, 3)), (N3, SetAck(JOB, 3))]

    rig.message(N2, GotAck(JOB, known=True))
    assert rig.sent() == []
    rig.message(N3, GotAck(JOB, known=True))
    assert rig.sent() == [(N2, DelJob(JOB)), (N3, DelJob(JOB))]
    assert rig.node.jobs == {}


def test_a_job_that_is_only_here_goes_at_once() -> None:
    rig = Rig(peers=1)
    job = rig.add("REPLICATE", 1)

    assert rig.ask("ACKJOB", job.id) == 1

    assert rig.node.jobs == {}
    assert rig.sent() == []
    assert rig.ask("QLEN", "q") == 0


def test_one_of_another_node_without_other_holders_is_announced_to_all_nodes() -> None:
    # Its list of holders is from before links broke; others may have got a copy since.
    rig = rig_with_job(ME)

    assert rig.ask("ACKJOB", JOB) == 1

    assert rig.sent() == [(N2, SetAck(JOB, 0)), (N3, SetAck(JOB, 0))]
    assert rig.node.jobs == {}
    assert JOB in rig.node.tombstones


def test_fastack_of_such_a_job_goes_to_all_nodes_too() -> None:
    rig = rig_with_job(ME)

    assert rig.ask("FASTACK", JOB) == 1

    assert rig.sent() == [(N2, DelJob(JOB)), (N3, DelJob(JOB))]
    assert rig.node.jobs == {}
    assert JOB in rig.node.tombstones


def test_acknowledging_twice_counts_once_and_asks_again() -> None:
    rig = rig_with_job(N2, N3, ME)
    rig.ask("ACKJOB", JOB)
    rig.message(N2, GotAck(JOB, known=True))
    rig.sent()

    assert rig.ask("ACKJOB", JOB) == 0

    assert rig.sent() == [(N3, SetAck(JOB, 3))]
    assert rig.node.jobs[JOB].gc_attempt == 2


def test_an_acknowledged_job_is_in_no_queue_and_waits_for_nothing() -> None:
    rig = rig_with_job(N2, ME)
    rig.ask("ENQUEUE", JOB)

    rig.ask("ACKJOB", JOB)

    assert rig.ask("QLEN", "q") == 0
    rig.advance(200_000)
    assert rig.node.jobs[JOB].state == ACKED


def test_a_job_that_still_waits_for_copies_succeeds_by_its_acknowledgement() -> None:
    rig = Rig(peers=2)
    producer = rig.connect()
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 3, client=producer)
    job = next(iter(rig.node.jobs.values()))
    rig.sent()

    assert rig.ask("ACKJOB", job.id) == 1

    assert rig.reply(producer) == Status(job.id)
    assert job.state == ACKED
    assert rig.sent() == [(N2, SetAck(job.id, 3)), (N3, SetAck(job.id, 3))]
    assert rig.ask("QLEN", "q") == 0


def test_the_same_on_a_node_that_keeps_no_copy() -> None:
    rig = Rig(peers=1)
    producer = rig.connect()
    rig.ask("CLUSTER", "LEAVING", "yes")
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 1, client=producer)
    job = next(iter(rig.node.jobs.values()))

    assert rig.ask("ACKJOB", job.id) == 1

    assert rig.reply(producer) == Status(job.id)
    assert rig.node.jobs == {}


# The collection's patience.


def test_a_client_s_ack_is_tried_again_ever_more_rarely() -> None:
    rig = rig_with_job(N2, N3, ME)
    rig.ask("ACKJOB", JOB)
    rig.sent()

    times = setack_times(rig, 620_000)

    expected = [1, 5, 13, 29, 61, 125, 253, 433, 613]
    assert len(times) == len(expected)
    assert all(abs(a - b) <= 3 for a, b in zip(times, expected, strict=True)), times


def test_a_node_s_ack_waits_a_second_before_the_first_try() -> None:
    rig = rig_with_job(N2, N3, ME)
    rig.message(N2, SetAck(JOB, 3))
    rig.sent()

    times = setack_times(rig, 70_000)

    expected = [1, 3, 7, 15, 31, 63]
    assert len(times) == len(expected)
    assert all(abs(a - b) <= 2 for a, b in zip(times, expected, strict=True)), times


def test_attempts_are_counted_up_to_ten() -> None:
    rig = rig_with_job(N2, ME)
    for _ in range(12):
        rig.ask("ACKJOB", JOB)

    assert rig.node.jobs[JOB].gc_attempt == 10


def test_an_ack_that_no_node_confirms_goes_with_its_ttl() -> None:
    rig = Rig(peers=1, config=CALM)
    rig.hold(copy_of(ttl=300))
    rig.ask("ACKJOB", JOB)
    rig.sent()

    rig.advance(301_000 + GRAIN)

    assert rig.node.jobs == {}
    assert all(isinstance(message, SetAck) for _, message in rig.sent())


def test_holders_that_were_forgotten_are_not_waited_for() -> None:
    rig = rig_with_job(N2, N3, ME)
    rig.ask("ACKJOB", JOB)
    rig.message(N2, GotAck(JOB, known=True))
    rig.sent()

    rig.ask("CLUSTER", "FORGET", N3)
    rig.advance(1500)

    assert rig.node.jobs == {}
    assert rig.sent() == [(N2, DelJob(JOB))]


# DELJOB and FASTACK.


@pytest.mark.parametrize("before", [["DEQUEUE", JOB], ["ENQUEUE", JOB], ["ACKJOB", JOB]])
def test_a_job_in_any_state_is_dropped_when_a_node_says_so(before: list[bytes | str]) -> None:
    rig = rig_with_job(N2, ME)
    rig.ask(*before)
    rig.sent()

    rig.message(N2, DelJob(JOB))
    rig.message(N2, DelJob(JOB))

    assert rig.node.jobs == {}
    assert rig.sent() == []


def test_a_fast_ack_drops_every_copy_without_waiting() -> None:
    rig = rig_with_job(N2, N3, ME, peers=3)

    assert rig.ask("FASTACK", JOB) == 1

    assert rig.sent() == [(N2, DelJob(JOB)), (N3, DelJob(JOB))]
    assert rig.node.jobs == {}


def test_a_fast_ack_of_an_unknown_job_goes_to_all_nodes() -> None:
    rig = Rig(peers=3)

    assert rig.ask("FASTACK", JOB) == 0

    assert rig.sent() == [(N2, DelJob(JOB)), (N3, DelJob(JOB)), (N4, DelJob(JOB))]


def test_a_fast_ack_takes_a_dummy_along() -> None:
    rig = Rig(peers=1)
    rig.ask("ACKJOB", JOB)
    rig.sent()

    assert rig.ask("FASTACK", JOB) == 1
    assert rig.node.jobs == {}


# The flow of Appendix B: an ack on a node that has no copy.


def test_an_ack_far_from_the_holders_removes_every_copy() -> None:
    owner = rig_with_job(N2, ME, peers=3)

    owner.message(N4, SetAck(JOB, 0))
    assert owner.sent() == [(N4, GotAck(JOB, known=True)), (N2, SetAck(JOB, 2))]
    owner.message(N2, SetAck(JOB, 2))
    assert owner.sent() == [(N2, GotAck(JOB, known=True))]
    owner.message(N2, GotAck(JOB, known=True))
    assert owner.sent() == [(N2, DelJob(JOB))]
    assert owner.node.jobs == {}


def test_a_held_ack_still_shows_its_client_nothing() -> None:
    rig = rig_with_job(N2, UNKNOWN, ME)
    worker = rig.connect()
    rig.request("GETJOB", "FROM", "q", client=worker)

    rig.message(N2, SetAck(JOB, 2))

    job: Job = rig.node.jobs[JOB]
    assert job.state == ACKED
    assert worker.blocked is Blocked.JOBS
