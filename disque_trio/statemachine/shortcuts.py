"""Fast paths for the most frequent steps of `lifecycle`.

Each has exactly the effects of the slow path, which tests check; read that one first. The only
difference: jobs that other nodes hold share one random offset of their times. Events of traced jobs
are written at the end, so simulated nodes use the fast paths, too.

Writes what `lifecycle` owns: `Job.state`, `flags`, `requeue_at` and `gc_at`, `Queue.accessed`,
`jobs_in` and `jobs_out`, `Memory.held` and `evictable`, `NodeState.table`; and `NodeState.begun`.
Owns `Tally.at_once`.
"""

from itertools import groupby
from operator import attrgetter
from typing import Final

from disque_trio.statemachine import counts, journaling, lifecycle, send, trace
from disque_trio.statemachine.base import (
    ACTIVE,
    BCAST_WILLQUEUE,
    DELIVERED,
    LEASED,
    TRACED,
    ClientId,
    JobId,
    Millis,
    NodeId,
)
from disque_trio.statemachine.events import Cause, Kind
from disque_trio.statemachine.job import ANNOUNCE_AHEAD, DESYNC, Job
from disque_trio.statemachine.memory import JOB_BYTES
from disque_trio.statemachine.messages import Working
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.state import NodeState

_SPREAD: Final = 2 * DESYNC
_retry_of = attrgetter("retry")
_ON_LEASE: Final = DELIVERED | LEASED | BCAST_WILLQUEUE


def begin_queued(node: NodeState, job: Job, args: list[bytes], queue: Queue) -> None:
    """`lifecycle.begin` for a new job without other replicas, delay and key. The job must have the
    state that `begin` would set; `args` is its request.

    Most jobs are of this kind, and this takes 0.7 of the instructions. Growing the table may fail
    for lack of memory, so it precedes every other change.
    """
    node.table.put(job)
    node.begun = args
    more = 0 if job.extensions is None else job.extensions.weight
    node.memory.held += JOB_BYTES + len(args[2]) + more
    node.timers.arm(job, min(job.requeue_at - ANNOUNCE_AHEAD, job.expires))
    queue.add(job)
    queue.accessed = node.mono
    queue.jobs_in += 1
    node.tally.at_once += 1
    if queue.waiting:
        lifecycle.mark_ready(node, queue)
    if queue.name in node.demands:
        lifecycle.mark_pending(node, queue.name)
    if node.is_recording:
        journaling.hold(node, job)


def deliver(node: NodeState, queue: Queue, count: int, client: ClientId) -> tuple[list[Job], bool]:
    """Deliver up to `count` jobs to a client: `lifecycle.fetch` and `leases.start` for each. The
    second result is true if the last of them, and not an expired one after it, emptied the queue.

    Job by job, this would take most of the time of GETJOB COUNT 200.
    """
    mono, timers, random = node.mono, node.timers, node.rng.random
    has_lease, holding = node.config.delivery_lease, node.cluster.myself.holding
    jobs: list[Job] = []
    copied: list[Job] = []
    is_last = False
    leased = flags = 0
    while len(jobs) < count and (popped := queue.pop_many(count - len(jobs))):
        for job in popped:
            job.state = ACTIVE
            if job.expires <= mono:
                counts.unqueue(node, job)
                trace.note(node, Kind.UNQUEUE, job, Cause.DROPPED)
                lifecycle.unregister(node, job, Cause.EXPIRED)
                is_last = False
                continue
            is_last = True
            jobs.append(job)
            flags |= job.flags
            if not job.retry:
                job.flags |= DELIVERED
                journaling.delivered(node, job)
                node.memory.evictable[job.id] = job
            elif not has_lease:
                job.flags |= DELIVERED
            elif job.holders is holding:
                # As `leases.renew` does.
                job.flags |= _ON_LEASE
                leased += 1
                again = mono + job.retry + int(random() * _SPREAD) - DESYNC
                job.requeue_at = again = timers.shared(again)
                timers.arm(job, min(again - ANNOUNCE_AHEAD, job.expires))
            else:
                job.flags |= DELIVERED
                leased += 1
                copied.append(job)
    _lease_all(node, copied)
    if flags >= TRACED:
        trace.served(node, jobs, client)
    if jobs:
        queue.accessed = mono
        queue.jobs_out += len(jobs)
        counts.fetched(node, queue.name, len(jobs))
        counts.delivered(node, jobs, queue.name, leased)
        if node.is_recording_queues:
            journaling.handed_out(node, jobs)
    return jobs, is_last and not queue.length


def _lease_all(node: NodeState, jobs: list[Job]) -> None:
    """`leases.renew`, except for the counts, for at-least-once jobs that other nodes may hold."""
    restart_retries(node, jobs)
    ids_by_holders: dict[tuple[NodeId, ...], list[JobId]] = {}
    for job in jobs:
        job.flags |= LEASED
        ids_by_holders.setdefault(job.holders, []).append(job.id)
    for holders, ids in ids_by_holders.items():
        send.of_many(node, holders, Working(ids[0]), ids)


def restart_retries(node: NodeState, jobs: list[Job]) -> None:
    """`lifecycle.restart_retry` for at-least-once jobs that do not wait for replicas, with one
    random offset for all."""
    spread = lifecycle.desync(node) if jobs else 0
    for retry, some in groupby(jobs, _retry_of):
        again = node.timers.shared(node.mono + retry + spread)
        announced = again - ANNOUNCE_AHEAD
        alike = list(some)
        for job in alike:
            job.flags |= BCAST_WILLQUEUE
            job.requeue_at = again
        _arm_all(node, alike, announced)


def begin_collections(node: NodeState, jobs: list[Job]) -> None:
    """`lifecycle.schedule_collection` for jobs that were just acknowledged, with one time for
    all."""
    if jobs:
        gc_at = lifecycle.next_collection(node, 0)
        for job in jobs:
            job.gc_at = gc_at
        _arm_all(node, jobs, gc_at)


def _arm_all(node: NodeState, jobs: list[Job], when: Millis) -> None:
    """Set the timers of these jobs to `when`, or to their expiry if that is earlier."""
    timers = node.timers
    timers.arm_all([job for job in jobs if job.expires > when], when)
    for job in jobs:
        if job.expires <= when:
            timers.arm(job, job.expires)
