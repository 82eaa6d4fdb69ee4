"""Four nodes, of which each is watched by one other: by the order of their IDs, this one watches
N2, and N4 watches this one. N2 is watched by this one, N3 by N2."""

import pytest

from disque_trio.statemachine import gossip, nodetable, watchers
from disque_trio.statemachine.base import FAIL, HANDSHAKE, PFAIL, NodeId
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.messages import Fail, Message, Ping, Suspect, WillQueue
from tests.rig import JOB, ME, N2, N3, N4, UNKNOWN, Rig

TIMEOUT = 15_000
HALF, QUARTER = TIMEOUT // 2, TIMEOUT // 4


@pytest.fixture
def rig() -> Rig:
    rig = Rig(peers=3, ours=True)
    rig.turn(watch_all=3, watchers=1)
    nodetable.refresh(rig.node)
    return rig


def peer_of(rig: Rig, name: NodeId) -> Peer:
    return rig.node.cluster.nodes[name]


def sent(rig: Rig, duration: int, *silent: NodeId) -> list[tuple[NodeId, Message]]:
    """What is sent meanwhile, while all but some answer at once, and no node is pinged by
    chance."""
    rig.node.rng.random = lambda: 0.0  # type: ignore[method-assign]
    for _ in range(duration // 50):
        rig.advance(50)
        for peer in rig.node.cluster.nodes.values():
            if peer.ping_sent and peer.id not in silent:
                gossip.on_pong(rig.node, peer)
    return rig.sent(gossip=True)


def pinged(rig: Rig, duration: int) -> set[NodeId]:
    return {to for to, message in sent(rig, duration) if isinstance(message, Ping)}


# Who is pinged.


def test_in_a_small_cluster_every_node_is_pinged() -> None:
    rig = Rig(peers=3, ours=True)

    assert pinged(rig, HALF + 300) == {N2, N3, N4}


def test_in_a_large_one_a_node_pings_the_next_ones_on_the_ring_twice_as_often(rig: Rig) -> None:
    pings = [to for to, message in sent(rig, TIMEOUT + 500) if isinstance(message, Ping)]

    assert pings == [N2] * 4


def test_the_ring_goes_round_and_leaves_out_nodes_that_have_failed(rig: Rig) -> None:
    nodetable.rename(rig.node, rig.node.cluster.myself, b"f" * 40)
    nodetable.mark(rig.node, peer_of(rig, N2), FAIL)

    assert [peer.id for peer in rig.node.cluster.nodes.values() if peer.is_watched] == [N3]


def test_a_node_is_watched_by_all_others_if_they_are_few(rig: Rig) -> None:
    rig.turn(watchers=8)
    nodetable.refresh(rig.node)

    assert [peer.id for peer in rig.node.cluster.nodes.values() if peer.is_watched] == [N2, N3, N4]


def test_a_node_that_does_not_know_of_watchers_is_pinged_by_all(rig: Rig) -> None:
    peer_of(rig, N4).capabilities = 0

    assert pinged(rig, HALF + 300) == {N2, N4}


def test_a_node_to_which_something_was_sent_has_to_show_that_it_is_there(rig: Rig) -> None:
    rig.advance(100)
    watchers.note_use(rig.node, [((peer_of(rig, N3).link, 999), WillQueue(JOB))])
    watchers.note_use(rig.node, [((peer_of(rig, N4).link,), Ping())])

    assert pinged(rig, HALF + 300) == {N2, N3}
    assert pinged(rig, HALF + 300) == {N2}


def test_what_is_sent_is_noted(rig: Rig) -> None:
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 4)
    rig.take()

    assert peer_of(rig, N3).used_at == rig.now.mono


# Silence.


def test_all_are_told_of_a_node_that_does_not_answer_for_half_the_timeout(rig: Rig) -> None:
    peer_of(rig, N4).capabilities = 0
    assert (N3, Suspect(N2)) not in sent(rig, QUARTER + HALF - 300, N2)

    told = [each for each in sent(rig, 2_000, N2) if isinstance(each[1], Suspect)]
    assert told == [(N3, Suspect(N2))], "N4 does not understand it, and once is enough"


