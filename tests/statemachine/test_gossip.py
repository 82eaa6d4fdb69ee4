from collections import Counter

import pytest

from disque_trio.statemachine import gossip, links, nodetable
from disque_trio.statemachine.base import FAIL, HANDSHAKE, LEAVING, MEET, NOADDR, PFAIL, NodeId
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.messages import Gossip, Meet, Ping
from tests.rig import ME, N2, N3, UNKNOWN, Rig


def name(number: int) -> NodeId:
    return b"%040d" % number


def populate(rig: Rig, count: int) -> list[Peer]:
    """A table of `count` nodes, this one included, all with links."""
    peers = [Peer(name(number), f"10.0.1.{number}", 7711) for number in range(count - 1)]
    for peer in peers:
        nodetable.add(rig.node, peer)
        links.dial(rig.node, peer)
    return peers


def told(rig: Rig, rounds: int = 200) -> Counter[NodeId]:
    """How often each node is told of in many messages."""
    return Counter(entry.id for _ in range(rounds) for entry in gossip.section(rig.node))


def most(rig: Rig, rounds: int = 100) -> int:
    return max(len(gossip.section(rig.node)) for _ in range(rounds))


@pytest.mark.parametrize(
    ("nodes", "entries"), [(1, 0), (2, 0), (3, 1), (4, 2), (5, 3), (10, 3), (11, 6), (50, 6)]
)
def test_three_nodes_are_told_of_and_in_a_large_cluster_three_new_ones(
    nodes: int, entries: int
) -> None:
    rig = Rig()
    populate(rig, nodes)

    assert most(rig) == entries


def test_no_node_is_told_of_twice_in_one_message() -> None:
    rig = Rig()
    populate(rig, 6)

    for _ in range(100):
        ids = [entry.id for entry in gossip.section(rig.node)]
        assert len(set(ids)) == len(ids)


def test_nodes_that_cannot_be_contacted_are_not_told_of() -> None:
    rig = Rig()
    fit, shaking, lost, unlinked, leaving, *_ = populate(rig, 8)
    shaking.flags = HANDSHAKE
    lost.flags = NOADDR
    leaving.flags = LEAVING
    rig.machine.unlinked(unlinked.link, rig.now)

    counts = told(rig)

    assert ME not in counts
    assert not {shaking.id, lost.id, unlinked.id} & set(counts)
    assert {fit.id, leaving.id} <= set(counts)


def test_failing_nodes_are_told_of_more_often() -> None:
    rig = Rig()
    suspected, failed, *healthy = populate(rig, 10)
    suspected.flags = PFAIL
    failed.flags = FAIL

    counts = told(rig)

    busiest = max(counts[peer.id] for peer in healthy)
    assert counts[suspected.id] > busiest
    assert counts[failed.id] > busiest


def test_an_entry_says_where_the_node_is_and_what_we_think_of_it() -> None:
    rig = Rig()
    peer, _ = populate(rig, 3)
    peer.flags = PFAIL
    peer.ping_sent = rig.now.mono - 1_000
    peer.pong_received = rig.now.mono - 2_000
    entries = [entry for _ in range(20) for entry in gossip.section(rig.node)]

    entry = next(entry for entry in entries if entry.id == peer.id)

    sent, received = rig.now.wall - 1_000, rig.now.wall - 2_000
    assert entry == Gossip(
        peer.id, b"10.0.1.0", 7711, PFAIL, sent % (1 << 32), received % (1 << 32)
    )


def test_a_ping_that_is_not_answered_keeps_its_time() -> None:
    rig = Rig(peers=1)
    peer = rig.node.cluster.nodes[N2]
    peer.ping_sent = 0
    asked = rig.node.mono

    gossip.ping(rig.node, peer)
    rig.node.mono += 500
    gossip.ping(rig.node, peer)

    assert peer.ping_sent == asked
    rig.take()
    assert rig.sent(gossip=True) == [(N2, Ping()), (N2, Ping())]


def test_a_node_to_be_met_is_sent_meet_and_its_answer_is_not_awaited() -> None:
    rig = Rig(peers=1)
    peer = rig.node.cluster.nodes[N2]
    nodetable.mark(rig.node, peer, HANDSHAKE | MEET)
    peer.ping_sent = 0

    gossip.ping(rig.node, peer)

    assert peer.ping_sent == 0
    rig.take()
    assert rig.sent(gossip=True) == [(N2, Meet())]


