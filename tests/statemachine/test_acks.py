import pytest

from disque_trio.statemachine import membership, nodetable
from disque_trio.statemachine.base import ACKED, ACTIVE, FOREVER, Status
from disque_trio.statemachine.client import Blocked
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import (
    DelJob,
    GotAck,
    GotJob,
    SetAck,
)
from tests.rig import CALM, JOB, ME, N2, N3, N4, ONCE, STRANGER, Rig, copy_of

GRAIN = 8


BY_STRANGER = b"D-eeeeeeee-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"


def rig_with_job(*holders: bytes, peers: int = 2) -> Rig:
    """This node and the others named hold JOB."""
    rig = Rig(peers=peers, config=CALM)
    rig.hold(copy_of(holders=holders))
    return rig


def setack_times(rig: Rig, duration: int) -> list[int]:
    """After how many whole seconds SETACKs went out."""
    start = rig.now.mono
    times = []
    while rig.now.mono < start + duration:
        rig.advance(500)
        if any(isinstance(message, SetAck) for _, message in rig.sent()):
            times.append(round((rig.now.mono - start) / 1000))
    return times


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


def test_one_of_another_node_without_other_holders_has_everybody_told() -> None:
    # Its list of holders is from before links broke; others may have got a copy since.
    rig = rig_with_job(ME)

    assert rig.ask("ACKJOB", JOB) == 1

    assert rig.sent() == [(N2, SetAck(JOB, 0)), (N3, SetAck(JOB, 0))]
    assert rig.node.jobs == {}
    assert JOB in rig.node.tombstones


def test_fastack_of_such_a_job_goes_to_everybody_too() -> None:
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


def test_an_ack_that_nobody_takes_note_of_goes_with_its_ttl() -> None:
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


# ACKJOB for a job that is not here.


def test_an_ack_for_an_unknown_job_is_remembered_until_a_holder_answers() -> None:
    rig = Rig(peers=2)

    assert rig.ask("ACKJOB", JOB) == 0
    dummy = rig.node.jobs[JOB]
    assert (dummy.state, dummy.is_dummy, dummy.holders) == (ACKED, True, ())
    assert rig.sent() == [(N2, SetAck(JOB, 0)), (N3, SetAck(JOB, 0))]

    rig.message(N2, GotAck(JOB, known=True))
    assert rig.node.jobs == {}
    assert rig.sent() == []


def test_it_goes_when_everybody_says_that_the_job_is_unknown() -> None:
    rig = Rig(peers=2)
    rig.ask("ACKJOB", JOB)
    rig.sent()

    rig.message(N2, GotAck(JOB, known=False))
    rig.message(N2, GotAck(JOB, known=False))
    assert JOB in rig.node.jobs
    rig.message(N3, GotAck(JOB, known=False))
    assert rig.node.jobs == {}
    assert rig.sent() == []


def test_it_waits_half_a_minute_for_the_node_that_named_the_job_if_nobody_knows_that() -> None:
    rig = Rig(peers=1, config=CALM)
    rig.ask("ACKJOB", BY_STRANGER)

    rig.message(N2, GotAck(BY_STRANGER, known=False))

    assert BY_STRANGER in rig.node.jobs
    rig.advance(40_000)
    assert rig.node.jobs == {}


def test_an_ack_waits_half_a_minute_for_a_holder_that_has_not_been_met() -> None:
    rig = rig_with_job(N2, STRANGER, ME, peers=1)
    rig.ask("ACKJOB", JOB)

    rig.message(N2, GotAck(JOB, known=True))

    assert JOB in rig.node.jobs
    rig.advance(40_000)
    assert rig.node.jobs == {}
    assert rig.sent()[-1] == (N2, DelJob(JOB))


def test_a_node_that_is_alone_waits_for_no_stranger() -> None:
    rig = Rig(peers=1, config=CALM)
    rig.ask("ACKJOB", BY_STRANGER)

    membership.forget(rig.node, N2)

    rig.advance(3_000)
    assert rig.node.jobs == {}


def test_a_holder_that_turns_up_within_that_time_is_asked() -> None:
    rig = rig_with_job(N2, STRANGER, ME, peers=1)
    rig.ask("ACKJOB", JOB)
    rig.message(N2, GotAck(JOB, known=True))

    nodetable.add(rig.node, Peer(STRANGER, "127.0.0.5", 7711))
    rig.sent()
    rig.advance(2_000)

    assert (STRANGER, SetAck(JOB, 3)) in rig.sent()


