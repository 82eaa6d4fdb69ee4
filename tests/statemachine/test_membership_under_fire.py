"""Whatever the bus says, a node stays whole, and its nodes.conf can be read back."""

from hypothesis import given
from hypothesis import strategies as st

from disque_trio.statemachine.base import HANDSHAKE, MYSELF
from disque_trio.statemachine.messages import Fail, Frame, Gossip, Meet, Ping, Pong
from disque_trio.statemachine.nodesfile import nodes_text, parse_nodes
from tests.rig import ME, N2, N3, UNKNOWN, Rig

NAMES = st.sampled_from([ME, N2, N3, UNKNOWN, b"f" * 40]) | st.binary(min_size=40, max_size=40)
IPS = st.sampled_from([b"127.0.0.2", b"10.0.0.9", b"::1", b"", b"\xff" * 46, b"vars x"])
FLAGS = st.integers(0, (1 << 16) - 1)
PORTS = st.sampled_from([0, 7711, 7712, 65_535])
ENTRIES = st.lists(st.builds(Gossip, NAMES, IPS, PORTS, FLAGS), max_size=4).map(tuple)
MESSAGES = st.one_of(
    st.builds(Ping, ENTRIES),
    st.builds(Pong, ENTRIES),
    st.builds(Meet, ENTRIES),
    st.builds(Fail, NAMES),
)
FRAMES = st.builds(Frame, NAMES, PORTS, FLAGS, MESSAGES, FLAGS)
REMOTES = st.sampled_from(["127.0.0.2", "10.0.0.9", "::ffff:10.0.0.9", "nonsense", ""])


@given(
    st.lists(
        st.tuples(st.just("frame"), FRAMES, st.integers(0, 30))
        | st.tuples(st.just("accept"), REMOTES, st.just(0))
        | st.tuples(st.just("lose"), st.none(), st.integers(0, 30))
        | st.tuples(st.just("wait"), st.none(), st.integers(1, 20_000)),
        max_size=25,
    )
)
def test_no_frames_break_a_node(steps: list[tuple[str, Frame | str | None, int]]) -> None:
    rig = Rig(peers=2)

    for kind, what, number in steps:
        links = list(rig.node.cluster.links)
        if kind == "wait":
            rig.advance(number)
            for link in list(rig.node.cluster.links):
                rig.machine.linked(link, "127.0.0.1", "10.0.0.9", rig.now)
        elif isinstance(what, Frame) and links:
            rig.machine.message(links[number % len(links)], what, rig.now)
        elif isinstance(what, str):
            rig.machine.accepted("127.0.0.1", what, rig.now)
        elif kind == "lose" and links:
            rig.machine.unlinked(links[number % len(links)], rig.now)
        rig.take()

    cluster = rig.node.cluster
    myself, others = parse_nodes(nodes_text(rig.node, handshakes=False))
    members = [peer for peer in cluster.nodes.values() if not peer.flags & HANDSHAKE]
    assert myself.id == ME
    assert myself.flags == MYSELF
    assert [(peer.id, peer.ip, peer.port, peer.flags) for peer in [myself, *others]] == [
        (peer.id, peer.ip, peer.port, peer.flags) for peer in members
    ]
