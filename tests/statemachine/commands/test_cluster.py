import pytest

from disque_trio.statemachine import nodetable
from disque_trio.statemachine.base import (
    FAIL,
    HANDSHAKE,
    LEAVING,
    MEET,
    MYSELF,
    NULL_ARRAY,
    OK,
    PFAIL,
    Status,
)
from disque_trio.statemachine.chores import SaveNodes
from disque_trio.statemachine.client import Blocked
from disque_trio.statemachine.cluster import Peer
from tests.rig import ME, N2, N3, N4, UNKNOWN, Rig
from tests.statemachine.commands.refused import Refused

WRONG = Refused(b"ERR Wrong CLUSTER subcommand or number of arguments")


def test_hello_of_a_fresh_node_knows_itself() -> None:
    rig = Rig()
    rig.node.cluster.myself.ip = ""

    assert rig.ask("HELLO") == [1, ME, [ME, b"", b"7711", b"1"]]


def test_hello_ranks_nodes_by_their_health() -> None:
    rig = Rig(peers=3)
    nodes = rig.node.cluster.nodes
    nodetable.mark(rig.node, nodes[N3], PFAIL)
    rig.machine.unlinked(nodes[N4].link, rig.now)

    assert rig.ask("HELLO") == [
        1,
        ME,
        [ME, b"127.0.0.1", b"7711", b"1"],
        [N2, b"127.0.0.2", b"7711", b"1"],
        [N3, b"127.0.0.3", b"7711", b"10"],
        [N4, b"127.0.0.4", b"7711", b"5"],
    ]


@pytest.mark.parametrize("flags", [FAIL, LEAVING, PFAIL | LEAVING])
def test_hello_ranks_nodes_last_that_have_failed_or_leave(flags: int) -> None:
    rig = Rig(peers=1)
    nodetable.mark(rig.node, rig.node.cluster.nodes[N2], flags)

    reply = rig.ask("HELLO")

    assert isinstance(reply, list)
    assert reply[3] == [N2, b"127.0.0.2", b"7711", b"100"]


def test_hello_leaves_out_handshakes() -> None:
    rig = Rig()
    nodetable.add(rig.node, Peer(UNKNOWN, "10.0.0.9", 7711, HANDSHAKE))

    reply = rig.ask("HELLO")

    assert isinstance(reply, list)
    assert len(reply) == 3


@pytest.mark.parametrize(
    "words",
    [
        ["NOSUCH"],
        ["MEET"],
        ["MEET", "10.0.0.9"],
        ["MEET", "10.0.0.9", "7711", "17711", "more"],
        ["NODES", "more"],
        ["MYID", "more"],
        ["INFO", "more"],
        ["SAVECONFIG", "more"],
        ["SAVE-CONFIG"],
        ["FORGET"],
        ["RESET", "SOFT", "more"],
        ["LEAVING", "yes", "more"],
    ],
)
def test_other_subcommands_and_argument_counts_are_wrong(words: list[str]) -> None:
    rig = Rig()

    assert rig.ask("CLUSTER", *words) == WRONG


def test_meet_starts_a_handshake_once() -> None:
    rig = Rig()

    assert rig.ask("cluster", "meet", "10.0.0.9", "7712") == OK
    assert rig.ask("CLUSTER", "MEET", "10.0.0.9", "7712") == OK

    _, peer = rig.node.cluster.nodes.values()
    assert (peer.ip, peer.port, peer.flags) == ("10.0.0.9", 7712, HANDSHAKE | MEET)


@pytest.mark.parametrize("port", ["x", "77.1", "7711 ", "99999999999999999999"])
def test_meet_wants_a_number_for_a_port(port: str) -> None:
    rig = Rig()

    reply = rig.ask("CLUSTER", "MEET", "10.0.0.9", port)

    assert reply == Refused(b"ERR Invalid TCP port specified: " + port.encode())


@pytest.mark.parametrize(
    ("ip", "port"),
    [("no host", "7711"), ("10.0.0.9", "0"), ("10.0.0.9", "55536"), ("10.0.0", "7711")],
)
def test_meet_wants_an_address_and_a_port_in_range(ip: str, port: str) -> None:
    rig = Rig()

    reply = rig.ask("CLUSTER", "MEET", ip, port)

    assert reply == Refused(
        b"ERR Invalid node address specified: %b:%b" % (ip.encode(), port.encode())
    )
    assert list(rig.node.cluster.nodes) == [ME]


def test_meet_survives_an_address_that_is_no_text() -> None:
    rig = Rig()

    reply = rig.ask("CLUSTER", "MEET", b"\xff\xfe", b"7711")

    assert reply == Refused(b"ERR Invalid node address specified: \xff\xfe:7711")


def test_nodes_shows_handshakes_too() -> None:
    rig = Rig()
    nodetable.add(rig.node, Peer(UNKNOWN, "10.0.0.9", 7711, HANDSHAKE))

    reply = rig.ask("CLUSTER", "NODES")

    assert reply == (
        b"a" * 40
        + b" 127.0.0.1:7711 myself 0 0 connected\n"
        + b"e" * 40
        + b" 10.0.0.9:7711 handshake 0 0 disconnected\n"
    )


def test_myid_is_the_own_id() -> None:
    assert Rig().ask("CLUSTER", "MYID") == ME


