"""The node table: which nodes are in it, their IDs and addresses, and which may be given copies.

Owns `Cluster.nodes`, `reachable`, `size`, `places`, `is_crowded` and `blacklist`, and of a peer
`id`, `holding`, `ip`, `port`, and the `flags` by way of `mark` and `unmark`; drops the `reports` of
nodes that go. Everything in nodes.conf is changed here, so that every change is saved
(`Outbox.nodes_changed`).
"""

from typing import Final

from disque_trio.statemachine.address import is_port
from disque_trio.statemachine.base import HANDSHAKE, LEAVING, MYSELF, NOADDR, Millis, NodeId
from disque_trio.statemachine.cluster import UNREACHABLE, Link, Peer
from disque_trio.statemachine.heartbeat import rouse
from disque_trio.statemachine.links import hang_up
from disque_trio.statemachine.state import NodeState

BLACKLIST_TTL: Final[Millis] = 60_000
"""How long gossip may not bring a forgotten node back (original 5.9)."""


def add(node: NodeState, peer: Peer) -> None:
    """Take the node into the table, and start the heartbeat if it has stopped."""
    node.cluster.nodes[peer.id] = peer
    refresh(node)
    rouse(node)


def remove(node: NodeState, peer: Peer) -> None:
    """Forget the node, its failure reports, and our link to it."""
    hang_up(node, peer)
    del node.cluster.nodes[peer.id]
    for other in node.cluster.nodes.values():
        other.reports.pop(peer.id, None)
    if not peer.flags & HANDSHAKE:
        node.out.nodes_changed = True
    refresh(node)


def rename(node: NodeState, peer: Peer, name: NodeId) -> None:
    """Give the node its real, or a new, name."""
    del node.cluster.nodes[peer.id]
    peer.id = name
    peer.holding = (name,)
    node.cluster.nodes[name] = peer
    node.out.nodes_changed = True


def mark(node: NodeState, peer: Peer, flags: int) -> None:
    """Set flags of the node."""
    _set_flags(node, peer, peer.flags | flags)


def unmark(node: NodeState, peer: Peer, flags: int) -> None:
    """Clear flags of the node."""
    _set_flags(node, peer, peer.flags & ~flags)


def mark_leaving(node: NodeState, peer: Peer, *, leaving: bool) -> None:
    """Note whether the node is about to leave the cluster."""
    (mark if leaving else unmark)(node, peer, LEAVING)


def _set_flags(node: NodeState, peer: Peer, flags: int) -> None:
    if flags != peer.flags:
        peer.flags = flags
        node.out.nodes_changed = True
        refresh(node)
        rouse(node)


def refresh(node: NodeState) -> None:
    """Compute anew which nodes may be given copies (original 5.8): reachable ones only (original,
    defect 13).

    To be called after each change of the nodes, their flags or their addresses.
    """
    nodes = node.cluster.nodes.values()
    node.cluster.reachable = [peer for peer in nodes if not peer.flags & (UNREACHABLE | MYSELF)]
    node.cluster.size = sum(1 for peer in nodes if not peer.flags & HANDSHAKE)
    node.cluster.places = node.cluster.size
    if node.config.workers > 1:
        machines = {peer.ip for peer in nodes if peer.ip and not peer.flags & HANDSHAKE}
        node.cluster.places = max(len(machines), 1)
    addresses = [peer.ip for peer in (node.cluster.myself, *node.cluster.reachable) if peer.ip]
    node.cluster.is_crowded = 1 < len(set(addresses)) < len(addresses)


def learn_own_ip(node: NodeState, ip: str) -> None:
    """Another node reached us under this address."""
    myself = node.cluster.myself
    if ip and ip != myself.ip:
        myself.ip = ip
        node.out.nodes_changed = True
        refresh(node)


def learn_address(node: NodeState, peer: Peer, link: Link, port: int) -> None:
    """The node sends from this address: if it has moved, our link to the old one ends."""
    if not link.remote_ip or not is_port(port) or (link.remote_ip, port) == (peer.ip, peer.port):
        return
    hang_up(node, peer)
    peer.ip = link.remote_ip
    peer.port = port
    node.out.nodes_changed = True
    unmark(node, peer, NOADDR)
    refresh(node)


def lose_address(node: NodeState, peer: Peer) -> None:
    """Another node answers at the node's address: do not contact it until it contacts us."""
    hang_up(node, peer)
    peer.ip = ""
    peer.port = 0
    mark(node, peer, NOADDR)


def ban(node: NodeState, name: NodeId) -> None:
    """Ignore gossip about this node for a minute."""
    blacklist = node.cluster.blacklist
    for banned in [banned for banned, until in blacklist.items() if until <= node.mono]:
        del blacklist[banned]
    blacklist[name] = node.mono + BLACKLIST_TTL


def is_banned(node: NodeState, name: NodeId) -> bool:
    """Was the node forgotten a short while ago?"""
    return node.cluster.blacklist.get(name, 0) > node.mono