def test_who_is_told_pings_at_once_and_waits_for_the_whole_timeout_of_the_teller(
    rig: Rig,
) -> None:
    rig.message(N2, Suspect(N3))
    assert [to for to, said in rig.sent(gossip=True) if isinstance(said, Ping)] == [N3]
    rig.message(N4, Suspect(N3))
    assert rig.sent(gossip=True) == [], "it has been asked"

    rig.advance(HALF)
    assert not peer_of(rig, N3).flags & PFAIL
    rig.advance(300)
    assert peer_of(rig, N3).flags & PFAIL


def test_an_answer_ends_all_doubts(rig: Rig) -> None:
    rig.message(N2, Suspect(N3))
    gossip.on_pong(rig.node, peer_of(rig, N3))
    gossip.ping(rig.node, peer_of(rig, N3))

    rig.advance(HALF + 300)

    assert peer_of(rig, N3).flags == 0


def test_a_doubt_that_was_told_of_long_ago_does_not_count(rig: Rig) -> None:
    peer = peer_of(rig, N3)
    peer.doubted_at = rig.now.mono
    rig.advance(2 * TIMEOUT + 100)
    assert not watchers.is_doubted(rig.node, peer)

    watchers.doubt(rig.node, peer)
    assert peer.doubted_at == rig.now.mono


@pytest.mark.parametrize("told", [ME, UNKNOWN])
def test_a_doubt_about_this_node_or_an_unknown_one_is_ignored(rig: Rig, told: NodeId) -> None:
    rig.message(N2, Suspect(told, is_vote=True))

    assert rig.sent(gossip=True) == []


@pytest.mark.parametrize("flags", [FAIL, HANDSHAKE])
def test_a_doubt_about_a_node_that_has_failed_or_is_not_met_is_ignored(
    rig: Rig, flags: int
) -> None:
    nodetable.mark(rig.node, peer_of(rig, N3), flags)

    rig.message(N2, Suspect(N3))

    assert rig.sent(gossip=True) == []


# Votes.


def test_the_watchers_of_a_node_are_told_that_it_is_suspected_until_it_has_failed(
    rig: Rig,
) -> None:
    peer = peer_of(rig, N3)
    nodetable.mark(rig.node, peer, PFAIL)
    peer.ping_sent = rig.now.mono
    vote = (N2, Suspect(N3, is_vote=True))
    assert vote in sent(rig, 200, N3)
    assert vote not in sent(rig, TIMEOUT - 300, N3)
    assert vote in sent(rig, 400, N3)

    nodetable.mark(rig.node, peer, FAIL)
    assert vote not in sent(rig, 2 * TIMEOUT, N3)


def test_a_majority_of_votes_is_a_verdict(rig: Rig) -> None:
    nodetable.mark(rig.node, peer_of(rig, N2), PFAIL)

    rig.message(N3, Suspect(N2, is_vote=True))
    assert not peer_of(rig, N2).flags & FAIL
    rig.message(N4, Suspect(N2, is_vote=True))

    assert peer_of(rig, N2).flags & FAIL
    assert (N3, Fail(N2)) in rig.sent()


def test_votes_may_come_before_this_node_suspects_it_too(rig: Rig) -> None:
    rig.message(N3, Suspect(N2, is_vote=True))
    rig.message(N4, Suspect(N2, is_vote=True))
    assert peer_of(rig, N2).flags == 0

    rig.advance(HALF + 300)

    assert peer_of(rig, N2).flags & FAIL


# What is told of others.


def test_new_nodes_are_told_of_more_often(rig: Rig) -> None:
    rig.node.mono += 60_000
    peer_of(rig, N4).created = rig.node.mono

    found = [entry.id for _ in range(100) for entry in gossip.section(rig.node)]

    assert found.count(N4) == 100
