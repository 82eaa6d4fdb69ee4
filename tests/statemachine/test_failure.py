import pytest

from disque_trio.statemachine import failure
from disque_trio.statemachine.base import FAIL, MYSELF, PFAIL, NodeId
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.messages import Fail, Frame, Ping, Pong
from tests.rig import ME, N2, N3, N4, UNKNOWN, Rig

TIMEOUT = 15_000


def peer_of(rig: Rig, name: NodeId) -> Peer:
    return rig.node.cluster.nodes[name]


def test_a_node_is_suspected_once_its_ping_is_older_than_the_timeout() -> None:
    rig = Rig(peers=1)
    peer = peer_of(rig, N2)

    peer.ping_sent = rig.now.mono - TIMEOUT
    failure.suspect_if_silent(rig.node, peer)
    assert peer.flags == 0

    peer.ping_sent -= 1
    failure.suspect_if_silent(rig.node, peer)
    assert peer.flags == PFAIL
    assert rig.node.cluster.reachable == []
    assert rig.take().nodes_changed


def test_a_node_that_was_not_asked_is_not_suspected() -> None:
    rig = Rig(peers=1)
    peer = peer_of(rig, N2)
    peer.ping_sent = peer.pong_received = 0

    failure.suspect_if_silent(rig.node, peer)

    assert peer.flags == 0


def test_a_node_that_has_failed_is_not_suspected_as_well() -> None:
    rig = Rig(peers=1)
    peer = peer_of(rig, N2)
    peer.flags = FAIL
    peer.ping_sent = 1
    rig.node.mono = TIMEOUT + 2

    failure.suspect_if_silent(rig.node, peer)

    assert peer.flags == FAIL


def test_a_majority_of_suspicions_is_a_verdict_that_all_nodes_are_told() -> None:
    rig = Rig(peers=3)
    peer = peer_of(rig, N2)
    peer.flags = PFAIL

    failure.report(rig.node, peer, N3)
    assert peer.flags == PFAIL

    failure.report(rig.node, peer, N4)
    assert peer.flags == FAIL
    rig.take()
    assert rig.sent() == [(N2, Fail(N2)), (N3, Fail(N2)), (N4, Fail(N2))]


def test_one_node_reporting_twice_is_one_vote() -> None:
    rig = Rig(peers=3)
    peer = peer_of(rig, N2)
    peer.flags = PFAIL

    failure.report(rig.node, peer, N3)
    failure.report(rig.node, peer, N3)

    assert peer.flags == PFAIL


def test_suspicions_of_others_alone_are_no_verdict() -> None:
    rig = Rig(peers=3)
    peer = peer_of(rig, N2)

    failure.report(rig.node, peer, N3)
    failure.report(rig.node, peer, N4)

    assert peer.flags == 0


def test_an_old_suspicion_does_not_count() -> None:
    rig = Rig(peers=3)
    peer = peer_of(rig, N2)
    peer.flags = PFAIL
    failure.report(rig.node, peer, N3)
    rig.node.mono += 2 * TIMEOUT + 1

    failure.report(rig.node, peer, N4)

    assert peer.flags == PFAIL
    assert list(peer.reports) == [N4]


def test_a_suspicion_that_was_withdrawn_does_not_count() -> None:
    rig = Rig(peers=3)
    peer = peer_of(rig, N2)
    peer.flags = PFAIL
    failure.report(rig.node, peer, N3)

    failure.withdraw(peer, N3)
    failure.withdraw(peer, N3)
    failure.report(rig.node, peer, N4)

    assert peer.flags == PFAIL


@pytest.mark.parametrize("flags", [0, PFAIL])
def test_a_verdict_is_believed_and_not_passed_on(flags: int) -> None:
    rig = Rig(peers=2)
    peer_of(rig, N3).flags = flags

    rig.message(N2, Fail(N3))

    assert peer_of(rig, N3).flags == FAIL
    assert rig.sent() == []


def test_a_verdict_that_is_late_is_withdrawn_by_the_answer_to_a_ping_that_is_sent_at_once() -> None:
    rig = Rig(peers=2)
    rig.message(N2, Fail(N3))

    [ping] = [message for to, message in rig.sent(gossip=True) if to == N3]
    assert isinstance(ping, Ping)
    pong = Frame(N3, 7711, MYSELF, Pong())
    rig.machine.message(peer_of(rig, N3).link, pong, rig.now)
    assert peer_of(rig, N3).flags == 0


def test_a_ping_that_is_unanswered_is_not_repeated_because_of_a_verdict() -> None:
    rig = Rig(peers=2)
    peer_of(rig, N3).ping_sent = rig.now.mono
    rig.message(N2, Fail(N3))

    assert rig.sent(gossip=True) == []


def test_fail_about_this_node_unknown_nodes_or_failed_nodes_changes_nothing() -> None:
    rig = Rig(peers=2)
    rig.message(N2, Fail(N3))
    flags = rig.node.cluster.myself.flags

    rig.message(N2, Fail(ME))
    rig.message(N2, Fail(UNKNOWN))
    rig.message(N2, Fail(N3))

    assert rig.node.cluster.myself.flags == flags
    assert not any(out.nodes_changed for out in rig.outboxes[-3:])


@pytest.mark.parametrize("flags", [PFAIL, FAIL])
def test_a_node_that_answers_is_well_again(flags: int) -> None:
    rig = Rig(peers=1)
    peer = peer_of(rig, N2)
    peer.flags = flags

    failure.recover(rig.node, peer)

    assert peer.flags == 0
    assert rig.node.cluster.reachable == [peer]
