from disque_trio.statemachine import links
from tests.rig import N2, Rig


def test_an_accepted_link_belongs_to_no_peer() -> None:
    rig = Rig()

    number = rig.machine.accepted("10.0.0.1", "::ffff:10.0.0.2", rig.now)

    link = rig.node.cluster.links[number]
    assert link.peer is None
    assert (link.local_ip, link.remote_ip) == ("10.0.0.1", "10.0.0.2")


def test_links_are_numbered_as_they_come() -> None:
    rig = Rig()

    assert rig.machine.accepted("10.0.0.1", "10.0.0.2", rig.now) == 1
    assert rig.machine.accepted("10.0.0.1", "10.0.0.2", rig.now) == 2


def test_a_link_is_dialled_but_not_connected_until_it_is_up() -> None:
    rig = Rig(peers=1)
    peer = rig.node.cluster.nodes[N2]
    rig.machine.unlinked(peer.link, rig.now)

    link = links.dial(rig.node, peer)

    assert rig.take().dials == [(link, "127.0.0.2", 17711)]
    assert peer.link == link
    assert not peer.is_connected
    rig.machine.linked(link, "127.0.0.1", "127.0.0.2", rig.now)
    assert peer.is_connected


def test_a_lost_link_is_dialled_again_by_the_next_heartbeat() -> None:
    rig = Rig(peers=1)
    peer = rig.node.cluster.nodes[N2]
    lost = peer.link

    rig.machine.unlinked(lost, rig.now)

    assert peer.link == 0
    assert not peer.is_connected
    assert lost not in rig.node.cluster.links
    rig.advance(200)
    assert peer.link > lost


def test_a_failed_dial_is_repeated() -> None:
    rig = Rig(peers=1)
    peer = rig.node.cluster.nodes[N2]
    rig.machine.unlinked(peer.link, rig.now)
    rig.advance(200)
    first = peer.link

    rig.machine.unlinked(first, rig.now)
    rig.advance(200)

    assert peer.link == first + 1


def test_links_that_are_not_there_are_ignored() -> None:
    rig = Rig(peers=1)
    accepted = rig.machine.accepted("10.0.0.1", "10.0.0.2", rig.now)

    rig.machine.unlinked(99, rig.now)
    rig.machine.linked(99, "10.0.0.1", "10.0.0.2", rig.now)
    rig.machine.linked(accepted, "10.0.0.8", "10.0.0.9", rig.now)

    assert rig.node.cluster.links[accepted].remote_ip == "10.0.0.2"


def test_a_link_that_was_hung_up_does_not_exist_any_more() -> None:
    rig = Rig(peers=1)
    peer = rig.node.cluster.nodes[N2]
    link = peer.link

    links.hang_up(rig.node, peer)
    links.hang_up(rig.node, peer)

    assert rig.take().hangups == [link]
    assert link not in rig.node.cluster.links
    assert not peer.is_connected


def test_the_end_of_an_accepted_link_changes_no_node() -> None:
    rig = Rig(peers=1)
    accepted = rig.machine.accepted("10.0.0.1", "127.0.0.2", rig.now)

    rig.machine.unlinked(accepted, rig.now)

    assert rig.node.cluster.nodes[N2].is_connected
