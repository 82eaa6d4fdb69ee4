"""Names of hosts: in CLUSTER MEET, `cluster-seeds` and `cluster-announce-ip`."""

import attrs
import pytest

from disque_trio.statemachine import hostnames
from disque_trio.statemachine.base import HANDSHAKE, MYSELF, OK, Failure, NodeId, Reply
from disque_trio.statemachine.chores import LookUp, Lookup
from disque_trio.statemachine.cluster import HostName
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.hostnames import LATER, SOON
from disque_trio.statemachine.messages import Frame, Ping, Pong
from disque_trio.statemachine.nodesfile import nodes_text, parse_hosts, parse_nodes
from tests.rig import CALM, ME, N2, UNKNOWN, Rig

UNKNOWN_NAME = Lookup(error="Name or service not known")


class NamingRig(Rig):
    """A machine whose driver looks up names."""

    def __init__(self, *seeds: str, peers: int = 0, announced: str = "") -> None:
        config = attrs.evolve(CALM, cluster_seeds=seeds, cluster_announce_ip=announced)
        super().__init__(peers=peers, config=config, ours=True)

    def asked(self) -> list[str]:
        """The names that were to be looked up since the last call."""
        names = [name for out in self.outboxes for name in out.lookups]
        self.outboxes.clear()
        return names

    def finds(self, name: str, *addresses: str, error: str = "") -> None:
        """A lookup that the machine has asked for by itself has this outcome."""
        self.machine.looked_up(name, Lookup(addresses, error), self.now)
        self.take()

    def meet(self, lookup: Lookup, *words: str | int) -> Reply:
        """CLUSTER MEET of a name, which has this lookup."""
        self.request("CLUSTER", "MEET", *words)
        [(client, chore)] = self.outboxes[-1].chores
        assert chore == LookUp(str(words[0]))
        assert self.replies() == [], "other clients are served meanwhile"
        self.machine.done(client, lookup, self.now)
        self.take()
        return self.reply()

    def dialled(self) -> list[tuple[str, int]]:
        """Where the machine has dialled since the last call, after a heartbeat."""
        self.advance(200)
        found = [(ip, port) for out in self.outboxes for _, ip, port in out.dials]
        self.outboxes.clear()
        return found

    def answers(self, ip: str, id: NodeId, port: int = 7711) -> None:
        """The node of this id answers at this address."""
        peer = next(
            peer
            for peer in self.node.cluster.nodes.values()
            if peer.ip == ip and peer.link and peer.id != ME
        )
        self.machine.linked(peer.link, "127.0.0.1", ip, self.now)
        self.machine.message(peer.link, Frame(id, port, MYSELF, Pong()), self.now)
        self.take()

    def told(self) -> list[str]:
        """What INFO says of meets without an answer."""
        text = self.ask("INFO", "cluster")
        assert isinstance(text, bytes)
        lines = text.decode().splitlines()
        return [line.partition("_meet")[2] for line in lines if line.startswith("unanswered_meet")]


# CLUSTER MEET.


def test_meet_takes_a_name_and_dials_where_it_leads() -> None:
    rig = NamingRig()

    assert rig.meet(Lookup(("10.0.0.9",)), "node-9.example", 7711) == OK

    assert rig.dialled() == [("10.0.0.9", 17_711)]
    rig.answers("10.0.0.9", UNKNOWN)
    assert rig.node.cluster.nodes[UNKNOWN].ip == "10.0.0.9"


def test_meet_of_a_name_with_several_addresses_meets_them_all() -> None:
    rig = NamingRig()

    rig.meet(Lookup(("10.0.0.8", "10.0.0.9", "2001:db8::9")), "nodes", 7711, 9000)

    assert rig.dialled() == [("10.0.0.8", 9000), ("10.0.0.9", 9000), ("2001:db8::9", 9000)]


