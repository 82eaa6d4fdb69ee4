"""Recovery of jobs from the journal at the start, before any link is up (original 7.4, 7.5).

A job that may be leased waits for a whole retry period; a delayed job, for the rest of its delay
(original, defect 24). An at-most-once job is enqueued only if it was certainly not delivered: see
`_is_untouched`. The collection of acknowledged jobs continues.

Jobs that were queued are enqueued at once, without counting an additional delivery (original,
defect 23), in three cases: the journal ends with `journaling.STOPPED`; only the process has died,
and queues were recorded (`aof-queues`); or the operator has set `aof-enqueue-jobs-once`. In the
first two cases, the other holders of a job are asked first, because the node may have been down for
any time. Until they have answered, the job is RETURNING, and remains recorded as queued, so that
the next start asks again if the node stops meanwhile.

`Memory.held` includes jobs as they are read, so that bodies can be spilled during the load.

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
    DELAYED,
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
    """Load the next records, in order. The last record of a job applies."""
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
    """Restore up to `most` jobs, after all records are loaded. Returns True once all are
    restored."""
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
    """Restore a job from the journal. Enqueue it if `is_queued`.

    This is neither announced nor counted as a delivery. With `may_ask`, the other holders are asked
    first, by the WILLQUEUE that precedes every requeue, as soon as links are up.
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
        if not node.was_stopped:  # otherwise the last record still applies
            journaling.moved(node, job)
    if job.state == ACTIVE and key_index.is_held_back(job) and not _is_delayed_elsewhere(node, job):
        key_index.await_end(node, job)


def _await(node: NodeState, job: Job) -> None:
    """Count the job as waiting for its delay or RETRY."""
    if _awaits_delay(job):
        reasons.await_delay(node, job)
    elif job.retry and not _is_delayed_elsewhere(node, job):
        reasons.await_retry(node, job)


def _is_delayed_elsewhere(node: NodeState, job: Job) -> bool:
    """Is it a copy of a job that is still delayed, and that another node is to enqueue first? Then
    it becomes due here a period after the end of its delay, and must not be enqueued before."""
    return not job.flags & DELAYED and job.requeue_at - node.mono > job.retry + DESYNC


def _be_queued_again(node: NodeState, job: Job, *, asks: bool) -> None:
    """Prepare an enqueue that does not count as another one. With `asks`, it is due when links are
    up, because another holder may have enqueued or delivered the job meanwhile."""
    job.flags &= ~BCAST_QUEUED
    if not job.retry and not job.flags & DELIVERED:
        # A delivery would have deleted its record.
        job.flags &= ~QUEUED_ONCE
        job.requeue_at = max(node.mono, 1)
    if asks and may_be_queued(job):
        job.requeue_at = node.mono + LINKS_UP + ANNOUNCE_AHEAD
        reasons.await_answers(job)


def _awaits_delay(job: Job) -> bool:
    """Must this node enqueue the job at the end of a delay, of ADDJOB, NACK or RELEASE?"""
    if job.flags & POSTPONED:
        return True
    # An at-most-once job that must not be enqueued is flagged as queued before.
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
    """Keep the job in place of its earlier record. The body may be spilled, because the jobs may
    not all fit in memory."""
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
    """Record that the job has left its queue."""
    job = node.recovered.get(job_id)
    if job is not None and job.state == QUEUED:
        job.state = ACTIVE


def _note_queues(node: NodeState, note: JobId) -> None:
    """Handle a note about queues: whether the following records include every job that leaves a
    queue."""
    node.queues_note = note
    if note == UNKNOWN.id:
        for job in node.recovered.values():
            if job.state == QUEUED:
                job.state = ACTIVE


def _is_kept_key(job: Job) -> bool:
    """Is it the record of a key that stays reserved after its job (`journaling.keep`)?"""
    return job.queue is not None and not job.holders


def _acknowledgement(node: NodeState, copy: JobCopy, left: Millis) -> Job:
    """An acknowledged job. A record without holders is a dummy ack, or a key that stays
    reserved."""
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
    """The holders that are in the node table, which was loaded before. The others were
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
    """The flags of a job that is not acknowledged, and the wait in milliseconds before this node
    enqueues it; None if it must not."""
    flags = copy.flags & ~(RECORDED | TAKEN | QUEUED_ONCE | LEASED)
    if is_dead(copy):
        return flags & ~DELIVERED, None
    until_due = _until_due(node, copy)
    if copy.retry:
        if until_due <= 0:
            # Another holder may have enqueued it since, so the next enqueue is not the first.
            flags |= BCAST_QUEUED
        elif _was_given_back(copy):
            flags |= POSTPONED
        return flags | BCAST_WILLQUEUE, _wait(node, copy, until_due)
    if _is_untouched(node, copy, until_due):
        return flags & ~BCAST_QUEUED, max(until_due, 0)
    return flags | QUEUED_ONCE, None


def _was_given_back(copy: JobCopy) -> bool:
    """Was the job returned by NACK or RELEASE DELAY, which may have postponed it?"""
    return bool(copy.nacks or copy.snoozes)


def _until_due(node: NodeState, copy: JobCopy) -> Millis:
    """The rest of the delay, by this node's wall clock; at most the whole delay, even if that clock
    has changed.

    A record in the original's format, or of an earlier version, does not include the end of the
    delay: then it is computed from the creation time, by the creating node's clock.
    """
    if copy.due and _was_given_back(copy):
        # The total length of a wait after a NACK is unknown.
        return copy.due - node.wall
    if not copy.delay:
        return 0
    due = copy.due or copy.ctime // STAMPS + copy.delay * 1000
    return min(due - node.wall, copy.delay * 1000)


def _wait(node: NodeState, copy: JobCopy, until_due: Millis) -> Millis:
    """How long a job with RETRY above 0 waits before this node enqueues it.

    A node that was not to enqueue it first (BCAST_QUEUED) waits one more period, so that the other
    node can do so. After a NACK, the record already includes this node's own margin.
    """
    a_period = copy.retry * 1000 + lifecycle.desync(node)
    if until_due <= 0:
        return a_period
    return until_due + (a_period if copy.flags & BCAST_QUEUED and not _was_given_back(copy) else 0)


def _is_untouched(node: NodeState, copy: JobCopy, until_due: Millis) -> bool:
    """Was this at-most-once job certainly not delivered, and must this node enqueue it?

    False for a copy that was not to enqueue the job first (BCAST_QUEUED). Otherwise it is certain
    in three cases: before the end of the delay, unless the job was recorded as queued; with
    `aof-enqueue-jobs-once`; and if each delivery was on disk before it was sent, which means
    `appendfsync always` and a record that no original server wrote.
    """
    if copy.flags & DELIVERED or (copy.flags & BCAST_QUEUED and copy.state != QUEUED):
        return False
    if node.config.aof_enqueue_jobs_once or (until_due > 0 and copy.state != QUEUED):
        return True
    return bool(copy.flags & RECORDED) and node.config.appendfsync == "always"
