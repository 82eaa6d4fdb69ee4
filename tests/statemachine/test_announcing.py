"""Where a node says that it is reached: `cluster-announce-ip`, `-port` and `-bus-port`."""

import attrs
import pytest

from disque_trio.statemachine import gossip, nodetable
from disque_trio.statemachine.base import MYSELF, Failure
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.messages import Frame, Gossip, Meet, Message, Ping
from disque_trio.statemachine.nodesfile import nodes_text, parse_nodes
from tests.rig import CALM, N2, N3, UNKNOWN, Rig

OUTSIDE, GATEWAY = "198.51.100.7", "10.9.9.9"


def announcing(peers: int = 1) -> Rig:
    """A node behind NAT."""
    config = attrs.evolve(
        CALM,
        cluster_announce_ip=OUTSIDE,
        cluster_announce_port=30_711,
        cluster_announce_bus_port=31_711,
    )
    return Rig(peers=peers, config=config, ours=True)


def received(rig: Rig, sender: bytes, message: Message, ip: str = "", port: int = 7711) -> None:
    """A node says something on a link that comes from the gateway."""
    link = rig.machine.accepted("10.0.0.1", GATEWAY, rig.now)
    bus_port = port + 1 if ip else 0
    frame = Frame(sender, port, MYSELF, message, ip=ip.encode(), bus_port=bus_port)
    rig.machine.message(link, frame, rig.now)
    rig.take()


def test_a_node_announces_its_address_whatever_others_reach_it_by() -> None:
    rig = announcing()

    nodetable.learn_own_ip(rig.node, "10.0.0.1")

    assert rig.node.cluster.myself.place == (OUTSIDE, 30_711, 31_711)
    hello = rig.ask("HELLO")
    assert isinstance(hello, list)
    assert hello[2][1:3] == [OUTSIDE.encode(), b"30711"]  # type: ignore[index]


def test_what_is_announced_can_be_changed() -> None:
    rig = announcing()

    rig.ask("CONFIG", "SET", "cluster-announce-ip", "2001:db8::7")
    rig.ask("CONFIG", "SET", "cluster-announce-port", "7000")
    rig.ask("CONFIG", "SET", "cluster-announce-bus-port", "17000")

    myself = rig.node.cluster.myself
    assert myself.place == ("2001:db8::7", 7000, 0), "10000 above is not worth saying"
    assert myself.bus == 17_000


def test_what_is_no_address_is_refused() -> None:
    reply = announcing().ask("CONFIG", "SET", "cluster-announce-ip", "outside example")

    assert isinstance(reply, Failure)
    assert b"'outside example' is not an IP address or the name of a host, such as" in reply.text


def test_a_node_that_has_announced_nothing_is_where_its_link_comes_from() -> None:
    rig = Rig(peers=1, config=CALM)

    received(rig, N2, Ping())

    assert rig.node.cluster.nodes[N2].place == (GATEWAY, 7711, 0)


def test_a_node_is_looked_for_where_it_announces_to_be() -> None:
    rig = Rig(peers=1, config=CALM)

    received(rig, N2, Ping(), OUTSIDE, 30_711)
    rig.advance(200)

    assert rig.node.cluster.nodes[N2].place == (OUTSIDE, 30_711, 30_712)
    dials = [dial for out in rig.outboxes for dial in out.dials]
    assert dials[-1][1:] == (OUTSIDE, 30_712)


def test_a_node_that_meets_is_answered_where_it_announces_to_be() -> None:
    rig = Rig(config=CALM)

    received(rig, UNKNOWN, Meet(), OUTSIDE, 30_711)
    rig.advance(200)

    dials = [dial for out in rig.outboxes for dial in out.dials]
    assert [dial[1:] for dial in dials] == [(OUTSIDE, 30_712)]


def test_a_node_can_be_met_at_another_port_for_nodes() -> None:
    rig = Rig(config=CALM)

    rig.ask("CLUSTER", "MEET", OUTSIDE, 60_000, 60_001)
    rig.advance(200)

    dials = [dial for out in rig.outboxes for dial in out.dials]
    assert [dial[1:] for dial in dials] == [(OUTSIDE, 60_001)]


def test_an_announced_address_that_is_none_is_not_believed() -> None:
    rig = Rig(peers=1, config=CALM)

    received(rig, N2, Ping(), "nowhere.example")

    assert rig.node.cluster.nodes[N2].ip == GATEWAY


def test_gossip_passes_on_the_port_for_nodes() -> None:
    rig = announcing(peers=2)
    peer = rig.node.cluster.nodes[N2]
    peer.ip, peer.port, peer.bus_port = OUTSIDE, 30_000, 30_500

    told = {entry.id: entry for _ in range(20) for entry in gossip.section(rig.node)}

    assert (told[N2].ip, told[N2].port, told[N2].bus_port) == (OUTSIDE.encode(), 30_000, 30_500)


def test_a_node_of_which_gossip_tells_is_dialled_at_its_port_for_nodes() -> None:
    rig = Rig(peers=1, config=CALM)

    received(rig, N2, Ping((Gossip(N3, OUTSIDE.encode(), 30_000, 0, bus_port=30_500),)))
    rig.advance(200)

    dials = [dial for out in rig.outboxes for dial in out.dials]
    assert (OUTSIDE, 30_500) in [dial[1:] for dial in dials]


def test_the_port_for_nodes_is_in_nodes_conf_where_it_is_not_the_usual_one() -> None:
    rig = Rig(peers=2, config=CALM)
    rig.node.cluster.nodes[N2].bus_port = 9
    text = nodes_text(rig.node, handshakes=False)

    assert b" 127.0.0.2:7711@9 " in text
    assert b" 127.0.0.3:7711 " in text
    _, peers = parse_nodes(text)
    assert [peer.bus_port for peer in peers] == [9, 0]


def test_a_client_port_above_55535_needs_a_port_for_nodes() -> None:
    rig = Rig(config=CALM)
    peer = Peer(N2, "10.0.0.2", 7711)
    nodetable.add(rig.node, peer)

    received(rig, N2, Ping(), port=60_000)
    assert peer.port == 7711

    received(rig, N2, Ping(), OUTSIDE, port=60_000)
    assert peer.place == (OUTSIDE, 60_000, 60_001)


@pytest.mark.parametrize(("ports", "last"), [((60_000,), b"55535"), ((0, 7712), b"65535")])
def test_meet_names_the_last_port_that_it_takes(ports: tuple[int, ...], last: bytes) -> None:
    reply = Rig(config=CALM).ask("CLUSTER", "MEET", "no name", *ports)

    assert isinstance(reply, Failure)
    assert reply.text.endswith(b"a port from 1 to " + last)