def test_meet_says_why_a_name_leads_nowhere() -> None:
    rig = NamingRig()

    reply = rig.meet(UNKNOWN_NAME, "node-9.example", 7711)

    assert reply == Failure(
        b"ERR Cannot resolve the host name 'node-9.example': Name or service not known. Check its "
        b"spelling, and that the machine of this node can resolve it"
    )
    assert rig.node.cluster.hosts == []


@pytest.mark.parametrize("word", ["no name", "-", "10.0.0", "1.0x7f", "a..b", "", "a" * 254, "ä"])
def test_meet_refuses_what_is_neither_a_name_nor_an_address(word: str) -> None:
    rig = NamingRig()

    reply = rig.ask("CLUSTER", "MEET", word, 7711)

    assert isinstance(reply, Failure)
    assert b"it takes an IP address or the name of a host, and a port from 1 to 55535" in reply.text


def test_meet_refuses_a_port_before_it_looks_a_name_up() -> None:
    assert isinstance(NamingRig().ask("CLUSTER", "MEET", "node-9.example", 60_000), Failure)


def test_a_name_is_looked_up_again_when_its_node_is_away() -> None:
    rig = NamingRig()
    rig.meet(Lookup(("10.0.0.9",)), "node-9", 7711)
    rig.dialled()
    rig.answers("10.0.0.9", UNKNOWN)
    rig.advance(SOON + 1000)
    assert rig.asked() == [], "all is well"

    peer = rig.node.cluster.nodes[UNKNOWN]
    rig.machine.unlinked(peer.link, rig.now)
    rig.advance(2000)
    assert rig.asked() == ["node-9"]

    rig.finds("node-9", "10.0.0.77")
    assert ("10.0.0.77", 17_711) in rig.dialled()
    rig.answers("10.0.0.77", UNKNOWN)
    assert peer.ip == "10.0.0.77", "the node has moved"
    assert len(rig.node.cluster.nodes) == 2


def test_a_lookup_is_not_repeated_while_one_is_under_way() -> None:
    rig = NamingRig("node-9:7711")
    rig.advance(1000)
    assert rig.asked() == ["node-9"]

    rig.advance(2 * LATER)
    assert rig.asked() == []

    rig.finds("node-9", error="busy")
    rig.advance(SOON + 1000)
    assert rig.asked() == ["node-9"]


def test_two_ports_of_one_name_are_looked_up_once() -> None:
    rig = NamingRig("up:7711", "up:7712")
    rig.advance(1000)
    assert rig.asked() == ["up"]

    rig.finds("up", "10.0.0.9")

    assert rig.dialled() == [("10.0.0.9", 17_711), ("10.0.0.9", 17_712)]


def test_a_name_that_leads_to_a_known_node_dials_nobody() -> None:
    rig = NamingRig("node-2:7711", peers=1)
    rig.advance(1000)
    rig.dialled()

    rig.finds("node-2", "127.0.0.2")

    assert rig.dialled() == []
    assert rig.told() == ["s:0"]


def test_a_node_may_announce_another_address_than_its_name_leads_to() -> None:
    """As behind NAT."""
    rig = NamingRig("node-2:7711", peers=1)
    rig.advance(1000)
    rig.dialled()
    rig.finds("node-2", "10.9.9.9")
    assert rig.dialled() == [("10.9.9.9", 17_711)]
    rig.answers("10.9.9.9", N2)
    rig.advance(2000)

    assert rig.told() == ["s:0"]
    assert sorted(rig.node.cluster.nodes) == [ME, N2]


# Seeds.


def test_a_node_meets_its_seeds() -> None:
    rig = NamingRig("10.0.0.7:7711", "node-9:7000@7001")
    rig.advance(1000)
    rig.finds("node-9", "10.0.0.9")

    assert sorted(rig.dialled()) == [("10.0.0.7", 17_711), ("10.0.0.9", 7001)]
    places = {peer.place for peer in rig.node.cluster.nodes.values() if peer.flags & HANDSHAKE}
    assert places == {("10.0.0.7", 7711, 0), ("10.0.0.9", 7000, 7001)}


