"""Spilling: the choice of bodies that move to disk under memory pressure, and their accounting
(docs/memory.md).

When `Memory.held` is above `Memory.spill_above`, the driver calls `overflow` between two batches,
writes the bodies of the returned jobs to disk, and calls `spilled` with placeholders. Ids, queues
and times stay in memory. The bodies furthest from delivery are spilled first: the youngest queued
jobs that have others before them, and replicas of jobs of other nodes.

Owns `Job.body`, `Memory.spillable` and `spill_again`; updates `Memory.held` for spilled bodies.
"""

from collections.abc import Sequence
from typing import Final

from disque_trio.statemachine.base import ACTIVE, DEAD, DELIVERED, QUEUED, Millis, Spilled
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.memory import of_job
from disque_trio.statemachine.state import NodeState

MIN_BYTES: Final = 512
"""A shorter body takes hardly more memory than its placeholder."""
BATCH_BYTES: Final = 4 << 20
"""The maximum size of the bodies that are written at a time."""
FRACTION: Final = 20
"""In addition to the excess, 1/20 of the limit is spilled, so that spilling has pauses."""
RETRY_EVERY: Final[Millis] = 1000


def offer(node: NodeState, job: Job) -> None:
    """Mark this job's body as spillable, because the job will not be delivered soon."""
    spillable, body = node.memory.spillable, job.body
    if spillable is not None and isinstance(body, bytes) and len(body) >= MIN_BYTES:
        spillable[job.id] = job


def forget(node: NodeState, job: Job) -> None:
    """Remove a dropped job."""
    if node.memory.spillable is not None:
        node.memory.spillable.pop(job.id, None)


def overflow(node: NodeState) -> list[Job]:
    """The jobs whose bodies must be spilled now, the youngest first."""
    memory = node.memory
    spillable = memory.spillable
    jobs: list[Job] = []
    if spillable is None or node.mono < memory.spill_again:
        return jobs
    wanted = min(memory.held - memory.spill_above + memory.spill_above // FRACTION, BATCH_BYTES)
    while spillable and wanted > 0:
        _, job = spillable.popitem()
        if _may_go(node, job):
            jobs.append(job)
            wanted -= len(job.body or b"")
    return jobs


def _may_go(node: NodeState, job: Job) -> bool:
    """May the body be spilled? Not while the job may be leased, because it could soon be needed
    again. During recovery, a job may be leased for a whole retry period, so its body may be
    spilled."""
    if job.state in (QUEUED, DEAD):
        return True
    return job.state == ACTIVE and (not job.flags & DELIVERED or job.id in node.recovered)


def spilled(node: NodeState, jobs: Sequence[Job], bodies: Sequence[Spilled]) -> None:
    """Replace spilled bodies with their placeholders. If there are none, the disk has failed, and
    spilling pauses."""
    memory = node.memory
    if len(bodies) < len(jobs):
        memory.spill_again = node.mono + RETRY_EVERY
        for job in reversed(jobs):
            offer(node, job)
        return
    for job, body in zip(jobs, bodies, strict=True):
        memory.held -= of_job(job)
        job.body = body
        memory.held += of_job(job)
