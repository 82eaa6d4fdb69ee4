"""PURGE: the jobs that a queue has now are acknowledged, a few at a time (docs/commands.md).

Each goes the way of a job that a client acknowledges, so all its copies go. What has left the queue
when its turn comes stays, and so do jobs that come meanwhile. Owns `Purging.jobs`.
"""

from typing import Final

from disque_trio.statemachine import acks, send
from disque_trio.statemachine.base import HANDSHAKE, PURGES, QUEUED, Millis
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.messages import Purge
from disque_trio.statemachine.state import NodeState, Purging

RUN_EVERY: Final[Millis] = 8
LOOKS: Final = 500
"""How many jobs one run looks at."""


def purge(node: NodeState, name: bytes) -> int:
    """Begin with the first of them. Returns how many jobs the queue has."""
    queue = node.queues.get(name)
    if queue is None or not queue.length:
        return 0
    count = queue.length
    # In place of what is left of an earlier purge, which is queued still, or has gone.
    node.purging.jobs[name] = queue.entries()
    on_due(node, node.purging)
    return count


def tell_others(node: NodeState, name: bytes) -> None:
    """PURGE with BCAST: all nodes of ours that this one is linked with purge the queue, too."""
    peers = [peer for peer in node.cluster.nodes.values() if peer.capabilities & PURGES]
    links = [peer.link for peer in peers if peer.link and not peer.flags & HANDSHAKE]
    send.broadcast(node, links, Purge(name))


def on_purge(node: NodeState, _sender: Peer, message: Purge) -> None:
    """PURGE with BCAST on another node."""
    purge(node, message.queue)


def on_due(node: NodeState, purging: Purging) -> None:
    """One slice."""
    looks = LOOKS
    while looks and purging.jobs:
        name, jobs = next(iter(purging.jobs.items()))
        next_ones = jobs[-looks:]
        del jobs[-looks:]
        looks -= len(next_ones)
        for job in reversed(next_ones):
            if job.state == QUEUED and node.jobs.get(job.id) is job:
                acks.ack(node, job.id, Cause.PURGE)
        if not jobs:
            del purging.jobs[name]
    if purging.jobs:
        node.timers.arm(purging, node.mono + RUN_EVERY)
