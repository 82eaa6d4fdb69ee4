"""PURGE and REDRIVE of a queue: all jobs that it has now, a few at a time (docs/commands.md).

Those of PURGE go the way of a job that a client acknowledges, so all their copies go. What has left
the queue, or is not dead any more, when its turn comes stays as it is, and so do jobs that come
meanwhile. Owns `Purging.jobs`.
"""

from itertools import islice
from typing import Final

from disque_trio.statemachine import acks, deadletters, send
from disque_trio.statemachine.base import BURIES, DEAD, HANDSHAKE, PURGES, QUEUED, Millis
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import Purge
from disque_trio.statemachine.state import NodeState, Purging, Sweep

RUN_EVERY: Final[Millis] = 8


def purge(node: NodeState, name: bytes, *, dead: bool = False) -> int:
    """Begin with the first of those that are queued, or dead. Returns how many there are."""
    if dead:
        return _begin(node, name, Sweep.PURGE_DEAD, _dead_jobs(node, name, None))
    queue = node.queues.get(name)
    if queue is None or not queue.length:
        return 0
    count = queue.length
    _begin(node, name, Sweep.PURGE, queue.entries())
    return count


def redrive(node: NodeState, name: bytes, count: int) -> int:
    """Begin with the job that died first. Returns how many there are, `count` at most; 0 is all."""
    jobs = _dead_jobs(node, name, count or None)
    dead = node.dead.get(name, {})
    # What is left of an earlier order died first, so the longer of the two lists has the other.
    left = [job for job in node.purging.jobs.get((name, Sweep.REDRIVE), []) if job.id in dead]
    found = len(jobs)
    _begin(node, name, Sweep.REDRIVE, max(jobs, left, key=len))
    return found


def _dead_jobs(node: NodeState, name: bytes, count: int | None) -> list[Job]:
    """The one that died first at the end."""
    return list(islice(node.dead.get(name, {}).values(), count))[::-1]


def _begin(node: NodeState, name: bytes, sweep: Sweep, jobs: list[Job]) -> int:
    count = len(jobs)
    if count:
        # In place of an earlier list: what is left of that is in this one, or has gone.
        node.purging.jobs[name, sweep] = jobs
        on_due(node, node.purging)
    return count


def broadcast(node: NodeState, name: bytes, *, dead: bool = False) -> None:
    """PURGE with BCAST: all nodes of ours that this one is linked with purge the queue, too."""
    needed = BURIES if dead else PURGES
    peers = [peer for peer in node.cluster.nodes.values() if peer.capabilities & needed]
    links = [peer.link for peer in peers if peer.link and not peer.flags & HANDSHAKE]
    send.broadcast(node, links, Purge(name, dead))


def on_purge(node: NodeState, _sender: Peer, message: Purge) -> None:
    """PURGE with BCAST on another node."""
    purge(node, message.queue, dead=message.dead)


def on_due(node: NodeState, purging: Purging) -> None:
    """One slice."""
    looks = node.knobs.purging_looks
    while looks and purging.jobs:
        (name, sweep), jobs = next(iter(purging.jobs.items()))
        next_ones = jobs[-looks:]
        del jobs[-looks:]
        looks -= len(next_ones)
        for job in reversed(next_ones):
            if node.jobs.get(job.id) is job:
                if sweep is Sweep.REDRIVE:
                    deadletters.redrive(node, job)
                elif job.state == (QUEUED if sweep is Sweep.PURGE else DEAD):
                    acks.ack(node, job.id, Cause.PURGE)
        if not jobs:
            del purging.jobs[name, sweep]
    if purging.jobs:
        node.timers.arm(purging, node.mono + RUN_EVERY)
