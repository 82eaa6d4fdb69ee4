"""What nodes know of the versions of others, and what INFO says of them."""

import pytest

from disque_trio.statemachine import versions
from disque_trio.statemachine.base import CAPABILITIES, FORMAT
from disque_trio.statemachine.membership import on_cron
from disque_trio.statemachine.messages import Frame, Pong
from disque_trio.statemachine.state import NodeState
from tests.rig import N2, N3, Rig


def tell(rig: Rig, format: int, version: bytes, capabilities: int = CAPABILITIES) -> None:
    """N2 answers on the link to it."""
    peer = rig.node.cluster.nodes[N2]
    frame = Frame(N2, peer.port, 0, Pong(), capabilities, 0, format, version)
    rig.machine.message(peer.link, frame, rig.now)


def shown(node: NodeState) -> str:
    return ",".join(f"{name}={count}" for name, count in versions.of_cluster(node).items())


def test_each_node_tells_the_versions_of_all() -> None:
    rig = Rig(peers=2, ours=True)
    mine = f"0/{FORMAT}"
    assert shown(rig.node) == f"{mine}=1,earlier=2"

    tell(rig, FORMAT + 1, b"7.1")
    assert shown(rig.node) == f"{mine}=1,7.1/{FORMAT + 1}=1,earlier=1"

    tell(rig, FORMAT, b"0")
    text = rig.ask("INFO", "cluster")
    assert isinstance(text, bytes)
    assert f"cluster_versions:{mine}=2,earlier=1\r\n".encode() in text


def test_an_original_node_is_one_that_has_answered_and_announces_nothing() -> None:
    rig = Rig(peers=2)
    assert shown(rig.node).endswith("unknown=2")

    tell(rig, 0, b"", capabilities=0)

    assert shown(rig.node).endswith("original=1,unknown=1")


def test_on_a_new_link_the_version_is_not_known_yet() -> None:
    rig = Rig(peers=2, ours=True)
    tell(rig, FORMAT, b"0")
    rig.lose_link(N2)

    on_cron(rig.node, rig.node.cron)

    assert shown(rig.node) == f"0/{FORMAT}=1,unknown=1,earlier=1"
    assert rig.node.cluster.nodes[N3].capabilities


@pytest.mark.parametrize("name", [b"a b", b"1,original=7", b"\x1b[2J", b"\xff", b"1=2", b"a/b"])
def test_a_name_that_says_anything_else_in_info_is_not_taken(name: bytes) -> None:
    rig = Rig(peers=1, ours=True)

    tell(rig, 3, name)

    assert shown(rig.node).endswith(",?/3=1")