def test_a_seed_that_does_not_answer_is_met_again_where_its_name_leads_then() -> None:
    config = attrs.evolve(Config(), cluster_seeds=("node-9:7711",), cluster_node_timeout=2000)
    rig = NamingRig("node-9:7711")
    rig.node.config = config
    rig.advance(1000)
    rig.finds("node-9", "10.0.0.9")
    rig.advance(SOON + 2000)
    assert rig.told()[:2] == ["s:1", "_address:node-9:7711@17711"]

    rig.finds("node-9", "10.0.0.10")

    assert [peer.ip for peer in rig.node.cluster.nodes.values() if peer.flags & HANDSHAKE] == [
        "10.0.0.10"
    ]


def test_a_seed_that_is_this_node_is_no_trouble() -> None:
    rig = NamingRig("me:7711")
    rig.advance(1000)

    rig.finds("me", "127.0.0.1")
    rig.advance(2000)

    assert rig.dialled() == []
    assert rig.told() == ["s:0"]


def test_info_says_why_a_name_leads_nowhere() -> None:
    rig = NamingRig("node-9:7711")
    rig.advance(1000)
    rig.finds("node-9", error="Name or service not known")
    rig.advance(4000)

    assert rig.told() == [
        "s:1",
        "_address:node-9:7711@17711",
        "_seconds:5",
        "_error:Name or service not known",
    ]


def test_an_error_leaves_the_addresses_that_were_known() -> None:
    rig = NamingRig("node-9:7711")
    rig.advance(1000)
    rig.finds("node-9", "10.0.0.9")
    rig.finds("node-9", error="a late answer of nobody's question")
    (host,) = rig.node.cluster.hosts
    assert host.error == ""

    rig.advance(SOON + 1000)
    rig.finds("node-9", error="Temporary failure in name resolution")

    assert (host.error, host.addresses) == ("Temporary failure in name resolution", ("10.0.0.9",))


def test_seeds_can_be_changed() -> None:
    rig = NamingRig("a:7711", "b:7711")
    rig.meet(Lookup(("10.0.0.9",)), "met", 7711)

    rig.ask("CONFIG", "SET", "cluster-seeds", "b:7711 c:7712@9000")

    assert [host.place for host in rig.node.cluster.hosts] == [
        ("b", 7711, 0),
        ("met", 7711, 0),
        ("c", 7712, 9000),
    ]
    assert rig.ask("CONFIG", "GET", "cluster-seeds") == [b"cluster-seeds", b"b:7711 c:7712@9000"]

    rig.ask("CONFIG", "SET", "cluster-seeds", "met:7711")
    assert isinstance(rig.ask("CLUSTER", "FORGET", "met:7711"), Failure), "it is a seed now"


@pytest.mark.parametrize("seed", ["a", "a:", "a:0", "a:60000", "a:1@70000", "a b:1", "1.2.3:7711"])
def test_what_is_no_seed_is_refused(seed: str) -> None:
    reply = NamingRig().ask("CONFIG", "SET", "cluster-seeds", seed)

    assert isinstance(reply, Failure)
    assert b"is not the place of a node, such as node-1.example:7711" in reply.text


# Forgetting.


def test_forget_drops_the_name_of_the_node() -> None:
    rig = NamingRig()
    rig.meet(Lookup(("10.0.0.9",)), "node-9", 7711)
    rig.dialled()
    rig.answers("10.0.0.9", UNKNOWN)

    rig.ask("CLUSTER", "FORGET", UNKNOWN)

    assert rig.node.cluster.hosts == []


def test_forget_takes_a_name_that_was_met() -> None:
    rig = NamingRig()
    rig.meet(Lookup(("10.0.0.9",)), "node-9", 7711)

    rig.request("CLUSTER", "FORGET", "node-9:7711")

    assert rig.node.cluster.hosts == []
    assert isinstance(rig.ask("CLUSTER", "FORGET", "node-9:7711"), Failure)