def addresses(rig: Rig) -> list[tuple[str, int]]:
    nodes = rig.node.cluster.nodes.values()
    return [(peer.ip, peer.port) for peer in nodes if peer.flags & HANDSHAKE]


def test_a_node_named_in_gossip_is_met() -> None:
    rig = Rig(peers=1)

    rig.message(N2, Ping((Gossip(UNKNOWN, b"10.0.0.9", 7712, 0),)))

    (peer,) = (p for p in rig.node.cluster.nodes.values() if p.flags & HANDSHAKE)
    assert (peer.ip, peer.port, peer.flags) == ("10.0.0.9", 7712, HANDSHAKE | MEET)


@pytest.mark.parametrize(
    "entry",
    [
        Gossip(UNKNOWN, b"10.0.0.9", 7711, NOADDR),
        Gossip(UNKNOWN, b"", 7711, 0),
        Gossip(UNKNOWN, b"\xff\xfe\x00", 7711, 0),
        Gossip(UNKNOWN, b"10.0.0.999", 7711, 0),
        Gossip(UNKNOWN, b"10.0.0.9", 0, 0),
        Gossip(UNKNOWN, b"10.0.0.9", 65_535, 0),
        Gossip(ME, b"10.0.0.9", 7711, PFAIL),
        Gossip(N2, b"10.0.0.9", 7711, 0),
    ],
)
def test_entries_that_lead_nowhere_are_passed_over(entry: Gossip) -> None:
    rig = Rig(peers=1)

    rig.message(N2, Ping((entry,)))

    assert addresses(rig) == []
    assert list(rig.node.cluster.nodes) == [ME, N2]


def test_a_forgotten_node_is_not_met_for_a_minute() -> None:
    rig = Rig(peers=1)
    rumour = Ping((Gossip(UNKNOWN, b"10.0.0.9", 7711, 0),))
    nodetable.ban(rig.node, UNKNOWN)

    rig.message(N2, rumour)
    assert addresses(rig) == []

    rig.node.mono += 60_000
    gossip.read_section(rig.node, rig.node.cluster.nodes[N2], rumour.gossip)
    assert addresses(rig) == [("10.0.0.9", 7711)]


def test_no_more_than_a_hundred_entries_are_looked_at() -> None:
    rig = Rig(peers=2)
    known = rig.node.cluster.nodes[N3]
    filler = tuple(Gossip(ME, b"10.0.0.1", 7711, 0) for _ in range(99))
    accusation = Gossip(N3, known.ip.encode(), 7711, PFAIL)

    rig.message(N2, Ping((*filler, filler[0], accusation)))
    assert known.reports == {}

    rig.message(N2, Ping((*filler, accusation)))
    assert list(known.reports) == [N2]


def test_opinions_of_others_are_noted_and_withdrawn() -> None:
    rig = Rig(peers=2)
    known = rig.node.cluster.nodes[N3]
    ip = known.ip.encode()

    rig.message(N2, Ping((Gossip(N3, ip, 7711, PFAIL),)))
    assert known.reports == {N2: rig.now.mono}

    rig.message(N2, Ping((Gossip(N3, ip, 7711, 0),)))
    assert known.reports == {}


def test_a_failing_node_is_looked_for_where_others_saw_it() -> None:
    rig = Rig(peers=2)
    nodetable.mark(rig.node, rig.node.cluster.nodes[N3], PFAIL)

    rig.message(N2, Ping((Gossip(N3, b"10.0.0.9", 7712, 0),)))
    rig.message(N2, Ping((Gossip(N3, b"10.0.0.9", 7712, 0),)))

    assert addresses(rig) == [("10.0.0.9", 7712)]


def test_a_failing_node_that_has_not_moved_is_not_looked_for() -> None:
    rig = Rig(peers=2)
    failing = rig.node.cluster.nodes[N3]
    nodetable.mark(rig.node, failing, FAIL)

    rig.message(N2, Ping((Gossip(N3, failing.ip.encode(), failing.port, FAIL),)))

    assert addresses(rig) == []


def test_never_stays_never_on_the_wall_clock() -> None:
    rig = Rig()

    assert gossip.wall_time(rig.node, 0) == 0
    assert gossip.wall_time(rig.node, rig.now.mono - 5) == rig.now.wall - 5
