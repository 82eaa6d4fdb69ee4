"""Handshakes: from an address to a member of the cluster (original 5.5, 5.6).

A node whose ID is not known yet is in the node table under a random ID, flagged HANDSHAKE. The
heartbeat dials its address; the first answer has the ID. Nodes that send MEET, and nodes in gossip,
join in this way.

The bus has no authentication by default, so there are limits on handshakes that frames start, and
on the size to which they can grow the node table. An operator's CLUSTER MEET has no limit.
"""

from typing import Final

from disque_trio.statemachine.address import is_port, literal_ip, new_node_id
from disque_trio.statemachine.base import HANDSHAKE, MEET, Millis
from disque_trio.statemachine.cluster import Link, Peer
from disque_trio.statemachine.links import hang_up
from disque_trio.statemachine.messages import Frame
from disque_trio.statemachine.nodetable import (
    add,
    learn_address,
    place_of,
    remove,
    rename,
    unmark,
)
from disque_trio.statemachine.state import NodeState

MAX_HANDSHAKES: Final = 100
"""The maximum number of simultaneous handshakes that frames from the bus may start."""
MAX_NODES: Final = 1000
"""The size to which frames from the bus can grow the node table."""
MIN_PATIENCE: Final[Millis] = 1000


def meet(node: NodeState, ip: str, port: int, bus_port: int = 0) -> bool:
    """Start a handshake for an operator. Returns False if this is not a valid address.

    It continues until the node answers, or until CLUSTER FORGET or RESET.
    """
    return _start(node, (ip, port, bus_port), MEET, is_asked_for=True)


def meet_by_name(node: NodeState, ip: str, port: int, bus_port: int) -> None:
    """Start a handshake with an address of a host name. It ends after the node timeout, because the
    name may resolve to another address by then."""
    _start(node, (ip, port, bus_port), MEET)


def meet_by_gossip(node: NodeState, ip: str, port: int, bus_port: int = 0) -> None:
    """Start a handshake with a node from gossip."""
    if _has_room(node):
        _start(node, (ip, port, bus_port), MEET)


def answer_meet(node: NodeState, link: Link, frame: Frame) -> None:
    """Start a handshake with an unknown node that sent MEET. It has this node's address already, so
    a PING is sufficient."""
    if _has_room(node):
        _start(node, place_of(link, frame), 0)


def _start(
    node: NodeState, place: tuple[str, int, int], flags: int, *, is_asked_for: bool = False
) -> bool:
    ip, port, bus_port = literal_ip(place[0]), *place[1:]
    if not ip or not is_port(port, bus_port):
        return False
    if not any(peer.place == (ip, port, bus_port) for peer in _unfinished(node)):
        name, flags = new_node_id(node.rng), HANDSHAKE | flags
        peer = Peer(name, ip, port, flags, node.mono, bus_port=bus_port, is_asked_for=is_asked_for)
        add(node, peer)
    return True


def _unfinished(node: NodeState) -> list[Peer]:
    return [peer for peer in node.cluster.nodes.values() if peer.flags & HANDSHAKE]


def _has_room(node: NodeState) -> bool:
    begun = sum(not peer.is_asked_for for peer in _unfinished(node))
    return len(node.cluster.nodes) < MAX_NODES and begun < MAX_HANDSHAKES


def unanswered(node: NodeState) -> list[Peer]:
    """Nodes that an operator has added and that have not answered for a second."""
    return [
        peer
        for peer in _unfinished(node)
        if peer.is_asked_for and node.mono - peer.created >= MIN_PATIENCE
    ]


def complete(node: NodeState, peer: Peer, link: Link, frame: Frame) -> Peer | None:
    """The dialled node has sent its ID: make it a member.

    Returns None if the ID is in the table already, because the node has moved or is this one; then
    the handshake ends with its link.
    """
    known = node.cluster.nodes.get(frame.sender)
    if known is None:
        rename(node, peer, frame.sender)
        unmark(node, peer, HANDSHAKE | MEET)
        return peer
    remove(node, peer)
    if known is not node.cluster.myself and known is not peer:
        learn_address(node, known, link, frame)
    return None


def is_overdue(node: NodeState, peer: Peer) -> bool:
    """Has the handshake timed out? An operator's never does."""
    is_over = bool(peer.flags & HANDSHAKE) and not peer.is_asked_for
    return is_over and node.mono - peer.created > _patience(node)


def replace_silent_link(node: NodeState, peer: Peer) -> None:
    """Close a link that is older than the node timeout without an answer: the other machine may
    have failed without closing the connection. The heartbeat dials again, and repeats MEET."""
    if node.mono - peer.link_created > _patience(node):
        hang_up(node, peer)


def _patience(node: NodeState) -> Millis:
    return max(node.config.cluster_node_timeout, MIN_PATIENCE)
