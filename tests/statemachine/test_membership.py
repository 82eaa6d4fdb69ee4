from disque_trio.statemachine import membership, nodetable
from disque_trio.statemachine.base import FAIL, HANDSHAKE, LEAVING, MYSELF, NOADDR, PFAIL, NodeId
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.messages import Frame, Gossip, Meet, Message, Ping, Pong
from tests.rig import ME, N2, N3, N4, UNKNOWN, Rig

HEARTBEAT = 110
"""A heartbeat, and the grain of the timers."""


def answer(rig: Rig, name: NodeId, message: Message, **header: int | bytes) -> None:
    """A frame on the link that we dialled."""
    frame = Frame(name, 7711, MYSELF, message)
    for field, value in header.items():
        setattr(frame, field, value)
    rig.machine.message(rig.node.cluster.nodes[name].link, frame, rig.now)
    rig.take()


def keep_well(rig: Rig) -> None:
    """All peers have just answered."""
    for peer in rig.node.cluster.nodes.values():
        peer.ping_sent, peer.pong_received = 0, rig.now.mono


# Answering.


def test_whoever_pings_is_answered_on_the_same_link() -> None:
    rig = Rig(peers=1)

    rig.message(N2, Ping())

    assert rig.sent(gossip=True) == [(N2, Pong())]


def test_a_sender_without_a_proper_name_is_ignored_and_counted() -> None:
    rig = Rig()
    link = rig.machine.accepted("10.0.0.1", "10.0.0.9", rig.now)

    rig.machine.message(link, Frame(b"a b\n" * 10, 7711, MYSELF, Meet()), rig.now)

    assert rig.take().messages == []
    assert list(rig.node.cluster.nodes) == [ME]
    assert sum(rig.node.stats.frames_refused.values()) == 1


def test_the_first_ping_tells_the_own_address() -> None:
    rig = Rig(peers=1)
    rig.node.cluster.myself.ip = ""

    rig.message(N2, Ping())

    assert rig.node.cluster.myself.ip == "127.0.0.1"
    assert rig.outboxes[-1].nodes_changed


def test_only_meet_changes_an_own_address_that_is_known() -> None:
    rig = Rig()
    link = rig.machine.accepted("10.0.0.1", "10.0.0.9", rig.now)

    rig.machine.message(link, Frame(UNKNOWN, 7711, MYSELF, Ping()), rig.now)
    assert rig.node.cluster.myself.ip == "127.0.0.1"

    rig.machine.message(link, Frame(UNKNOWN, 7711, MYSELF, Meet()), rig.now)
    assert rig.node.cluster.myself.ip == "10.0.0.1"


def test_a_process_with_our_id_is_answered_and_changes_nothing() -> None:
    rig = Rig()
    link = rig.machine.accepted("127.0.0.1", "10.0.0.9", rig.now)
    rumour = (Gossip(UNKNOWN, b"10.0.0.9", 7711, 0),)

    rig.machine.message(link, Frame(ME, 7712, MYSELF | LEAVING, Ping(rumour)), rig.now)

    assert len(rig.take().messages) == 1
    assert list(rig.node.cluster.nodes) == [ME]
    assert rig.node.cluster.myself.port == 7711
    assert not rig.node.cluster.is_leaving


def test_a_pong_on_our_link_ends_the_wait_for_it() -> None:
    rig = Rig(peers=1)
    peer = rig.node.cluster.nodes[N2]
    peer.ping_sent = rig.now.mono
    nodetable.mark(rig.node, peer, PFAIL)

    answer(rig, N2, Pong(), capabilities=1)

    assert (peer.ping_sent, peer.pong_received, peer.flags) == (0, rig.now.mono, 0)
    assert peer.capabilities == 1


def test_capabilities_are_taken_only_on_a_link_that_was_dialled() -> None:
    rig = Rig(peers=1)
    peer = rig.node.cluster.nodes[N2]
    unknown = rig.machine.accepted("127.0.0.1", peer.ip, rig.now)

    rig.machine.message(unknown, Frame(N2, peer.port, 0, Ping(), capabilities=1), rig.now)
    assert peer.capabilities == 0

    answer(rig, N2, Ping(), capabilities=1)
    assert peer.capabilities == 1


def test_a_ping_on_our_link_is_answered_but_is_no_pong() -> None:
    rig = Rig(peers=1)
    peer = rig.node.cluster.nodes[N2]
    peer.ping_sent = rig.now.mono
    nodetable.mark(rig.node, peer, PFAIL)

    answer(rig, N2, Ping())

    assert (peer.ping_sent, peer.flags) == (rig.now.mono, PFAIL)
    assert rig.sent(gossip=True)[-1] == (N2, Pong())


def test_a_pong_on_the_others_link_is_no_answer_to_us() -> None:
    rig = Rig(peers=1)
    peer = rig.node.cluster.nodes[N2]
    peer.ping_sent = rig.now.mono

    rig.message(N2, Pong())

    assert peer.ping_sent == rig.now.mono


# Addresses.


def test_a_ping_from_elsewhere_moves_the_node() -> None:
    rig = Rig(peers=1)
    peer = rig.node.cluster.nodes[N2]
    link = rig.machine.accepted("127.0.0.1", "10.0.0.9", rig.now)

    rig.machine.message(link, Frame(N2, 7712, MYSELF, Ping()), rig.now)

    assert (peer.ip, peer.port) == ("10.0.0.9", 7712)
    assert len(rig.take().hangups) == 1


