"""Jobs that come back from the journal at start, before any link is up (original 7.4, 7.5).

A job that may be in a worker's hands waits for a whole retry period; one whose delay is not over,
for that (original, defect 24). An at-most-once job is queued again only if it is certain that
nobody has been given it: see `_is_untouched`. An acknowledgement goes on being collected.

After a controlled restart what was queued is queued again at once, and that is no additional
delivery (original, defect 23): when the journal ends as that of a node that was stopped in order
(`journaling.STOPPED`), or when the operator says so (`aof-enqueue-jobs-once`). In the first case
the other holders of a job are asked before, for nobody knows how long the node was away.

What has been read weighs at once, so that bodies can be spilled before everything has been.

Owns `NodeState.recovered`, `recovering` and `was_stopped`, and while the journal is loaded
`refusal` and `Memory.held`.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Final

from disque_trio.statemachine import lifecycle, pressure, spilling
from disque_trio.statemachine.base import (
    ACKED,
    BCAST_QUEUED,
    BCAST_WILLQUEUE,
    DELIVERED,
    LEASED,
    QUEUED,
    QUEUED_ONCE,
    RECORDED,
    Failure,
    JobId,
    Millis,
    NodeId,
)
from disque_trio.statemachine.copies import millis, named, shared_name
from disque_trio.statemachine.job import STAMPS, Job
from disque_trio.statemachine.journaling import STOPPED
from disque_trio.statemachine.memory import of_job
from disque_trio.statemachine.messages import JobCopy
from disque_trio.statemachine.records import LoadJob, Record
from disque_trio.statemachine.state import NodeState

LOADING: Final = Failure(b"LOADING Disque is loading the dataset in memory")


def load(node: NodeState, records: Iterable[Record]) -> None:
    """Take in the next records, in their order. The last one of a job counts."""
    node.refusal = LOADING
    for record in records:
        if isinstance(record, LoadJob):
            _load(node, record.copy)
        else:
            _drop(node, record.id)
        node.was_stopped = record == STOPPED
    pressure.review(node)


def finish(node: NodeState, most: int) -> bool:
    """Everything has been read: let up to `most` jobs live. True once all do."""
    if node.recovering is None:
        node.recovering = iter(node.recovered.values())
    jobs = list(islice(node.recovering, most))
    is_told = node.config.aof_enqueue_jobs_once
    again = is_told or node.was_stopped
    for job in jobs:
        node.memory.held -= of_job(job)
        is_queued = again and job.state == QUEUED
        lifecycle.restore(node, job, is_queued=is_queued, may_ask=not is_told)
    if len(jobs) == most:
        return False
    node.was_stopped = False
    node.recovering = None
    node.recovered = {}
    node.refusal = node.cluster.refusal
    return True


def _load(node: NodeState, copy: JobCopy) -> None:
    left = copy.etime * 1000 - node.wall
    if left <= 0:
        _drop(node, copy.id)
    elif copy.state == ACKED:
        _keep(node, _acknowledgement(node, copy, left))
    else:
        _keep(node, _job(node, copy, left))


def _keep(node: NodeState, job: Job) -> None:
    """It takes the place of an earlier record. Its body may go to disk: there may be more jobs
    than there is memory for."""
    before = node.recovered.get(job.id)
    if before is not None:
        node.memory.held -= of_job(before)
        spilling.forget(node, before)
    node.recovered[job.id] = job
    node.memory.held += of_job(job)
    spilling.offer(node, job)


def _drop(node: NodeState, job_id: JobId) -> None:
    job = node.recovered.pop(job_id, None)
    if job is not None:
        node.memory.held -= of_job(job)
        spilling.forget(node, job)


def _acknowledgement(node: NodeState, copy: JobCopy, left: Millis) -> Job:
    """Without holders it is a dummy ack."""
    return Job(
        id=copy.id,
        queue=shared_name(copy.queue) if copy.holders else None,
        body=copy.body if copy.holders else None,
        replicas=copy.replicas,
        made=node.timers.shared(copy.ctime // STAMPS),
        number=copy.ctime % STAMPS,
        expires=node.timers.shared(node.mono + left),
        delay=millis(copy.delay),
        retry=millis(copy.retry),
        holders=_still_known(node, copy.holders) if copy.holders else (),
        state=ACKED,
        flags=copy.flags,
        nacks=copy.nacks,
        deliveries=copy.deliveries,
        gc_at=node.mono + lifecycle.LINKS_UP + lifecycle.desync(node),
    )


def _still_known(node: NodeState, holders: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    """Who is not in the node table that was loaded before has been forgotten since."""
    return named(node, tuple(id for id in holders if id in node.cluster.nodes))


def _job(node: NodeState, copy: JobCopy, left: Millis) -> Job:
    flags = copy.flags & ~(RECORDED | QUEUED_ONCE | LEASED)
    until_due = copy.ctime // 1_000_000 + copy.delay * 1000 - node.wall if copy.delay else 0
    if copy.retry:
        flags |= BCAST_WILLQUEUE
        wait = _wait(node, copy, until_due)
        if until_due <= 0:
            # Somebody may have queued it since: the next time is not the first.
            flags |= BCAST_QUEUED
    elif _is_untouched(node, copy, until_due):
        wait = max(until_due, 0)
        flags &= ~BCAST_QUEUED
    else:
        wait = None
        flags |= QUEUED_ONCE
    return Job(
        id=copy.id,
        queue=shared_name(copy.queue),
        body=copy.body,
        replicas=copy.replicas,
        made=node.timers.shared(copy.ctime // STAMPS),
        number=copy.ctime % STAMPS,
        expires=node.timers.shared(node.mono + left),
        delay=millis(copy.delay),
        retry=millis(copy.retry),
        holders=_still_known(node, copy.holders),
        state=copy.state,
        flags=flags,
        requeue_at=0 if wait is None else max(node.mono + wait, 1),
        nacks=copy.nacks,
        deliveries=copy.deliveries,
    )


def _wait(node: NodeState, copy: JobCopy, until_due: Millis) -> Millis:
    """How long a job with RETRY above 0 waits before this node queues it.

    Whoever has it only as a copy (it announces its first time) gives the one that shall queue it
    first a period more, as always.
    """
    a_period = copy.retry * 1000 + lifecycle.desync(node)
    if until_due <= 0:
        return a_period
    return until_due + (a_period if copy.flags & BCAST_QUEUED else 0)


def _is_untouched(node: NodeState, copy: JobCopy, until_due: Millis) -> bool:
    """Is it certain that this at-most-once job has not been handed out, and is it ours to queue?

    A copy that announces its first time has not been told to queue it. Otherwise it is certain
    when the delay is not over yet, after a controlled restart, and where each delivery was on
    disk before it left: with `appendfsync always`, unless an original server wrote the record.
    """
    if copy.flags & DELIVERED or (copy.flags & BCAST_QUEUED and copy.state != QUEUED):
        return False
    if until_due > 0 or node.config.aof_enqueue_jobs_once:
        return True
    return bool(copy.flags & RECORDED) and node.config.appendfsync == "always"
