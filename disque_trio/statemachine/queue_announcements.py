"""WAITING and HAVEJOBS for all queues on a new link to a node of ours (docs/bus.md).

Earlier ones may have been lost with the old link, or ignored because this node was not in the
receiver's table. Owns the fields of `QueueAnnouncements`.
"""

from typing import Final

from disque_trio.statemachine import offering, send
from disque_trio.statemachine.base import LinkId, Millis, NodeId
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.federation import may_ask
from disque_trio.statemachine.messages import Waiting
from disque_trio.statemachine.state import NodeState, QueueAnnouncements

ANNOUNCE_EVERY: Final[Millis] = 20
ANNOUNCE_AGAIN: Final[Millis] = 500
NEWCOMER: Final[Millis] = 3000
"""How long a node may take to add this one to its table, after its first answer here."""


def announce(node: NodeState, peer: Peer) -> None:
    """Announce on a new link the queues with waiting clients or jobs, some at a time. WAITING for
    later clients is broadcast at once.

    A node ignores messages until this node is in its table. The handshake in the other direction
    may still be running at its first answer, so the announcements are repeated a few times.
    """
    announcements = node.announcements
    announcements.began = node.mono
    _plan(node, peer)
    if not peer.resent_on:
        announcements.since[peer.id] = node.mono
    if _is_new(node, peer.id):
        announcements.again[peer.id] = node.mono + ANNOUNCE_AGAIN
    on_due(node, announcements)


def _is_new(node: NodeState, id: NodeId) -> bool:
    since = node.announcements.since.get(id)
    return since is not None and node.mono - since < NEWCOMER


def announce_again(node: NodeState, link_id: LinkId) -> None:
    """Repeat the announcements on a link that has dropped messages because its send queue was
    full."""
    link = node.cluster.links.get(link_id)
    peer = link.peer if link is not None else None
    if peer is not None and peer.is_ours and peer.id not in node.announcements.again:
        node.announcements.again[peer.id] = node.mono + ANNOUNCE_AGAIN
        _arm(node)


def _plan(node: NodeState, peer: Peer) -> None:
    queues = node.queues.values()
    node.announcements.names[peer.id] = [
        each.name for each in queues if each.waiting or each.length
    ]


def on_due(node: NodeState, announcements: QueueAnnouncements) -> None:
    """The timer: announce the next queues, and begin repetitions that are due."""
    for id, due in list(announcements.again.items()):
        if due <= node.mono:
            _plan_again(node, announcements, id)
    most = node.knobs.announced_queues
    for id, names in list(announcements.names.items()):
        peer = node.cluster.nodes.get(id)
        now = names[-most:]
        del names[-most:]
        if peer is None or not peer.is_connected or not names:
            del announcements.names[id]
        if peer is not None and peer.is_connected:
            for name in now:
                queue = node.queues.get(name)
                if queue is not None and queue.length:
                    offering.offer_anew(node, name, peer)
                elif queue is not None and queue.waiting and may_ask(node, queue):
                    send.to_node(node, peer, Waiting(name, len(queue.waiting)))
    _arm(node)


def _plan_again(node: NodeState, announcements: QueueAnnouncements, id: NodeId) -> None:
    """Repeat the announcements to a node. While the node is new, schedule another repetition, after
    a pause that doubles."""
    del announcements.again[id]
    peer = node.cluster.nodes.get(id)
    if peer is not None:
        _plan(node, peer)
    if peer is not None and _is_new(node, id):
        age = node.mono - announcements.since[id]
        announcements.again[id] = node.mono + max(age, ANNOUNCE_AGAIN)
    else:
        announcements.since.pop(id, None)


def _arm(node: NodeState) -> None:
    announcements = node.announcements
    if announcements.names:
        node.timers.arm(announcements, node.mono + ANNOUNCE_EVERY)
    elif announcements.again:
        node.timers.arm(announcements, min(announcements.again.values()))