def test_a_holder_that_was_forgotten_is_not_waited_for() -> None:
    rig = rig_with_job(N2, N3, ME)
    membership.forget(rig.node, N3)
    rig.ask("ACKJOB", JOB)

    rig.message(N2, GotAck(JOB, known=True))

    assert rig.node.jobs == {}


def test_it_goes_with_the_ttl_that_the_id_tells() -> None:
    rig = Rig(peers=1, config=CALM)
    two_minutes = JOB[:36] + b"0003"
    rig.ask("ACKJOB", two_minutes)

    rig.advance(3 * 60_000 - 1)
    assert two_minutes in rig.node.jobs
    rig.advance(GRAIN)
    assert rig.node.jobs == {}


def test_it_is_tried_again_like_any_other_ack() -> None:
    rig = Rig(peers=2, config=CALM)
    rig.ask("ACKJOB", JOB)
    rig.message(N2, GotAck(JOB, known=False))
    rig.sent()

    rig.advance(1300)

    assert rig.sent() == [(N3, SetAck(JOB, 0))]


def test_two_of_them_do_not_dismiss_each_other() -> None:
    rig = Rig(peers=2)
    rig.ask("ACKJOB", JOB)
    rig.sent()

    rig.message(N2, SetAck(JOB, 0))

    assert rig.sent() == [(N2, GotAck(JOB, known=False))]
    assert JOB in rig.node.jobs


@pytest.mark.parametrize("job_id", [ONCE, JOB[:36] + b"0000"])
def test_acks_of_at_most_once_jobs_are_not_remembered(job_id: bytes) -> None:
    rig = Rig(peers=1)

    assert rig.ask("ACKJOB", job_id) == 0

    assert rig.node.jobs == {}
    assert rig.sent() == []


def test_a_node_that_is_alone_or_leaves_remembers_none() -> None:
    alone = Rig()
    assert alone.ask("ACKJOB", JOB) == 0
    assert alone.node.jobs == {}

    leaving = Rig(peers=1)
    leaving.ask("CLUSTER", "LEAVING", "yes")
    assert leaving.ask("ACKJOB", JOB) == 0
    assert leaving.node.jobs == {}
    assert leaving.sent() == [(N2, SetAck(JOB, 0))]


def test_acks_for_a_dead_node_go_when_it_is_forgotten() -> None:
    # The original crashed here (defect 34).
    rig = Rig(peers=1)
    rig.lose_link(N2)
    ids = [JOB[:11] + b"%024d" % n + JOB[35:] for n in range(5)]
    assert rig.ask("ACKJOB", *ids) == 0
    rig.advance(20_000)
    assert len(rig.node.jobs) == 5

    rig.ask("CLUSTER", "FORGET", N2)
    rig.advance(180_000)

    assert rig.node.jobs == {}
    assert rig.machine.deadline() == FOREVER


# SETACK.


def test_a_node_that_knows_no_more_holders_than_the_sender_takes_note_and_answers() -> None:
    rig = rig_with_job(N2, N3, ME)
    rig.ask("ENQUEUE", JOB)
    rig.sent()

    rig.message(N2, SetAck(JOB, 3))

    job = rig.node.jobs[JOB]
    assert (job.state, job.confirmed, job.gc_attempt) == (ACKED, None, 0)
    assert rig.ask("QLEN", "q") == 0
    assert rig.sent() == [(N2, GotAck(JOB, known=True))]


def test_a_node_that_knows_more_holders_takes_over() -> None:
    rig = rig_with_job(N2, N3, ME)

    rig.message(N2, SetAck(JOB, 2))

    assert rig.sent() == [(N2, SetAck(JOB, 3)), (N3, SetAck(JOB, 3))]
    assert rig.node.jobs[JOB].confirmed == (ME,)


def test_a_sender_that_knows_no_holder_is_answered_all_the_same() -> None:
    rig = rig_with_job(N2, ME, peers=2)

    rig.message(N3, SetAck(JOB, 0))

    assert rig.sent() == [(N3, GotAck(JOB, known=True)), (N2, SetAck(JOB, 2))]


def test_a_job_held_here_alone_goes_when_a_stranger_to_it_has_the_ack() -> None:
    rig = Rig(peers=1)
    job = rig.add("REPLICATE", 1)

    rig.message(N2, SetAck(job.id, 0))

    assert rig.sent() == [(N2, GotAck(job.id, known=True))]
    assert rig.node.jobs == {}


