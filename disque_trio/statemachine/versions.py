"""The versions of the nodes of the cluster, as announced (docs/versions.md)."""

import string

from disque_trio.statemachine.base import FORMAT, HANDSHAKE, VERSION_SIZE
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.state import NodeState

ORIGINAL = "original"
EARLIER = "earlier"
"""A version that announces no format number."""
UNKNOWN = "unknown"
_SHOWN = (string.ascii_letters + string.digits + "._-").encode()


def readable(version: bytes) -> bytes:
    """The name of a node's version; empty if it has characters that INFO cannot show."""
    return version if not version.translate(None, _SHOWN) else b""


def of_cluster(node: NodeState) -> dict[str, int]:
    """The number of nodes of each version, including this one. A version is its name, a slash and
    its format number."""
    cluster = node.cluster
    found = {_name(FORMAT, node.facts.version.encode()): 1}
    for peer in cluster.nodes.values():
        if peer is not cluster.myself and not peer.flags & HANDSHAKE:
            name = of_peer(peer)
            found[name] = found.get(name, 0) + 1
    return found


def of_peer(peer: Peer) -> str:
    """The version of another node."""
    if peer.format:
        return _name(peer.format, peer.version)
    if peer.capabilities:
        return EARLIER
    return ORIGINAL if peer.link and peer.resent_on == peer.link else UNKNOWN


def _name(format: int, version: bytes) -> str:
    return f"{version.decode()[:VERSION_SIZE] or '?'}/{format}"
