import pytest

from disque_trio.statemachine import nodetable
from disque_trio.statemachine.base import FAIL, HANDSHAKE, LEAVING, MEET, MYSELF, NOADDR, PFAIL
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.nodesfile import NodesFileError, nodes_text, parse_nodes
from tests.conformance import NODES_FILES
from tests.rig import ME, N2, N3, N4, UNKNOWN, Rig

OWN_LINE = b"a" * 40 + b" 127.0.0.1:7711 myself 0 0 connected\n"


def test_a_node_alone_is_one_line() -> None:
    rig = Rig()

    assert nodes_text(rig.node, handshakes=True) == OWN_LINE


def test_the_own_address_is_empty_until_a_node_has_used_it() -> None:
    rig = Rig()
    rig.node.cluster.myself.ip = ""

    assert nodes_text(rig.node, handshakes=True) == b"a" * 40 + b" :7711 myself 0 0 connected\n"


def test_times_are_shown_on_the_wall_clock() -> None:
    rig = Rig(peers=1)
    peer = rig.node.cluster.nodes[N2]
    rig.advance(1_000)
    peer.ping_sent = rig.now.mono - 300
    peer.pong_received = rig.now.mono - 700

    line = nodes_text(rig.node, handshakes=True).splitlines()[1]

    shown = (rig.now.wall - 300, rig.now.wall - 700)
    assert line == b"b" * 40 + b" 127.0.0.2:7711 noflags %d %d connected" % shown


def test_flags_are_shown_in_the_originals_order_and_meet_is_not() -> None:
    rig = Rig()
    every = PFAIL | FAIL | HANDSHAKE | NOADDR | LEAVING | MEET
    nodetable.add(rig.node, Peer(N2, "10.0.0.2", 7711, every))

    line = nodes_text(rig.node, handshakes=True).splitlines()[1]

    flags = b"fail?,fail,handshake,noaddr,leaving"
    assert line == b"b" * 40 + b" 10.0.0.2:7711 " + flags + b" 0 0 disconnected"


def test_the_file_leaves_handshakes_out() -> None:
    rig = Rig()
    nodetable.add(rig.node, Peer(UNKNOWN, "10.0.0.9", 7711, HANDSHAKE))

    assert nodes_text(rig.node, handshakes=False) == OWN_LINE


def test_what_was_written_is_read_back() -> None:
    rig = Rig(peers=3)
    nodes = rig.node.cluster.nodes
    nodetable.mark(rig.node, nodes[N2], FAIL)
    nodetable.mark(rig.node, nodes[N3], LEAVING)
    nodetable.lose_address(rig.node, nodes[N4])
    nodes[N2].ping_sent = rig.now.mono

    myself, others = parse_nodes(nodes_text(rig.node, handshakes=False))

    assert (myself.id, myself.ip, myself.port, myself.flags) == (ME, "127.0.0.1", 7711, MYSELF)
    assert [(peer.id, peer.ip, peer.port, peer.flags) for peer in others] == [
        (N2, "127.0.0.2", 7711, FAIL),
        (N3, "127.0.0.3", 7711, LEAVING),
        (N4, "", 0, NOADDR),
    ]
    assert [(peer.ping_sent, peer.pong_received) for peer in others] == [(1, 1), (0, 1), (0, 1)]


def test_a_file_of_the_original_is_read() -> None:
    text = (
        b"212b997ebf7e686521c716e7fa65ed9fd5ef1930 127.0.0.1:7732 noflags 0 1795197113745"
        b" connected\n"
        b"vars currentEpoch 0 lastVoteEpoch 0\n"
        b"335fb6c2d1ad9a929f45ff54111d447acd2d51e3 ::1:7731 myself,leaving 0 0 connected\n"
        b"\n\n\n"
    )

    myself, others = parse_nodes(text)

    assert (myself.ip, myself.port, myself.flags) == ("::1", 7731, MYSELF | LEAVING)
    assert [peer.id for peer in others] == [b"212b997ebf7e686521c716e7fa65ed9fd5ef1930"]


def test_the_files_that_original_nodes_left_are_read() -> None:
    found = {}
    for path in NODES_FILES:
        myself, others = parse_nodes(path.read_bytes())
        found[myself.port] = [(peer.ip, peer.port, peer.flags) for peer in others]

    first, second = ("127.0.0.1", 7731, 0), ("127.0.0.1", 7732, 0)
    assert found == {7731: [second], 7732: [first], 7733: [second, first]}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"x" * 40 + b" 127.0.0.1:7712 noflags 0 0", "6 words are expected, not 5"),
        (b"x" * 39 + b" 127.0.0.1:7712 noflags 0 0 connected", "a node ID has 40 printable char"),
        (b"x" * 40 + b" 127.0.0.1:7712 slave 0 0 connected", "unknown flag 'slave'"),
        (b"x" * 40 + b" localhost:7712 noflags 0 0 connected", "'localhost' is no IP address"),
        (b"x" * 40 + b" 127.0.0.1:70000 noflags 0 0 connected", "70000 is no port"),
        (b"x" * 40 + b" 127.0.0.1:55536 noflags 0 0 connected", "55536 is no port"),
        (b"x" * 40 + b" 127.0.0.1:abc noflags 0 0 connected", "'abc' is no number"),
        (b"x" * 40 + b" 127.0.0.1:7712 noflags -1 0 connected", "'-1' is no number"),
        (b"x" * 40 + b" 127.0.0.1:7712 noflags 0 " + b"9" * 5000 + b" connected", "is no number"),
        (b"x" * 40 + b" 127.0.0.1:7712 noflags 0 0 resting", "unknown link state 'resting'"),
        (OWN_LINE.strip(), "this node ID is there twice"),
    ],
)
def test_a_line_that_makes_no_sense_is_named(line: bytes, reason: str) -> None:
    with pytest.raises(NodesFileError, match=reason) as caught:
        parse_nodes(OWN_LINE + line + b"\n")

    assert caught.value.line == 2
    assert str(caught.value).startswith("line 2: ")


@pytest.mark.parametrize(
    "text",
    [b"", b"b" * 40 + b" :7711 noflags 0 0 connected\n", OWN_LINE + b"b" + OWN_LINE[1:]],
)
def test_exactly_one_line_is_this_node(text: bytes) -> None:
    with pytest.raises(NodesFileError, match="one line must be flagged myself") as caught:
        parse_nodes(text)

    assert caught.value.line == 0