def test_an_unknown_job_is_said_to_be_unknown_and_not_remembered() -> None:
    rig = Rig(peers=1)

    rig.message(N2, SetAck(JOB, 3))

    assert rig.sent() == [(N2, GotAck(JOB, known=False))]
    assert rig.node.jobs == {}


def test_an_ack_from_elsewhere_proves_that_a_waiting_job_has_a_copy() -> None:
    rig = Rig(peers=2)
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 3)
    job = next(iter(rig.node.jobs.values()))
    rig.sent()

    rig.message(N2, SetAck(job.id, 3))

    assert rig.reply() == Status(job.id)
    assert job.state == ACKED
    assert rig.sent() == [(N2, GotAck(job.id, known=True))]


def test_a_record_that_went_to_other_nodes_is_not_spoken_of() -> None:
    rig = Rig(peers=2)
    rig.ask("CLUSTER", "LEAVING", "yes")
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2)
    job = next(iter(rig.node.jobs.values()))
    rig.message(N2, GotJob(job.id))
    rig.sent()

    rig.message(N3, SetAck(job.id, 2))

    assert rig.reply() == Status(job.id)
    assert not any(isinstance(message, GotAck) for _, message in rig.sent())


# GOTACK.


def test_one_who_is_said_to_hold_a_copy_and_does_not_has_taken_note_too() -> None:
    rig = rig_with_job(N2, ME)
    rig.ask("ACKJOB", JOB)
    rig.sent()

    rig.message(N2, GotAck(JOB, known=False))

    assert rig.sent() == [(N2, DelJob(JOB))]
    assert rig.node.jobs == {}


def test_one_who_has_a_copy_unknown_to_us_becomes_a_holder() -> None:
    rig = rig_with_job(N2, ME, peers=2)
    rig.ask("ACKJOB", JOB)
    rig.sent()

    rig.message(N3, GotAck(JOB, known=True))

    job = rig.node.jobs[JOB]
    assert job.holders == (N2, ME, N3)
    assert job.confirmed == (ME, N3)

    rig.message(N2, GotAck(JOB, known=True))
    assert rig.sent() == [(N2, DelJob(JOB)), (N3, DelJob(JOB))]


def test_one_who_has_none_and_is_no_holder_says_nothing_new() -> None:
    rig = rig_with_job(N2, ME, peers=2)
    rig.ask("ACKJOB", JOB)
    rig.sent()

    rig.message(N3, GotAck(JOB, known=False))

    job = rig.node.jobs[JOB]
    assert (job.holders, job.confirmed) == ((N2, ME), (ME,))
    assert rig.sent() == []


def test_as_many_confirmations_as_holders_are_not_enough_if_they_are_of_others() -> None:
    rig = rig_with_job(N2, N3, ME, peers=3)
    rig.ask("ACKJOB", JOB)
    rig.message(N4, GotAck(JOB, known=True))
    rig.message(N2, GotAck(JOB, known=True))
    assert JOB in rig.node.jobs

    rig.message(N3, GotAck(JOB, known=True))
    assert rig.node.jobs == {}


def test_a_confirmation_that_nobody_asked_for_is_only_remembered() -> None:
    rig = rig_with_job(N2, ME, peers=2)
    rig.message(N2, SetAck(JOB, 2))
    rig.sent()

    rig.message(N3, GotAck(JOB, known=True))

    job = rig.node.jobs[JOB]
    assert (job.holders, job.confirmed) == ((N2, ME, N3), None)
    assert rig.sent() == []


def test_a_confirmation_of_an_unknown_or_pending_job_means_nothing() -> None:
    rig = rig_with_job(N2, ME)

    rig.message(N2, GotAck(JOB, known=True))
    rig.message(N2, GotAck(ONCE, known=True))

    assert list(rig.node.jobs) == [JOB]
    assert rig.node.jobs[JOB].state == ACTIVE


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


def test_a_fast_ack_of_an_unknown_job_is_told_to_everybody() -> None:
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
    rig = rig_with_job(N2, STRANGER, ME)
    worker = rig.connect()
    rig.request("GETJOB", "FROM", "q", client=worker)

    rig.message(N2, SetAck(JOB, 2))

    job: Job = rig.node.jobs[JOB]
    assert job.state == ACKED
    assert worker.blocked is Blocked.JOBS
