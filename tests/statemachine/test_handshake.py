from disque_trio.statemachine import handshake
from disque_trio.statemachine.base import HANDSHAKE, MEET, MYSELF, NodeId
from disque_trio.statemachine.cluster import Link, Peer
from disque_trio.statemachine.messages import Frame, Gossip, Meet, Message, Ping, Pong
from tests.cluster_rig import ClusterRig
from tests.rig import ME, N2, N3, UNKNOWN, Rig

HEARTBEAT = 110
"""A heartbeat, and the grain of the timers."""


def handshakes(rig: Rig) -> list[Peer]:
    return [peer for peer in rig.node.cluster.nodes.values() if peer.flags & HANDSHAKE]


def come_up(rig: Rig, peer: Peer) -> None:
    rig.machine.linked(peer.link, "10.0.0.1", peer.ip, rig.now)


def receive(
    rig: Rig, link: int, message: Message, sender: NodeId = UNKNOWN, port: int = 7711
) -> None:
    rig.machine.message(link, Frame(sender, port, MYSELF, message), rig.now)
    rig.take()


def test_a_handshake_begins_with_a_dial_and_meet() -> None:
    rig = Rig()

    assert handshake.meet(rig.node, "10.0.0.9", 7712)
    rig.advance(HEARTBEAT)

    (peer,) = handshakes(rig)
    assert rig.outboxes[-2].dials == [(peer.link, "10.0.0.9", 17712)]
    assert rig.sent(gossip=True) == [(peer.id, Meet())]
    assert peer.ping_sent == 0


def test_the_driver_may_begin_one_as_the_operator_does() -> None:
    rig = Rig()

    rig.machine.meet("10.0.0.9", 7712, rig.now)

    (peer,) = handshakes(rig)
    assert (peer.ip, peer.port, peer.flags) == ("10.0.0.9", 7712, HANDSHAKE | MEET)


def test_the_answer_brings_the_name() -> None:
    rig = Rig()
    handshake.meet(rig.node, "10.0.0.9", 7711)
    rig.advance(HEARTBEAT)
    (peer,) = handshakes(rig)
    temporary = peer.id
    come_up(rig, peer)

    receive(rig, peer.link, Pong())

    assert rig.node.cluster.nodes[UNKNOWN] is peer
    assert temporary not in rig.node.cluster.nodes
    assert (peer.flags, peer.ip, peer.port) == (0, "10.0.0.9", 7711)
    assert peer.pong_received == rig.now.mono
    assert rig.node.cluster.reachable == [peer]
    assert rig.outboxes[-1].nodes_changed


def test_meet_is_repeated_until_it_is_answered() -> None:
    rig = Rig()
    handshake.meet(rig.node, "10.0.0.9", 7711)
    rig.advance(HEARTBEAT)
    (peer,) = handshakes(rig)

    rig.machine.unlinked(peer.link, rig.now)
    rig.sent(gossip=True)
    rig.advance(HEARTBEAT)

    assert rig.sent(gossip=True) == [(peer.id, Meet())]


def test_a_link_on_which_meet_is_not_answered_is_replaced() -> None:
    """The other machine may have failed without ending the connection."""
    rig = Rig()
    handshake.meet(rig.node, "10.0.0.9", 7711)
    rig.advance(HEARTBEAT)
    (peer,) = handshakes(rig)
    first = peer.link
    come_up(rig, peer)
    rig.sent(gossip=True)
    rig.outboxes.clear()

    rig.advance(rig.node.config.cluster_node_timeout - HEARTBEAT)
    assert rig.sent(gossip=True) == []
    rig.advance(3 * HEARTBEAT)

    assert [link for out in rig.outboxes for link in out.hangups] == [first]
    assert rig.sent(gossip=True) == [(peer.id, Meet())]
    assert peer.link != first


def test_an_unknown_node_that_sends_meet_is_answered_and_then_pinged() -> None:
    rig = Rig()
    link = rig.machine.accepted("10.0.0.1", "10.0.0.9", rig.now)

    receive(rig, link, Meet(), port=7712)

    assert rig.sent(gossip=True) == [(b"link %d" % link, Pong())]
    (peer,) = handshakes(rig)
    assert (peer.ip, peer.port, peer.flags) == ("10.0.0.9", 7712, HANDSHAKE)
    assert peer.id != UNKNOWN
    rig.advance(HEARTBEAT)
    assert rig.sent(gossip=True) == [(peer.id, Ping())]


def test_gossip_of_an_unknown_node_has_no_effect() -> None:
    rig = Rig()
    link = rig.machine.accepted("10.0.0.1", "10.0.0.9", rig.now)

    receive(rig, link, Meet((Gossip(N3, b"10.0.0.3", 7711, 0),)))

    assert [peer.ip for peer in handshakes(rig)] == ["10.0.0.9"]


def test_an_unknown_node_that_only_pings_is_answered_and_forgotten() -> None:
    rig = Rig()
    link = rig.machine.accepted("10.0.0.1", "10.0.0.9", rig.now)

    receive(rig, link, Ping())

    assert rig.sent(gossip=True) == [(b"link %d" % link, Pong())]
    assert list(rig.node.cluster.nodes) == [ME]


def test_an_unknown_node_at_an_impossible_address_is_answered_only() -> None:
    rig = Rig()
    link = rig.machine.accepted("", "", rig.now)

    receive(rig, link, Meet())
    receive(rig, rig.machine.accepted("10.0.0.1", "10.0.0.9", rig.now), Meet(), port=60_000)

    assert handshakes(rig) == []
    assert len(rig.sent(gossip=True)) == 2


