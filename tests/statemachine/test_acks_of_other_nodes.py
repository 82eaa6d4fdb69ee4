"""What other nodes say of acknowledgements: SETACK and GOTACK."""

import pytest

from disque_trio.statemachine.base import ACKED, ACTIVE, DIGESTS, NodeId, Status
from disque_trio.statemachine.job import digest_of
from disque_trio.statemachine.messages import AckHolders, DelJob, GotAck, GotJob, SetAck
from tests.rig import JOB, ME, N2, N3, N4, ONCE, Rig
from tests.statemachine.acknowledging import rig_with_job

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


def test_a_job_held_here_alone_goes_when_a_node_without_it_has_the_ack() -> None:
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


def told_by_one_of_ours(*holders: bytes, said: int = 2) -> Rig:
    """N2, a node that announces capabilities, has acknowledged JOB."""
    rig = rig_with_job(*holders)
    rig.node.cluster.nodes[N2].capabilities = 1
    rig.ask("ENQUEUE", JOB)
    rig.sent()
    rig.message(N2, SetAck(JOB, said))
    return rig


def test_the_only_other_copy_goes_at_once_if_the_sender_is_one_of_ours() -> None:
    rig = told_by_one_of_ours(N2, ME)

    assert rig.sent() == [(N2, GotAck(JOB, known=False))]
    assert rig.node.jobs == {}
    assert len(rig.queue()) == 0
    assert JOB in rig.node.tombstones


def test_it_stays_as_an_ack_if_either_knows_of_a_third() -> None:
    for rig in (told_by_one_of_ours(N2, ME, said=3), told_by_one_of_ours(N2, N3, ME, said=3)):
        assert rig.sent() == [(N2, GotAck(JOB, known=True))]
        assert rig.node.jobs[JOB].state == ACKED


def test_it_stays_as_an_ack_if_the_sender_is_an_original_node() -> None:
    rig = rig_with_job(N2, ME)

    rig.message(N2, SetAck(JOB, 2))

    assert rig.sent() == [(N2, GotAck(JOB, known=True))]
    assert rig.node.jobs[JOB].state == ACKED


# GOTACK.


def test_the_only_other_holder_without_a_copy_any_more_ends_the_job() -> None:
    rig = rig_with_job(N2, ME)
    rig.ask("ACKJOB", JOB)
    rig.sent()

    rig.message(N2, GotAck(JOB, known=False))

    assert rig.sent() == []
    assert rig.node.jobs == {}


def test_a_holder_by_the_list_without_a_copy_counts_as_confirmed_too() -> None:
    rig = rig_with_job(N2, N3, ME)
    rig.ask("ACKJOB", JOB)
    rig.message(N3, GotAck(JOB, known=True))
    rig.sent()

    rig.message(N2, GotAck(JOB, known=False))

    assert rig.sent() == [(N2, DelJob(JOB)), (N3, DelJob(JOB))]
    assert rig.node.jobs == {}


def test_a_node_with_a_copy_that_was_unknown_here_becomes_a_holder() -> None:
    rig = rig_with_job(N2, ME, peers=2)
    rig.ask("ACKJOB", JOB)
    rig.sent()

    rig.message(N3, GotAck(JOB, known=True))

    job = rig.node.jobs[JOB]
    assert job.holders == (N2, ME, N3)
    assert job.confirmed == (ME, N3)

    rig.message(N2, GotAck(JOB, known=True))
    assert rig.sent() == [(N2, DelJob(JOB)), (N3, DelJob(JOB))]


def test_a_node_that_has_no_copy_and_is_no_holder_changes_nothing() -> None:
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


def test_a_confirmation_without_a_request_is_only_remembered() -> None:
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


# Lists of holders, among nodes that compare them.


def test_a_node_that_knows_the_same_holders_confirms() -> None:
    rig = rig_with_job(N2, N3, ME, ours=True)

    rig.message(N2, SetAck(JOB, 3, digest_of((ME, N2, N3))))

    assert rig.sent() == [(N2, GotAck(JOB, known=True))]


@pytest.mark.parametrize("others", [(N2, N4, ME), (N2, ME), (N2, N3, N4, ME)])
def test_a_node_that_knows_other_holders_confirms_with_its_own_list(
    others: tuple[NodeId, ...],
) -> None:
    rig = rig_with_job(N2, N3, ME, ours=True)

    rig.message(N2, SetAck(JOB, len(others), digest_of(others)))

    assert rig.sent() == [(N2, AckHolders(JOB, (N2, N3, ME)))]
    assert rig.node.jobs[JOB].state == ACKED


def test_two_holders_are_not_the_only_ones_if_their_lists_differ() -> None:
    rig = rig_with_job(N2, ME, ours=True)

    rig.message(N2, SetAck(JOB, 2, digest_of((N2, N3))))

    assert rig.sent() == [(N2, AckHolders(JOB, (N2, ME)))]
    assert rig.node.jobs[JOB].state == ACKED


def test_holders_that_only_another_node_knows_are_asked_before_the_collection() -> None:
    rig = rig_with_job(N2, N3, ME, peers=3, ours=True)
    rig.ask("ACKJOB", JOB)
    rig.message(N3, GotAck(JOB, known=True))
    rig.sent()

    rig.message(N2, AckHolders(JOB, (N2, N4, ME)))

    assert rig.sent() == [(N4, SetAck(JOB, 4, digest_of((N2, N3, N4, ME))))]
    rig.message(N4, GotAck(JOB, known=True))
    assert rig.sent() == [(each, DelJob(JOB)) for each in (N2, N3, N4)]
    assert rig.node.jobs == {}


def test_a_list_without_new_holders_confirms_and_ends_the_collection() -> None:
    rig = rig_with_job(N2, N3, ME, ours=True)
    rig.ask("ACKJOB", JOB)
    rig.message(N3, GotAck(JOB, known=True))
    rig.sent()

    rig.message(N2, AckHolders(JOB, (N2, ME)))

    assert rig.sent() == [(N2, DelJob(JOB)), (N3, DelJob(JOB))]


def test_nodes_that_only_count_get_the_number_alone() -> None:
    rig = rig_with_job(N2, N3, ME, ours=True)
    rig.node.cluster.nodes[N3].capabilities &= ~DIGESTS

    rig.ask("ACKJOB", JOB)

    told = [(N2, SetAck(JOB, 3, digest_of((N2, N3, ME)))), (N3, SetAck(JOB, 3))]
    assert rig.sent() == told


def test_a_list_means_nothing_for_a_job_that_is_not_acknowledged() -> None:
    rig = rig_with_job(N2, ME, ours=True)

    rig.message(N2, AckHolders(JOB, (N2, N3, ME)))

    assert rig.node.jobs[JOB].holders == (N2, ME)
    assert rig.sent() == []
