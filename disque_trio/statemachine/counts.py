"""How many jobs of each queue are delayed here or with workers, counted as they come and go; and
which are dead.

The counts stand beside the queues, because a queue may be dropped, or not exist yet, while it has
such jobs. What a job counts as is said by its flags, so a plain job needs no field for it.

Owns `NodeState.delayed`, `leased` and `dead`, `Queue.acks` and `given`.
"""

from typing import Final

from disque_trio.statemachine.base import DEAD, DELAYED, LEASED
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.state import NodeState

COUNTED: Final = DELAYED | LEASED
"""The flags that are counted, unless the job is acknowledged."""


def leases(node: NodeState, name: bytes, number: int) -> None:
    """Workers get so many jobs of the queue."""
    node.leased[name] = node.leased.get(name, 0) + number


def delay(node: NodeState, job: Job) -> None:
    """The job waits here for the end of its delay."""
    name = job.queue or b""
    node.delayed[name] = node.delayed.get(name, 0) + 1


def hold(node: NodeState, job: Job) -> None:
    """The job is here, and may be dead."""
    if job.state == DEAD:
        node.dead.setdefault(job.queue or b"", {})[job.id] = job


def leave(node: NodeState, job: Job, flags: int) -> None:
    """The job is about to lose these flags, or to end."""
    name = job.queue or b""
    if flags & LEASED:
        _less(node.leased, name, 1)
    if flags & DELAYED:
        _less(node.delayed, name, 1)
    if job.state == DEAD:
        dead = node.dead[name]
        del dead[job.id]
        if not dead:
            del node.dead[name]


def acknowledged(node: NodeState, name: bytes, acks: int, leases: int = 0) -> None:
    """Clients have acknowledged so many jobs of the queue, and so many of them were leased."""
    queue = node.queues.get(name)
    if queue is not None:
        queue.acks += acks
    if leases:
        _less(node.leased, name, leases)


def gave(queue: Queue, number: int) -> None:
    """So many jobs have gone to another node."""
    queue.given += number


def _less(counts: dict[bytes, int], name: bytes, number: int) -> None:
    left = counts[name] - number
    if left:
        counts[name] = left
    else:
        del counts[name]