def test_reset_leaves_the_seeds_alone() -> None:
    rig = NamingRig("seed:7711")
    rig.meet(Lookup(("10.0.0.9",)), "node-9", 7711)

    rig.request("CLUSTER", "RESET")

    assert [host.name for host in rig.node.cluster.hosts] == ["seed"]


# nodes.conf.


def test_names_that_were_met_outlast_a_restart() -> None:
    rig = NamingRig("seed:7711", announced="me.example")
    rig.meet(Lookup(("10.0.0.9",)), "node-9", 7711)
    rig.meet(Lookup(("10.0.0.8",)), "node-8", 7711, 9000)

    text = nodes_text(rig.node, handshakes=False)

    assert text.splitlines()[-2:] == [b"vars met node-9:7711", b"vars met node-8:7711@9000"]
    assert [host.place for host in parse_hosts(text)] == [
        ("node-9", 7711, 0),
        ("node-8", 7711, 9000),
    ]
    assert len(parse_nodes(text)[1]) == 0
    assert b"vars" not in nodes_text(rig.node, handshakes=True)


def test_names_of_nodes_conf_are_looked_up() -> None:
    rig = NamingRig()
    hostnames.restore(rig.node, [HostName("node-9", 7711)])
    rig.advance(1000)

    assert rig.asked() == ["node-9"]


# What a node announces.


def test_a_name_can_be_announced() -> None:
    rig = NamingRig(announced="me.example")
    assert rig.node.cluster.myself.ip == "127.0.0.1", "until it is known"
    rig.advance(1000)
    assert rig.asked() == ["me.example"]

    rig.finds("me.example", "198.51.100.7", "198.51.100.8")
    assert rig.node.cluster.myself.ip == rig.node.cluster.announced_ip == "198.51.100.7"

    rig.advance(LATER + 1000)
    rig.finds("me.example", "198.51.100.8", "198.51.100.7")
    assert rig.node.cluster.myself.ip == "198.51.100.7", "it is still right"

    rig.advance(LATER + 1000)
    rig.finds("me.example", "198.51.100.9")
    assert rig.node.cluster.myself.ip == "198.51.100.9"


def test_the_name_that_is_announced_can_be_changed() -> None:
    rig = NamingRig(announced="me.example")

    rig.ask("CONFIG", "SET", "cluster-announce-port", 7000)
    assert [host.name for host in rig.node.cluster.hosts] == ["me.example"]

    rig.ask("CONFIG", "SET", "cluster-announce-ip", "other.example")
    assert [host.name for host in rig.node.cluster.hosts] == ["other.example"]

    rig.ask("CONFIG", "SET", "cluster-announce-ip", "198.51.100.7")
    assert rig.node.cluster.hosts == []
    assert rig.node.cluster.myself.ip == "198.51.100.7"


# A node that has moved itself.


def test_a_node_that_was_restarted_elsewhere_learns_its_new_address() -> None:
    rig = Rig(peers=1, config=CALM)
    link = rig.machine.accepted("10.0.0.5", "127.0.0.2", rig.now)

    rig.machine.message(link, Frame(UNKNOWN, 7711, MYSELF, Ping()), rig.now)
    assert rig.node.cluster.myself.ip == "127.0.0.1", "not by a stranger"

    rig.machine.message(link, Frame(N2, 7711, MYSELF, Ping()), rig.now)
    assert rig.node.cluster.myself.ip == "10.0.0.5"

    other = rig.machine.accepted("10.0.0.6", "127.0.0.2", rig.now)
    rig.machine.message(other, Frame(N2, 7711, MYSELF, Ping()), rig.now)
    assert rig.node.cluster.myself.ip == "10.0.0.5", "the first address of several counts"


def test_a_node_that_yields_its_id_looks_nothing_up() -> None:
    rig = NamingRig("node-9:7711", peers=1)
    rig.node.cluster.incarnation = 1 << 63

    rig.advance(3000)

    assert rig.asked() == []
