"""Which versions the nodes of the cluster are of, as they announce it (docs/versions.md)."""

import string

from disque_trio.statemachine.base import FORMAT, HANDSHAKE, VERSION_SIZE
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.state import NodeState

ORIGINAL = "original"
EARLIER = "earlier"
"""A version from before there was a number of the formats."""
UNKNOWN = "unknown"
_SHOWN = (string.ascii_letters + string.digits + "._-").encode()


def readable(version: bytes) -> bytes:
    """What a node calls its version; empty if that cannot be shown in INFO."""
    return version if not version.translate(None, _SHOWN) else b""


def of_cluster(node: NodeState) -> dict[str, int]:
    """How many nodes are of each version, this one included. A version is its name, a slash and the
    number of its formats."""
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
