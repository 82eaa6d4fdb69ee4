"""PURGE and REDRIVE of a queue: all its current jobs, some at a time (docs/commands.md).

PURGE acknowledges jobs as ACKJOB does, so all their copies are dropped. Jobs that have left the
queue, or are no longer dead, when they are reached are not affected; nor are jobs that arrive
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
    """Begin to purge the queued or dead jobs. Returns their number."""
    if dead:
        return _begin(node, name, Sweep.PURGE_DEAD, _dead_jobs(node, name, None))
    queue = node.queues.get(name)
    if queue is None or not queue.length:
        return 0
    count = queue.length
    _begin(node, name, Sweep.PURGE, queue.entries())
    return count


def redrive(node: NodeState, name: bytes, count: int) -> int:
    """Begin to redrive up to `count` dead jobs in the order of their deaths; 0 is all. Returns
    their number."""
    jobs = _dead_jobs(node, name, count or None)
    dead = node.dead.get(name, {})
    # The rest of an earlier order also consists of the first dead jobs, so the longer list includes
    # the other.
    left = [job for job in node.purging.jobs.get((name, Sweep.REDRIVE), []) if job.id in dead]
    found = len(jobs)
    _begin(node, name, Sweep.REDRIVE, max(jobs, left, key=len))
    return found


def _dead_jobs(node: NodeState, name: bytes, count: int | None) -> list[Job]:
    """Dead jobs of a queue, the first one that died at the end."""
    return list(islice(node.dead.get(name, {}).values(), count))[::-1]


def _begin(node: NodeState, name: bytes, sweep: Sweep, jobs: list[Job]) -> int:
    count = len(jobs)
    if count:
        # Replaces an earlier list, whose remaining jobs are in this one or no longer exist.
        node.purging.jobs[name, sweep] = jobs
        on_due(node, node.purging)
    return count


def broadcast(node: NodeState, name: bytes, *, dead: bool = False) -> None:
    """PURGE with BCAST: send PURGE to all linked nodes of ours that support it."""
    needed = BURIES if dead else PURGES
    peers = [peer for peer in node.cluster.nodes.values() if peer.capabilities & needed]
    links = [peer.link for peer in peers if peer.link and not peer.flags & HANDSHAKE]
    send.broadcast(node, links, Purge(name, dead))


def on_purge(node: NodeState, _sender: Peer, message: Purge) -> None:
    """Handle PURGE of another node (BCAST)."""
    purge(node, message.queue, dead=message.dead)


def on_due(node: NodeState, purging: Purging) -> None:
    """One run of the timer: purge or redrive the next jobs."""
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
