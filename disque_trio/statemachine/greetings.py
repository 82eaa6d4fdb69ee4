"""Greetings: on a new link, a node of ours is sent WAITING and HAVEJOBS anew (docs/bus.md).

Earlier ones may have been lost with the old link, or ignored by a node that did not know this one.
Owns the fields of `Greetings`.
"""

from typing import Final

from disque_trio.statemachine import offering, send
from disque_trio.statemachine.base import LinkId, Millis, NodeId
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.federation import may_ask
from disque_trio.statemachine.messages import Waiting
from disque_trio.statemachine.state import Greetings, NodeState

GREETING_EVERY: Final[Millis] = 20
GREET_AGAIN: Final[Millis] = 500
NEWCOMER: Final[Millis] = 3000
"""How long a node may take to know this one, after its first answer here."""


def greet(node: NodeState, peer: Peer) -> None:
    """A link to a node of ours is new: announce where clients wait and where jobs are, some queues
    at a time. Clients that come later are broadcast at once.

    A node ignores messages until it knows this one. The handshake in the other direction may still
    be under way when it answers here for the first time, so it is told a few times.
    """
    greetings = node.greetings
    greetings.began = node.mono
    _plan_greeting(node, peer)
    if not peer.resent_on:
        greetings.since[peer.id] = node.mono
    if _is_new(node, peer.id):
        greetings.again[peer.id] = node.mono + GREET_AGAIN
    on_due(node, greetings)


def _is_new(node: NodeState, id: NodeId) -> bool:
    since = node.greetings.since.get(id)
    return since is not None and node.mono - since < NEWCOMER


def greet_again(node: NodeState, link_id: LinkId) -> None:
    """Messages on this link were dropped, because its send queue was full: repeat them."""
    link = node.cluster.links.get(link_id)
    peer = link.peer if link is not None else None
    if peer is not None and peer.is_ours and peer.id not in node.greetings.again:
        node.greetings.again[peer.id] = node.mono + GREET_AGAIN
        _arm_greetings(node)


def _plan_greeting(node: NodeState, peer: Peer) -> None:
    queues = node.queues.values()
    node.greetings.names[peer.id] = [each.name for each in queues if each.waiting or each.length]


def on_due(node: NodeState, greetings: Greetings) -> None:
    """Announce the next queues, and begin again for nodes that are to be told once more."""
    for id, due in list(greetings.again.items()):
        if due <= node.mono:
            _plan_greeting_again(node, greetings, id)
    most = node.knobs.greeting_queues
    for id, names in list(greetings.names.items()):
        peer = node.cluster.nodes.get(id)
        now = names[-most:]
        del names[-most:]
        if peer is None or not peer.is_connected or not names:
            del greetings.names[id]
        if peer is not None and peer.is_connected:
            for name in now:
                _greet(node, peer, name)
    _arm_greetings(node)


def _plan_greeting_again(node: NodeState, greetings: Greetings, id: NodeId) -> None:
    """The pauses are twice as long each time, as long as the node is new."""
    del greetings.again[id]
    peer = node.cluster.nodes.get(id)
    if peer is not None:
        _plan_greeting(node, peer)
    if peer is not None and _is_new(node, id):
        age = node.mono - greetings.since[id]
        greetings.again[id] = node.mono + max(age, GREET_AGAIN)
    else:
        greetings.since.pop(id, None)


def _arm_greetings(node: NodeState) -> None:
    greetings = node.greetings
    if greetings.names:
        node.timers.arm(greetings, node.mono + GREETING_EVERY)
    elif greetings.again:
        node.timers.arm(greetings, min(greetings.again.values()))


def _greet(node: NodeState, peer: Peer, name: bytes) -> None:
    queue = node.queues.get(name)
    if queue is not None and queue.length:
        offering.offer_anew(node, name, peer)
    elif queue is not None and queue.waiting and may_ask(node, queue):
        send.to_node(node, peer, Waiting(name, len(queue.waiting)))