def test_one_address_is_one_handshake() -> None:
    rig = Rig()

    assert handshake.meet(rig.node, "10.0.0.9", 7711)
    assert handshake.meet(rig.node, "::ffff:10.0.0.9", 7711)
    assert handshake.meet(rig.node, "10.0.0.9", 7712)

    assert [(peer.ip, peer.port) for peer in handshakes(rig)] == [
        ("10.0.0.9", 7711),
        ("10.0.0.9", 7712),
    ]


def test_unknown_nodes_start_no_more_than_a_hundred_handshakes() -> None:
    rig = Rig()
    link = rig.machine.accepted("10.0.0.1", "10.0.0.9", rig.now)

    for port in range(1, 200):
        receive(rig, link, Meet(), port=port)

    assert len(handshakes(rig)) == 100


def test_an_operator_s_meet_is_not_limited_by_handshakes_of_unknown_nodes() -> None:
    rig = Rig()
    for port in range(1, 200):
        handshake.answer_meet(rig.node, _link_from(rig, "10.0.0.9"), Frame(N2, port, 0, Meet()))

    assert handshake.meet(rig.node, "10.0.0.2", 7711)

    assert handshakes(rig)[-1].ip == "10.0.0.2"


def _link_from(rig: Rig, ip: str) -> Link:
    return rig.node.cluster.links[rig.machine.accepted("10.0.0.1", ip, rig.now)]


def test_unknown_nodes_do_not_grow_the_table_beyond_a_thousand_nodes() -> None:
    rig = Rig()
    nodes = rig.node.cluster.nodes
    for number in range(999):
        nodes[b"%040d" % number] = Peer(b"%040d" % number, "10.1.1.1", 7711)

    handshake.meet_by_gossip(rig.node, "10.0.0.2", 7711)

    assert handshakes(rig) == []


def test_a_handshake_by_gossip_that_is_not_answered_ends_after_the_node_timeout() -> None:
    rig = Rig()
    handshake.meet_by_gossip(rig.node, "10.0.0.9", 7711)
    rig.advance(15_000)
    assert len(handshakes(rig)) == 1

    rig.advance(200)

    assert list(rig.node.cluster.nodes) == [ME]
    assert rig.outboxes[-2].hangups or rig.outboxes[-3].hangups


def test_a_short_node_timeout_still_leaves_a_handshake_one_second() -> None:
    rig = Rig()
    rig.request("CONFIG", "SET", "cluster-node-timeout", 100)
    handshake.meet_by_gossip(rig.node, "10.0.0.9", 7711)

    rig.advance(1000)
    assert len(handshakes(rig)) == 1
    rig.advance(200)
    assert handshakes(rig) == []


def test_a_handshake_with_a_known_node_ends_and_teaches_its_new_address() -> None:
    rig = Rig(peers=1)
    known = rig.node.cluster.nodes[N2]
    handshake.meet(rig.node, "10.0.0.9", 7712)
    rig.advance(HEARTBEAT)
    (peer,) = handshakes(rig)
    come_up(rig, peer)
    links = [known.link, peer.link]

    receive(rig, peer.link, Pong(), sender=N2, port=7712)

    assert list(rig.node.cluster.nodes) == [ME, N2]
    assert (known.ip, known.port) == ("10.0.0.9", 7712)
    assert sorted(rig.outboxes[-1].hangups) == links


def test_a_handshake_with_a_known_node_where_it_is_only_ends() -> None:
    rig = Rig(peers=1)
    known = rig.node.cluster.nodes[N2]
    handshake.meet(rig.node, known.ip, known.port)
    rig.advance(HEARTBEAT)
    (peer,) = handshakes(rig)
    come_up(rig, peer)
    link = peer.link

    receive(rig, link, Pong(), sender=N2)

    assert rig.outboxes[-1].hangups == [link]
    assert known.is_connected


def test_a_name_that_guesses_the_temporary_one_ends_the_handshake() -> None:
    rig = Rig()
    handshake.meet(rig.node, "10.0.0.9", 7711)
    rig.advance(HEARTBEAT)
    (peer,) = handshakes(rig)
    come_up(rig, peer)

    receive(rig, peer.link, Pong(), sender=peer.id)

    assert list(rig.node.cluster.nodes) == [ME]


def test_a_node_that_meets_itself_stays_alone() -> None:
    rig = ClusterRig("a")

    rig.meet("a", "a")
    rig.run(5_000)

    assert list(rig.node("a").cluster.nodes) == [rig.id("a")]
    assert rig.node("a").cluster.myself.ip == rig.ip("a")
    assert not rig.node("a").cron.due


def test_both_sides_of_a_handshake_become_members() -> None:
    rig = ClusterRig("a", "b")

    rig.meet("a", "b")
    rig.run(500)

    assert rig.is_formed()
    assert rig.peer("a", "b").flags == 0
    assert rig.peer("b", "a").flags == 0
    assert rig.peer("b", "a").ip == rig.ip("a")


def test_two_nodes_that_meet_each_other_at_once_know_each_other_once() -> None:
    rig = ClusterRig("a", "b")

    rig.meet("a", "b")
    rig.meet("b", "a")
    rig.run(5_000)

    assert rig.is_formed()


def test_a_node_that_starts_late_is_met_when_it_is_there() -> None:
    rig = ClusterRig("a", "b")
    rig.crash("b")
    rig.meet("a", "b")
    rig.run(1_000)

    rig.start("b")
    rig.run(1_000)

    assert rig.is_formed()


def test_meet_flags_end_with_the_handshake() -> None:
    rig = ClusterRig("a", "b")
    rig.meet("a", "b")

    (peer,) = (p for p in rig.node("a").cluster.nodes.values() if p.flags & MEET)
    rig.run(500)

    assert peer.flags == 0
