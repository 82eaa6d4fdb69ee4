"""Jobs that are restored from the journal at start, before any link is up (original 7.4, 7.5).

A job that a worker may have waits for a whole retry period; one whose delay is not over, for the
rest of it (original, defect 24). An at-most-once job is queued again only if it has certainly not
been delivered: see `_is_untouched`. The collection of acknowledged jobs goes on.

After a controlled restart jobs that were queued are queued again at once, which counts as no
additional delivery (original, defect 23): when the journal ends with `journaling.STOPPED`, when
the process alone has died and queues were recorded (`aof-queues`), or when the operator says so
(`aof-enqueue-jobs-once`). In the first two cases the other holders of a job are asked before,
because the node may have been away for any time. Until then the job is RETURNING, and stays
recorded as queued, so that a node that ends meanwhile asks again.

Jobs count in `Memory.held` as they are read, so that bodies can be spilled during the load.

Owns `NodeState.recovered`, `recovering`, `expired`, `was_stopped` and `queues_note`,
`Stats.expired_while_down`, and while the journal is loaded `refusal`, `Memory.held`, and
`Job.state`, `flags` and `requeue_at`.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Final

from disque_trio.statemachine import (
    journaling,
    key_index,
    lifecycle,
    pressure,
    reasons,
    results,
    spilling,
    trace,
)
from disque_trio.statemachine.base import (
    ACKED,
    ACTIVE,
    BCAST_QUEUED,
    BCAST_WILLQUEUE,
    DEAD,
    DELIVERED,
    LEASED,
    POSTPONED,
    QUEUED,
    QUEUED_ONCE,
    RECORDED,
    TAKEN,
    Failure,
    JobId,
    Millis,
    NodeId,
)
from disque_trio.statemachine.copies import is_dead, is_orphan, millis, named, shared_name
from disque_trio.statemachine.events import Cause, Kind
from disque_trio.statemachine.job import (
    ANNOUNCE_AHEAD,
    DESYNC,
    STAMPS,
    Job,
    may_be_queued,
    was_ever_queued,
)
from disque_trio.statemachine.journaling import QUEUES, STOPPED, UNKNOWN, confirmed_in, has_left
from disque_trio.statemachine.memory import of_job
from disque_trio.statemachine.messages import JobCopy
from disque_trio.statemachine.records import LoadJob, Record, StoredResult
from disque_trio.statemachine.state import NodeState

LINKS_UP: Final[Millis] = 1000
"""How long it takes after a start until links are up."""
LOADING: Final = Failure(b"LOADING Disque is loading the dataset in memory")


def load(node: NodeState, records: Iterable[Record]) -> None:
    """Take in the next records, in their order. The last one of a job counts."""
    node.refusal = LOADING
    for record in records:
        if isinstance(record, LoadJob):
            _load(node, record.copy)
        elif isinstance(record, StoredResult):
            results.load(node, record)
        elif (moved := has_left(record.id)) is not None:
            _leave(node, moved)
        elif record.id.startswith(QUEUES):
            _note_queues(node, record.id)
        else:
            _drop(node, record.id)
        node.was_stopped = record == STOPPED
    pressure.review(node)


def finish(node: NodeState, most: int) -> bool:
    """Everything has been read: restore up to `most` jobs. True once all are restored."""
    if node.recovering is None:
        node.recovering = iter(node.recovered.values())
    jobs = list(islice(node.recovering, most))
    queues_all = node.config.aof_enqueue_jobs_once
    again = queues_all or node.was_stopped
    for job in jobs:
        node.memory.held -= of_job(job)
        if _is_kept_key(job):
            name = key_index.name_of(job)
            if name is not None:
                key_index.keep(node, name, job.id, job.ctime, job.expires - node.mono)
            continue
        is_queued = again and job.state == QUEUED
        _restore(node, job, is_queued=is_queued, may_ask=not queues_all)
    if len(jobs) == most:
        return False
    node.was_stopped = False
    node.queues_note = b""
    node.recovering = None
    node.recovered = {}
    node.stats.expired_while_down = len(node.expired)
    node.expired = {}
    node.refusal = node.cluster.refusal
    return True


def _restore(node: NodeState, job: Job, *, is_queued: bool, may_ask: bool) -> None:
    """Take in a job from the journal; queue it if it was queued when the node ended.

    This is neither announced nor counted as a delivery. With `may_ask` the other holders are asked
    first, by the WILLQUEUE that precedes every requeue, as soon as there are links.
    """
    if job.state not in (ACKED, DEAD):
        job.state = ACTIVE
    asks = may_ask and not lifecycle.is_ours_alone(node, job)
    if is_queued:
        _be_queued_again(node, job, asks=asks)
    lifecycle.register(node, job, Cause.LOADED)
    if job.state == ACKED:
        trace.note(node, Kind.ACKED, job, Cause.LOADED)
        if job.extensions is not None:
            key_index.end(node, job)
    elif job.state == DEAD:
        return
    elif not is_queued:
        _await(node, job)
    elif not asks:
        lifecycle.enqueue(node, job, Cause.LOADED)
        if not node.was_stopped:  # else the file says so, and the next start relies on it
            journaling.moved(node, job)
    if job.state == ACTIVE and key_index.is_held_back(job):
        key_index.await_end(node, job)


def _await(node: NodeState, job: Job) -> None:
    """Count it as waiting."""
    if _awaits_delay(job):
        reasons.await_delay(node, job)
    elif job.retry and job.requeue_at - node.mono <= job.retry + DESYNC:
        # Otherwise it is a copy whose delay is not over.
        reasons.await_retry(node, job)


def _be_queued_again(node: NodeState, job: Job, *, asks: bool) -> None:
    """Its next time is as the one before; with `asks` it comes when links are up, for another
    holder may have queued or delivered it meanwhile."""
    job.flags &= ~BCAST_QUEUED
    if not job.retry and not job.flags & DELIVERED:
        # Had it been handed out, it would have been deleted.
        job.flags &= ~QUEUED_ONCE
        job.requeue_at = max(node.mono, 1)
    if asks and may_be_queued(job):
        job.requeue_at = node.mono + LINKS_UP + ANNOUNCE_AHEAD
        reasons.await_answers(job)


def _awaits_delay(job: Job) -> bool:
    """Is it to be queued when a delay is over, that of ADDJOB or that of a NACK?"""
    if job.flags & POSTPONED:
        return True
    # It will be: one that may not be queued again has been queued.
    return bool(job.delay) and not job.flags & BCAST_QUEUED and not was_ever_queued(job)


def _load(node: NodeState, copy: JobCopy) -> None:
    left = copy.etime * 1000 - node.wall
    if left <= 0:
        _drop(node, copy.id)
        if copy.state != ACKED:
            node.expired[copy.id] = None
    elif copy.state == ACKED:
        _keep(node, _acknowledgement(node, copy, left))
    else:
        _keep(node, _job(node, copy, left))


def _keep(node: NodeState, job: Job) -> None:
    """Replace an earlier record of the job. The body may be spilled: the jobs may not all fit in
    memory."""
    before = node.recovered.get(job.id)
    if before is not None:
        node.memory.held -= of_job(before)
        spilling.forget(node, before)
    node.recovered[job.id] = job
    node.memory.held += of_job(job)
    spilling.offer(node, job)


def _drop(node: NodeState, job_id: JobId) -> None:
    node.expired.pop(job_id, None)
    job = node.recovered.pop(job_id, None)
    if job is not None:
        node.memory.held -= of_job(job)
        spilling.forget(node, job)


def _leave(node: NodeState, job_id: JobId) -> None:
    """The job has left its queue."""
    job = node.recovered.get(job_id)
    if job is not None and job.state == QUEUED:
        job.state = ACTIVE


def _note_queues(node: NodeState, note: JobId) -> None:
    """Are queues known from here on, or not any more?"""
    node.queues_note = note
    if note == UNKNOWN.id:
        for job in node.recovered.values():
            if job.state == QUEUED:
                job.state = ACTIVE


def _is_kept_key(job: Job) -> bool:
    """Is it no job any more, but a key that stays taken (`journaling.keep`)?"""
    return job.queue is not None and not job.holders


def _acknowledgement(node: NodeState, copy: JobCopy, left: Millis) -> Job:
    """Without holders it is a dummy ack, or a key."""
    is_key = copy.extensions is not None
    return Job(
        id=copy.id,
        queue=shared_name(copy.queue) if copy.holders or is_key else None,
        body=copy.body if copy.holders or is_key else None,
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
        extensions=copy.extensions,
        gc_at=node.mono + LINKS_UP + lifecycle.desync(node),
    )


def _still_known(node: NodeState, holders: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    """Without holders that are not in the node table, which was loaded before: they were
    forgotten."""
    return named(node, tuple(id for id in holders if id in node.cluster.nodes))


def _job(node: NodeState, copy: JobCopy, left: Millis) -> Job:
    flags, wait = _plans(node, copy)
    holders = _still_known(node, copy.holders)
    confirmed = confirmed_in(copy.holders)
    if confirmed is not None:
        confirmed = _still_known(node, confirmed)
    elif is_orphan(node, copy.id, copy.holders):
        confirmed = node.cluster.myself.holding
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
        holders=holders,
        confirmed=confirmed if confirmed is None or len(confirmed) < len(holders) else None,
        state=DEAD if is_dead(copy) else copy.state,
        flags=flags,
        requeue_at=0 if wait is None else max(node.mono + wait, 1),
        nacks=copy.nacks,
        deliveries=copy.deliveries,
        extensions=copy.extensions,
    )


def _plans(node: NodeState, copy: JobCopy) -> tuple[int, Millis | None]:
    """The flags of a job that is not acknowledged, and how long it waits before this node queues
    it; None if it is not to."""
    flags = copy.flags & ~(RECORDED | TAKEN | QUEUED_ONCE | LEASED)
    if is_dead(copy):
        return flags & ~DELIVERED, None
    until_due = _until_due(node, copy)
    if copy.retry:
        if until_due <= 0:
            # Another holder may have queued it since: the next time is not the first.
            flags |= BCAST_QUEUED
        elif _was_given_back(copy):
            flags |= POSTPONED
        return flags | BCAST_WILLQUEUE, _wait(node, copy, until_due)
    if _is_untouched(node, copy, until_due):
        return flags & ~BCAST_QUEUED, max(until_due, 0)
    return flags | QUEUED_ONCE, None


def _was_given_back(copy: JobCopy) -> bool:
    """By NACK or RELEASE DELAY, which may have let it wait."""
    return bool(copy.nacks or copy.snoozes)


def _until_due(node: NodeState, copy: JobCopy) -> Millis:
    """What is left of the delay, by this node's wall clock: never more than the whole of it,
    whatever that clock shows now.

    A record of the original's format, or of an earlier version, does not say when the delay is
    over: then it counts from the creation, which is a time by the creating node's clock.
    """
    if copy.due and _was_given_back(copy):
        # Of a wait after a NACK it is not known how long it was as a whole.
        return copy.due - node.wall
    if not copy.delay:
        return 0
    due = copy.due or copy.ctime // STAMPS + copy.delay * 1000
    return min(due - node.wall, copy.delay * 1000)


def _wait(node: NodeState, copy: JobCopy, until_due: Millis) -> Millis:
    """How long a job with RETRY above 0 waits before this node queues it.

    A node that holds it only as a copy (its first time is announced) waits one period more, so that
    the node that is to queue it first can do so. After a NACK its record says when its own turn is.
    """
    a_period = copy.retry * 1000 + lifecycle.desync(node)
    if until_due <= 0:
        return a_period
    return until_due + (a_period if copy.flags & BCAST_QUEUED and not _was_given_back(copy) else 0)


def _is_untouched(node: NodeState, copy: JobCopy, until_due: Millis) -> bool:
    """Has this at-most-once job certainly not been delivered, and is this the node to queue it?

    A copy whose first time is announced has not been told to queue it. Otherwise it is certain
    before the end of the delay, if the record does not say that it was queued all the same; after a
    controlled restart; and where each delivery was on disk before it was sent: with `appendfsync
    always`, unless an original server wrote the record.
    """
    if copy.flags & DELIVERED or (copy.flags & BCAST_QUEUED and copy.state != QUEUED):
        return False
    if node.config.aof_enqueue_jobs_once or (until_due > 0 and copy.state != QUEUED):
        return True
    return bool(copy.flags & RECORDED) and node.config.appendfsync == "always"
