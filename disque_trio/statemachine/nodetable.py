"""The node table: its nodes, their IDs and addresses, and which of them may receive copies.

Owns `Cluster.nodes`, `reachable`, `size`, `places`, `is_crowded`, `blacklist` and
`is_own_ip_learned`, and of a peer `id`, `holding`, `ip`, `port`, `bus_port`, `zone`, `name`, and
the `flags` through `mark` and `unmark`; drops the `reports` of removed nodes. Every field in
nodes.conf is changed here, so that every change is saved (`Outbox.nodes_changed`).
"""

from collections.abc import Sequence
from typing import Final

from disque_trio.statemachine import watchers
from disque_trio.statemachine.address import BUS_OFFSET, is_port, literal_ip
from disque_trio.statemachine.base import HANDSHAKE, LEAVING, MYSELF, NOADDR, Millis, NodeId
from disque_trio.statemachine.cluster import UNREACHABLE, Link, Peer
from disque_trio.statemachine.heartbeat import rouse
from disque_trio.statemachine.links import hang_up
from disque_trio.statemachine.messages import Frame
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.values import encode, is_name

BLACKLIST_TTL: Final[Millis] = 60_000
"""How long gossip cannot add a forgotten node again (original 5.9)."""


def add(node: NodeState, peer: Peer) -> None:
    """Add the node to the table, and start the heartbeat if it has stopped."""
    node.cluster.nodes[peer.id] = peer
    refresh(node)
    rouse(node)


def remove(node: NodeState, peer: Peer) -> None:
    """Remove the node, its failure reports, and our link to it."""
    hang_up(node, peer)
    del node.cluster.nodes[peer.id]
    for other in node.cluster.nodes.values():
        other.reports.pop(peer.id, None)
    if not peer.flags & HANDSHAKE:
        node.out.nodes_changed = True
    refresh(node)


def rename(node: NodeState, peer: Peer, name: NodeId) -> None:
    """Set the node's ID, after its handshake or for a hard reset."""
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
    """Set whether the node is leaving the cluster."""
    (mark if leaving else unmark)(node, peer, LEAVING)


def _set_flags(node: NodeState, peer: Peer, flags: int) -> None:
    if flags != peer.flags:
        peer.flags = flags
        node.out.nodes_changed = True
        refresh(node)
        rouse(node)


def refresh(node: NodeState) -> None:
    """Update the derived fields of the table, such as the nodes that may receive copies (original
    5.8): only reachable ones (original, defect 13).

    Must be called after each change of nodes, flags, addresses or zones.
    """
    nodes = node.cluster.nodes.values()
    node.cluster.reachable = [peer for peer in nodes if not peer.flags & (UNREACHABLE | MYSELF)]
    node.cluster.size = sum(1 for peer in nodes if not peer.flags & HANDSHAKE)
    node.cluster.places = node.cluster.size
    if node.config.workers > 1:
        machines = {peer.ip for peer in nodes if peer.ip and not peer.flags & HANDSHAKE}
        node.cluster.places = max(len(machines), 1)
    watchers.refresh(node)
    able = (node.cluster.myself, *node.cluster.reachable)
    addresses = [peer.ip for peer in able if peer.ip]
    node.cluster.is_crowded = _some_share(addresses) or _some_share([peer.zone for peer in able])


def _some_share(places: Sequence[str | bytes]) -> bool:
    return 1 < len(set(places)) < len(places)


def announce(node: NodeState) -> None:
    """Set the address, zone and name that this node announces from its configuration."""
    myself, config = node.cluster.myself, node.config
    before = (myself.place, myself.zone, myself.name)
    myself.ip = node.cluster.announced_ip or myself.ip
    myself.port = config.cluster_announce_port or node.facts.port
    bus_port = config.cluster_announce_bus_port
    myself.bus_port = 0 if bus_port == myself.port + BUS_OFFSET else bus_port
    myself.zone = encode(config.replica_zone)
    myself.name = encode(config.node_name)
    if before != (myself.place, myself.zone, myself.name):
        node.out.nodes_changed = True
    refresh(node)


def learn_names(node: NodeState, peer: Peer, zone: bytes, name: bytes) -> None:
    """Apply the zone and name that the node announces."""
    if name != peer.name and is_name(name):
        peer.name = name
    if zone != peer.zone:
        peer.zone = zone
        refresh(node)


def learn_own_ip(node: NodeState, ip: str) -> None:
    """Another node has reached this one at this address, which applies unless `cluster-announce-ip`
    is set."""
    myself = node.cluster.myself
    if not ip or node.config.cluster_announce_ip:
        return
    node.cluster.is_own_ip_learned = True
    if ip != myself.ip:
        myself.ip = ip
        node.out.nodes_changed = True
        refresh(node)


def place_of(link: Link, frame: Frame) -> tuple[str, int, int]:
    """Where to reach the sender of a frame: its announced address, or else that of the link; its
    client port and its bus port."""
    announced = literal_ip(frame.ip.decode("ascii", "replace"))
    return announced or link.remote_ip, frame.port, frame.bus_port


def learn_address(node: NodeState, peer: Peer, link: Link, frame: Frame) -> None:
    """Apply the address of a frame's sender. If the node has moved, close our link to its old
    address."""
    ip, port, bus_port = place_of(link, frame)
    if not ip or not is_port(port, bus_port) or (ip, port, bus_port) == peer.place:
        return
    hang_up(node, peer)
    peer.ip, peer.port, peer.bus_port = ip, port, bus_port
    node.out.nodes_changed = True
    unmark(node, peer, NOADDR)
    refresh(node)


def lose_address(node: NodeState, peer: Peer) -> None:
    """Clear the node's address, because another node answers there. This node does not contact it
    until it contacts this one."""
    hang_up(node, peer)
    peer.ip = ""
    peer.port = peer.bus_port = 0
    mark(node, peer, NOADDR)


def ban(node: NodeState, name: NodeId) -> None:
    """Ignore gossip about this node for a minute."""
    blacklist = node.cluster.blacklist
    for banned in [banned for banned, until in blacklist.items() if until <= node.mono]:
        del blacklist[banned]
    blacklist[name] = node.mono + BLACKLIST_TTL


def is_banned(node: NodeState, name: NodeId) -> bool:
    """Was the node forgotten within the last minute?"""
    return node.cluster.blacklist.get(name, 0) > node.mono
