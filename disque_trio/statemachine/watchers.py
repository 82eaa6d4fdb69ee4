"""Watchers: the nodes that ping a node in a large cluster (docs/bus.md, "Large clusters").

In a cluster of up to `Knobs.watch_all` nodes, each pings every other one (original 5.7). In a
larger cluster that costs too much, so each node is watched by `Knobs.watchers` others, those before
it on the ring of node IDs. A node also pings nodes to which it has sent something since they last
answered, so that it detects a dead link, and nodes that do not support watchers. A watcher without
an answer sends SUSPECT to all nodes, and each of them pings the node: so FAIL needs a majority, as
in a small cluster.

Owns `Cluster.ring`, and of a peer `is_watched`, `used_at`, `reported_at`, `doubted_at` and
`voted_at`.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final

from disque_trio.statemachine import send
from disque_trio.statemachine.base import (
    FAIL,
    HANDSHAKE,
    NOADDR,
    PFAIL,
    WATCHES,
    LinkId,
    Millis,
    NodeId,
)
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.messages import Fail, GossipMessage, Message, Suspect
from disque_trio.statemachine.state import NodeState

ABOUT_NODES: Final = (GossipMessage, Fail, Suspect)
"""Messages of failure detection, which are not about jobs."""
_ABSENT: Final = HANDSHAKE | NOADDR | FAIL


def refresh(node: NodeState) -> None:
    """Update the nodes that this node watches. Must be called after each change of nodes or
    flags."""
    cluster = node.cluster
    if cluster.size <= node.knobs.watch_all:
        cluster.ring = []
        return
    peers = cluster.nodes.values()
    cluster.ring = sorted([peer.id for peer in peers if not peer.flags & _ABSENT])
    for peer in peers:
        peer.is_watched = False
    for peer in _neighbours(node, cluster.myself.id, 1):
        peer.is_watched = True


def _neighbours(node: NodeState, id: NodeId, step: int) -> Iterator[Peer]:
    """The nodes after `id` on the ring, which it watches; with step -1, the nodes that watch it."""
    ring, nodes = node.cluster.ring, node.cluster.nodes
    at = bisect_left(ring, id)
    is_there = at < len(ring) and ring[at] == id
    count = min(node.knobs.watchers, len(ring) - is_there)
    first = at + step if is_there or step < 0 else at
    return (nodes[ring[(first + step * number) % len(ring)]] for number in range(count))


def patience(node: NodeState, peer: Peer) -> Millis | None:
    """How long a node of a large cluster may be silent before this one pings it; None for no
    limit."""
    timeout = node.config.cluster_node_timeout
    if peer.is_watched:
        return timeout // 4
    if peer.used_at > peer.pong_received or not peer.capabilities & WATCHES:
        return timeout // 2
    return None


def note_use(node: NodeState, messages: Iterable[tuple[Iterable[LinkId], Message]]) -> None:
    """Record that messages about jobs are sent on these links, so that their nodes are pinged."""
    links = node.cluster.links
    for on, message in messages:
        if not isinstance(message, ABOUT_NODES):
            for id in on:
                link = links.get(id)
                if link is not None and link.peer is not None:
                    link.peer.used_at = node.mono


def report_silence(node: NodeState, peer: Peer) -> None:
    """Report a node of a large cluster that does not answer. After half the node timeout, send
    SUSPECT to all nodes, unless another node has done so. Once the node is suspected, send votes to
    its watchers, repeatedly."""
    timeout = node.config.cluster_node_timeout
    if peer.flags & FAIL:
        return
    if peer.flags & PFAIL:
        if _is_past(node, peer.voted_at, timeout):
            peer.voted_at = node.mono
            _send(node, _neighbours(node, peer.id, -1), Suspect(peer.id, is_vote=True))
    elif node.mono - peer.ping_sent > timeout // 2 and _is_past(
        node, max(peer.reported_at, peer.doubted_at), timeout
    ):
        peer.reported_at = node.mono
        others = [each for each in node.cluster.nodes.values() if each is not peer]
        _send(node, others, Suspect(peer.id))


def _is_past(node: NodeState, moment: Millis, wait: Millis) -> bool:
    return not moment or node.mono - moment >= wait


def _send(node: NodeState, peers: Iterable[Peer], message: Suspect) -> None:
    links = [
        peer.link
        for peer in peers
        if peer.link and peer.capabilities & WATCHES and not peer.flags & HANDSHAKE
    ]
    send.broadcast(node, links, message)


def doubt(node: NodeState, peer: Peer) -> None:
    """Record that another node has received no answer from `peer` for half the node timeout."""
    if _is_past(node, peer.doubted_at, 2 * node.config.cluster_node_timeout):
        peer.doubted_at = node.mono


def is_doubted(node: NodeState, peer: Peer) -> bool:
    """Has another node now received no answer from `peer` for the whole node timeout?"""
    passed = node.mono - peer.doubted_at
    timeout = node.config.cluster_node_timeout
    return bool(peer.doubted_at) and timeout // 2 < passed <= 2 * timeout


def settle(peer: Peer) -> None:
    """Clear suspicions of a node that has answered."""
    peer.reported_at = peer.doubted_at = peer.voted_at = 0