def test_info_counts_nodes_and_messages() -> None:
    rig = Rig(peers=2)
    nodetable.add(rig.node, Peer(UNKNOWN, "10.0.0.9", 7711, HANDSHAKE))
    nodetable.mark(rig.node, rig.node.cluster.nodes[N2], PFAIL)
    rig.node.cluster.messages_sent = 12
    rig.node.cluster.messages_received = 7

    assert rig.ask("CLUSTER", "INFO") == (
        b"cluster_state:ok\r\n"
        b"cluster_known_nodes:4\r\n"
        b"cluster_reachable_nodes:1\r\n"
        b"cluster_size:3\r\n"
        b"cluster_stats_messages_sent:12\r\n"
        b"cluster_stats_messages_received:7\r\n"
    )


def test_saveconfig_is_answered_when_the_file_is_written() -> None:
    rig = Rig()

    rig.request("CLUSTER", "SAVECONFIG")

    assert rig.outboxes[-1].chores == [(rig.client, SaveNodes())]
    assert rig.replies() == []
    rig.machine.done(rig.client, None, rig.now)
    rig.take()
    assert rig.reply() == OK


def test_saveconfig_tells_what_went_wrong() -> None:
    rig = Rig()
    rig.request("CLUSTER", "SAVECONFIG")

    rig.machine.done(rig.client, "No space left on device", rig.now)

    rig.take()
    assert rig.reply() == Refused(
        b"ERR error saving the cluster node config: No space left on device"
    )


@pytest.mark.parametrize(
    ("name", "reply"),
    [
        (b"abc", b"ERR Invalid node identifier"),
        (N4, b"ERR Unknown node ID"),
        (ME, b"ERR I tried hard but I can't forget myself..."),
    ],
)
def test_forget_wants_another_known_node(name: bytes, reply: bytes) -> None:
    rig = Rig(peers=1)

    assert rig.ask("CLUSTER", "FORGET", name) == Refused(reply)


def test_forget_removes_the_node_and_bans_it() -> None:
    rig = Rig(peers=2)

    assert rig.ask("CLUSTER", "FORGET", N2) == OK

    assert list(rig.node.cluster.nodes) == [ME, N3]
    assert rig.node.cluster.blacklist == {N2: rig.now.mono + 60_000}
    assert rig.outboxes[-1].nodes_changed


def test_reset_empties_the_node_and_saves() -> None:
    rig = Rig(peers=1)
    rig.add("REPLICATE", 1)

    rig.request("CLUSTER", "RESET")

    assert list(rig.node.cluster.nodes) == [ME]
    assert rig.node.jobs == {}
    assert rig.node.queues == {}
    assert rig.outboxes[-1].chores == [(rig.client, SaveNodes())]
    rig.machine.done(rig.client, None, rig.now)
    rig.take()
    assert rig.reply() == OK


def test_a_hard_reset_takes_a_new_name_and_goes_on_leaving() -> None:
    rig = Rig()
    rig.ask("CLUSTER", "LEAVING", "yes")

    rig.request("CLUSTER", "RESET", "hard")

    myself = rig.node.cluster.myself
    assert myself.id != ME
    assert rig.node.cluster.nodes == {myself.id: myself}
    assert myself.flags == MYSELF | LEAVING


def test_reset_knows_soft_and_hard_only() -> None:
    rig = Rig(peers=1)

    assert rig.ask("CLUSTER", "RESET", "medium") == Refused(b"ERR syntax error")
    assert N2 in rig.node.cluster.nodes


def test_leaving_is_told_and_changed() -> None:
    rig = Rig()

    assert rig.ask("CLUSTER", "LEAVING") == Status(b"no")
    assert rig.ask("CLUSTER", "LEAVING", "YES") == OK
    assert rig.outboxes[-1].nodes_changed
    assert rig.ask("CLUSTER", "LEAVING") == Status(b"yes")
    assert rig.ask("CLUSTER", "LEAVING", "no") == OK
    assert rig.ask("CLUSTER", "LEAVING") == Status(b"no")


def test_leaving_is_yes_or_no() -> None:
    rig = Rig()

    assert rig.ask("CLUSTER", "LEAVING", "maybe") == Refused(
        b"ERR Wrong argument for CLUSTER LEAVING. Use 'yes' or 'no'"
    )


def test_leaving_ends_the_waits_for_jobs() -> None:
    rig = Rig()
    worker = rig.connect()
    rig.request("GETJOB", "FROM", "q", client=worker)

    rig.ask("CLUSTER", "LEAVING", "yes")

    assert rig.reply(worker) == Refused(
        b"LEAVING This node is leaving the cluster, please connect to a different one"
    )


def test_leaving_does_not_end_the_waits_for_copies() -> None:
    rig = Rig(peers=1)
    producer = rig.connect()
    rig.request("ADDJOB", "q", "body", 5000, "REPLICATE", 2, client=producer)

    rig.ask("CLUSTER", "LEAVING", "yes")

    assert rig.replies(producer) == []
    assert producer.blocked is Blocked.COPIES


def test_leaving_no_ends_no_waits() -> None:
    rig = Rig()
    worker = rig.connect()
    rig.request("GETJOB", "TIMEOUT", 100, "FROM", "q", client=worker)

    rig.ask("CLUSTER", "LEAVING", "no")

    assert rig.replies(worker) == []
    rig.advance(110)
    assert rig.reply(worker) is NULL_ARRAY
