"""Nodes of which something about job extensions is broken."""

import attrs

from disque_trio.statemachine import journaling, queue, replication
from disque_trio.statemachine.copies import snapshot
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import JobCopy
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.state import NodeState
from tests.sim.ablations.broken import Patch


def priorities_ignored(patch: Patch) -> None:
    """Jobs are delivered in order of creation, whatever their priorities."""
    patch.setattr(queue, "_key", lambda job: (0, job.made, job.number, job.id))


def priorities_reversed_when_peeked(patch: Patch) -> None:
    """QPEEK shows jobs in order of creation, whatever their priorities."""

    def peek(self: Queue, count: int) -> list[Job]:
        jobs = sorted(intact(self, len(self)), key=lambda job: (job.made, job.number))
        return jobs[:count] if count > 0 else jobs[::-1][:-count]

    intact = Queue.peek
    patch.setattr(Queue, "peek", peek)


def copies_without_extensions(patch: Patch) -> None:
    """Copies of new jobs have no extensions."""

    def plain(node: NodeState, job: Job) -> JobCopy:
        return attrs.evolve(snapshot(node, job), extensions=None)

    patch.setattr(replication, "snapshot", plain)


def extensions_not_written(patch: Patch) -> None:
    """The journal does not have the extensions of jobs."""

    def stored(node: NodeState, job: Job) -> JobCopy:
        return attrs.evolve(intact(node, job), extensions=None)

    intact = journaling.stored
    patch.setattr(journaling, "stored", stored)
