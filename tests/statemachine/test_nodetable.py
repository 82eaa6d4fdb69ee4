from disque_trio.statemachine import nodetable
from disque_trio.statemachine.base import FAIL, HANDSHAKE, LEAVING, MYSELF, NOADDR, PFAIL
from disque_trio.statemachine.cluster import Link, Peer
from disque_trio.statemachine.messages import Frame, Ping
from tests.rig import ME, N2, N3, UNKNOWN, Rig


def frame_of(port: int) -> Frame:
    """What a node sends that listens on this port."""
    return Frame(N2, port, 0, Ping())


def test_a_node_that_is_alone_has_no_heartbeat() -> None:
    rig = Rig()

    assert not rig.node.cron.due


def test_the_heartbeat_starts_with_the_first_other_node() -> None:
    rig = Rig()

    nodetable.add(rig.node, Peer(N2, "10.0.0.2", 7711))

    assert rig.node.cron.due == rig.now.mono + 100


def test_a_second_node_does_not_delay_the_heartbeat() -> None:
    rig = Rig()
    nodetable.add(rig.node, Peer(N2, "10.0.0.2", 7711))
    due = rig.node.cron.due
    rig.advance(50)

    nodetable.add(rig.node, Peer(N3, "10.0.0.3", 7711))

    assert rig.node.cron.due == due


def test_a_removed_node_leaves_no_link_and_no_opinion() -> None:
    rig = Rig(peers=2)
    gone, other = (rig.node.cluster.nodes[name] for name in (N2, N3))
    other.reports = {N2: rig.now.mono, ME: rig.now.mono}
    link = gone.link

    nodetable.remove(rig.node, gone)

    out = rig.take()
    assert out.hangups == [link]
    assert out.nodes_changed
    assert list(other.reports) == [ME]
    assert rig.node.cluster.reachable == [other]


def test_a_handshake_comes_and_goes_without_touching_nodes_conf() -> None:
    rig = Rig()
    peer = Peer(UNKNOWN, "10.0.0.9", 7711, HANDSHAKE)

    nodetable.add(rig.node, peer)
    nodetable.remove(rig.node, peer)

    assert not rig.take().nodes_changed


def test_only_nodes_that_can_take_copies_are_reachable() -> None:
    rig = Rig()
    for number, flags in enumerate([0, PFAIL, FAIL, HANDSHAKE, NOADDR, LEAVING]):
        nodetable.add(rig.node, Peer(b"%040d" % number, f"10.0.0.{number}", 7711, flags))

    assert [peer.id for peer in rig.node.cluster.reachable] == [b"%040d" % 0]


def test_a_renamed_node_stands_under_its_new_name_only() -> None:
    rig = Rig(peers=1)
    peer = rig.node.cluster.nodes[N2]

    nodetable.rename(rig.node, peer, N3)

    assert list(rig.node.cluster.nodes) == [ME, N3]
    assert rig.node.cluster.nodes[N3] is peer
    assert rig.take().nodes_changed


def test_a_flag_that_is_set_already_changes_nothing() -> None:
    rig = Rig(peers=1)
    peer = rig.node.cluster.nodes[N2]
    nodetable.mark(rig.node, peer, PFAIL)
    assert rig.take().nodes_changed

    nodetable.mark(rig.node, peer, PFAIL)
    nodetable.unmark(rig.node, peer, FAIL)

    assert not rig.take().nodes_changed


def test_a_node_that_moved_is_dialled_at_its_new_place() -> None:
    rig = Rig(peers=1)
    peer = rig.node.cluster.nodes[N2]
    link = peer.link

    nodetable.learn_address(rig.node, peer, Link(9, None, "127.0.0.1", "10.0.0.7"), frame_of(7712))

    out = rig.take()
    assert out.hangups == [link]
    assert out.nodes_changed
    rig.advance(200)
    assert (peer.link, "10.0.0.7", 17712) in [dial for out in rig.outboxes for dial in out.dials]


def test_an_address_that_is_the_same_or_makes_no_sense_is_not_learned() -> None:
    rig = Rig(peers=1)
    peer = rig.node.cluster.nodes[N2]
    nowhere = Link(8, None)
    same = Link(9, None, "127.0.0.1", "127.0.0.2")

    nodetable.learn_address(rig.node, peer, nowhere, frame_of(7712))
    nodetable.learn_address(rig.node, peer, same, frame_of(60_000))
    nodetable.learn_address(rig.node, peer, same, frame_of(7711))

    assert (peer.ip, peer.port) == ("127.0.0.2", 7711)
    assert peer.is_connected
    assert not rig.take().nodes_changed


def test_a_node_without_address_is_not_reachable_and_gets_well_with_an_address() -> None:
    rig = Rig(peers=1)
    peer = rig.node.cluster.nodes[N2]

    nodetable.lose_address(rig.node, peer)

    assert (peer.ip, peer.port, peer.flags) == ("", 0, NOADDR)
    assert rig.node.cluster.reachable == []
    assert rig.node.cluster.size == 2
    nodetable.learn_address(rig.node, peer, Link(9, None, "127.0.0.1", "10.0.0.7"), frame_of(7711))
    assert peer.flags == 0
    assert rig.node.cluster.reachable == [peer]


def test_the_own_address_is_learned_when_it_is_new() -> None:
    rig = Rig()
    myself = rig.node.cluster.myself

    nodetable.learn_own_ip(rig.node, "")
    nodetable.learn_own_ip(rig.node, myself.ip)
    assert not rig.take().nodes_changed

    nodetable.learn_own_ip(rig.node, "10.0.0.1")
    assert myself.ip == "10.0.0.1"
    assert myself.flags == MYSELF
    assert rig.take().nodes_changed


def test_a_ban_lasts_a_minute() -> None:
    rig = Rig()

    nodetable.ban(rig.node, N2)

    rig.advance(59_999)
    assert nodetable.is_banned(rig.node, N2)
    rig.advance(1)
    assert not nodetable.is_banned(rig.node, N2)


def test_bans_that_are_over_are_forgotten_with_the_next_one() -> None:
    rig = Rig()
    nodetable.ban(rig.node, N2)
    rig.advance(60_000)

    nodetable.ban(rig.node, N3)

    assert list(rig.node.cluster.blacklist) == [N3]