def test_a_pong_or_meet_from_elsewhere_does_not_move_the_node() -> None:
    rig = Rig(peers=1)
    peer = rig.node.cluster.nodes[N2]
    link = rig.machine.accepted("127.0.0.1", "10.0.0.9", rig.now)

    rig.machine.message(link, Frame(N2, 7712, MYSELF, Pong()), rig.now)
    rig.machine.message(link, Frame(N2, 7712, MYSELF, Meet()), rig.now)

    assert (peer.ip, peer.port) == ("127.0.0.2", 7711)


def test_another_node_at_a_nodes_address_takes_the_address_from_it() -> None:
    rig = Rig(peers=1)
    peer = rig.node.cluster.nodes[N2]
    peer.ping_sent = 1
    link = peer.link

    answer(rig, N2, Pong(), sender=N3)

    assert (peer.flags, peer.ip, peer.port, peer.ping_sent) == (NOADDR, "", 0, 0)
    assert rig.outboxes[-1].hangups == [link]
    rig.advance(20_000)
    assert peer.flags == NOADDR
    assert peer.link == 0


def test_a_node_without_address_that_pings_is_back() -> None:
    rig = Rig(peers=1)
    peer = rig.node.cluster.nodes[N2]
    answer(rig, N2, Pong(), sender=N3)
    rig.advance(20_000)

    rig.message(N2, Ping())
    rig.advance(HEARTBEAT)

    assert (peer.flags, peer.ip, peer.port) == (0, "127.0.0.2", 7711)
    assert peer.link
    assert rig.node.cluster.reachable == [peer]


# Leaving.


def test_leaving_is_learned_from_the_header() -> None:
    rig = Rig(peers=1)
    peer = rig.node.cluster.nodes[N2]

    answer(rig, N2, Pong(), flags=MYSELF | LEAVING)
    assert peer.flags == LEAVING
    assert rig.node.cluster.reachable == []
    assert rig.outboxes[-1].nodes_changed

    answer(rig, N2, Pong())
    assert peer.flags == 0
    assert rig.node.cluster.reachable == [peer]


def test_leaving_is_announced_to_all_nodes_at_once_and_only_when_it_changes() -> None:
    rig = Rig(peers=2)

    rig.ask("CLUSTER", "LEAVING", "yes")
    told = rig.sent(gossip=True)
    rig.ask("CLUSTER", "LEAVING", "yes")

    assert [(to, type(message)) for to, message in told] == [(N2, Pong), (N3, Pong)]
    assert rig.sent(gossip=True) == []


def test_leaving_is_learned_from_an_announcement_on_a_link_of_the_leaving_node() -> None:
    rig = Rig(peers=1)

    link = rig.machine.accepted("127.0.0.1", "127.0.0.2", rig.now)
    rig.machine.message(link, Frame(N2, 7711, MYSELF | LEAVING, Pong()), rig.now)

    assert rig.node.cluster.nodes[N2].flags == LEAVING


# The heartbeat.


def test_of_the_nodes_drawn_the_one_silent_for_longest_is_pinged() -> None:
    rig = Rig(peers=3)
    nodes = rig.node.cluster.nodes
    keep_well(rig)
    nodes[N3].pong_received -= 1_000
    pinged = []
    rig.sent(gossip=True)

    for _ in range(20):
        rig.node.cron.runs = 9
        membership.on_cron(rig.node, rig.node.cron)
        rig.take()
        pinged += [name for name, _ in rig.sent(gossip=True)]
        keep_well(rig)
        nodes[N3].pong_received -= 1_000

    assert pinged.count(N3) > 10


def test_no_node_is_pinged_that_was_pinged_already_or_cannot_be() -> None:
    rig = Rig(peers=3)
    nodes = rig.node.cluster.nodes
    keep_well(rig)
    nodes[N2].ping_sent = rig.now.mono
    nodes[N3].flags = HANDSHAKE
    nodes[N3].created = rig.now.mono
    answer(rig, N4, Pong(), sender=UNKNOWN)
    rig.sent(gossip=True)

    for _ in range(20):
        rig.node.cron.runs = 9
        membership.on_cron(rig.node, rig.node.cron)
    rig.take()

    assert rig.sent(gossip=True) == []


def test_the_heartbeat_stops_when_the_last_other_node_is_gone() -> None:
    rig = Rig(peers=1)

    membership.forget(rig.node, N2)
    rig.advance(HEARTBEAT)

    assert not rig.node.cron.due
    membership.meet(rig.node, "10.0.0.9", 7711)
    assert rig.node.cron.due


# Restarting.


def test_nodes_of_nodes_conf_are_dialled_and_their_times_start_anew() -> None:
    rig = Rig()
    rig.advance(5_000)
    silent = Peer(N2, "10.0.0.2", 7711, FAIL, ping_sent=1, pong_received=1)
    fresh = Peer(N3, "10.0.0.3", 7711)

    membership.restore(rig.node, [silent, fresh])

    assert (silent.ping_sent, silent.pong_received) == (rig.now.mono, rig.now.mono)
    assert (fresh.ping_sent, fresh.pong_received) == (0, 0)
    assert rig.node.cluster.reachable == [fresh]
    rig.advance(HEARTBEAT)
    dials = [dial for out in rig.outboxes for dial in out.dials]
    assert [ip for _, ip, _ in dials] == ["10.0.0.2", "10.0.0.3"]
