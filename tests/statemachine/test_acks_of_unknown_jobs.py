"""Acknowledgements of jobs that are not here: dummies."""

import pytest

from disque_trio.statemachine import membership, nodetable
from disque_trio.statemachine.base import ACKED, FOREVER
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.messages import DelJob, GotAck, SetAck
from tests.rig import CALM, JOB, ME, N2, N3, ONCE, UNKNOWN, Rig
from tests.statemachine.acknowledging import BY_UNKNOWN_NODE, GRAIN, rig_with_job

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


def test_it_goes_when_all_nodes_answer_that_the_job_is_unknown() -> None:
    rig = Rig(peers=2)
    rig.ask("ACKJOB", JOB)
    rig.sent()

    rig.message(N2, GotAck(JOB, known=False))
    rig.message(N2, GotAck(JOB, known=False))
    assert JOB in rig.node.jobs
    rig.message(N3, GotAck(JOB, known=False))
    assert rig.node.jobs == {}
    assert rig.sent() == []


def test_it_waits_half_a_minute_for_an_unknown_node_that_named_the_job() -> None:
    rig = Rig(peers=1, config=CALM)
    rig.ask("ACKJOB", BY_UNKNOWN_NODE)

    rig.message(N2, GotAck(BY_UNKNOWN_NODE, known=False))

    assert BY_UNKNOWN_NODE in rig.node.jobs
    rig.advance(40_000)
    assert rig.node.jobs == {}


def test_an_ack_waits_half_a_minute_for_a_holder_that_has_not_been_met() -> None:
    rig = rig_with_job(N2, UNKNOWN, ME, peers=1)
    rig.ask("ACKJOB", JOB)

    rig.message(N2, GotAck(JOB, known=True))

    assert JOB in rig.node.jobs
    rig.advance(40_000)
    assert rig.node.jobs == {}
    assert rig.sent()[-1] == (N2, DelJob(JOB))


def test_a_node_that_is_alone_waits_for_no_unknown_node() -> None:
    rig = Rig(peers=1, config=CALM)
    rig.ask("ACKJOB", BY_UNKNOWN_NODE)

    membership.forget(rig.node, N2)

    rig.advance(3_000)
    assert rig.node.jobs == {}


@pytest.mark.parametrize("is_acked_before", [True, False])
def test_a_node_that_meets_its_only_peer_again_under_a_new_name_asks_it(
    is_acked_before: bool,
) -> None:
    rig = Rig(peers=1, config=CALM)
    if is_acked_before:
        rig.ask("ACKJOB", BY_UNKNOWN_NODE)

    membership.forget(rig.node, N2)
    membership.meet(rig.node, "127.0.0.5", 7711)
    if not is_acked_before:
        rig.ask("ACKJOB", BY_UNKNOWN_NODE)
    rig.advance(3_000)
    nodetable.add(rig.node, Peer(UNKNOWN, "127.0.0.5", 7711))
    rig.sent()
    rig.advance(10_000)

    assert (UNKNOWN, SetAck(BY_UNKNOWN_NODE, 0)) in rig.sent()


def test_a_holder_that_turns_up_within_that_time_is_asked() -> None:
    rig = rig_with_job(N2, UNKNOWN, ME, peers=1)
    rig.ask("ACKJOB", JOB)
    rig.message(N2, GotAck(JOB, known=True))

    nodetable.add(rig.node, Peer(UNKNOWN, "127.0.0.5", 7711))
    rig.sent()
    rig.advance(2_000)

    assert (UNKNOWN, SetAck(JOB, 3)) in rig.sent()


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
    # The original crashed here (original, defect 34).
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


def test_it_waits_for_nodes_with_which_a_handshake_is_under_way() -> None:
    rig = Rig(peers=1, config=CALM)
    rig.request("CLUSTER", "MEET", "127.0.0.9", 7711)
    rig.ask("ACKJOB", JOB)

    rig.message(N2, GotAck(JOB, known=False))

    assert JOB in rig.node.jobs
