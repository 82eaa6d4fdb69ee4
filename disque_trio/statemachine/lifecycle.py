"""The life of a job in this node: registered, queued, fetched, acknowledged, dropped (original
6.1).

Owns `Job.state`, `queue`, `requeue_at`, `gc_at`, `flags`, `nacks` and `deliveries` of a live job,
and `body` of a dropped one; `NodeState.table`, `queues`, `ready` and `pending_queues`, and adds to
`ended`; `Queue.accessed`, `jobs_in` and `jobs_out`; `Memory.held`, `evictable` and `dummies`. Adds
to `Endings.rows`. Jobs that begin or end here are recorded in the journal here; the modules that
receive copies record those.
"""

from typing import Final

from disque_trio.statemachine import (
    counts,
    endings,
    journaling,
    key_index,
    send,
    spilling,
    trace,
    tracked_deliveries,
)
from disque_trio.statemachine.base import (
    ACKED,
    ACTIVE,
    BCAST_QUEUED,
    BCAST_WILLQUEUE,
    DELAYED,
    DELIVERED,
    PAUSE_IN,
    PAUSE_OUT,
    POSTPONED,
    QUEUED,
    QUEUED_ONCE,
    RESTORED,
    RETURNING,
    TRACED,
    WAIT_REPL,
    Millis,
)
from disque_trio.statemachine.endings import HEAD, OUTCOMES
from disque_trio.statemachine.events import Cause, Kind
from disque_trio.statemachine.job import (
    ANNOUNCE_AHEAD,
    DESYNC,
    Job,
    gc_wait,
    may_be_queued,
    next_wake,
)
from disque_trio.statemachine.memory import JOB_BYTES, is_evictable, of_job, of_queue
from disque_trio.statemachine.messages import Queued
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.reasons import OF_PERIOD, await_delay, clear
from disque_trio.statemachine.state import NodeState

_SPREAD: Final = 2 * DESYNC
_BY_CLIENT: Final = (Cause.ENQUEUE, Cause.RELEASE, Cause.REDRIVEN)
"""Causes by which a client ends a running lease (besides NACK, which QUEUED marks itself)."""
NOT_COUNTED: Final = (
    Cause.NACK, Cause.RELEASE, Cause.REDRIVEN, Cause.BACKED_OFF, Cause.FOLLOWED, Cause.UNBEGUN,
)  # fmt: skip
"""Causes of a requeue that do not count as an additional delivery."""
_ACKED: Final = b"acked"
_ENDS: Final = {Cause.EXPIRED: b"expired", Cause.FASTACK: _ACKED, Cause.DELJOB: _ACKED}
"""The reply of WAITJOB for a job that is dropped without having been acknowledged here."""
_TRIED_EVERY: Final[Millis] = 1000
"""How often a job with RETRY 0 is checked while it is held back."""
QUEUE_LOOK: Final[Millis] = 30_000
"""How often a node in a cluster checks whether clients of other nodes should receive jobs of a
queue."""
QUEUE_IDLE_LIMIT: Final[Millis] = 300_000
"""An empty queue that was unused for this long is dropped (original 6.11)."""


def register(node: NodeState, job: Job, cause: Cause) -> None:
    """Add a job to the table, and set its timer."""
    _hold(node, job)
    if job.state == ACTIVE:
        counts.unqueue(node, job)
        spilling.offer(node, job)
    trace.hold(node, job, cause)
    schedule(node, job)


def begin(node: NodeState, job: Job) -> None:
    """Add a new job of this node to the table if it is not there, and enqueue it now or, with a
    delay, later (original 6.3)."""
    if job.id not in node.jobs:
        # As `_hold` does, for a job that cannot be evicted.
        node.table.put(job)
        node.memory.held += of_job(job)
        if node.trace is not None or node.traces.first[job.id[11]]:
            trace.begin(node, job)
        if job.extensions is not None:
            key_index.hold(node, job)
    job.state = ACTIVE
    counts.unqueue(node, job)
    if job.extensions is not None and key_index.is_held_back(job):
        key_index.await_end(node, job)
    if job.delay or job.flags & BCAST_QUEUED:
        # With this flag, another holder has enqueued it already.
        spilling.offer(node, job)
        if not job.flags & BCAST_QUEUED:
            await_delay(node, job)
        schedule(node, job)
    else:
        enqueue(node, job, Cause.FIRST)
    if node.is_recording:
        journaling.hold(node, job)


def _hold(node: NodeState, job: Job) -> None:
    node.table.put(job)
    memory = node.memory
    memory.held += of_job(job)
    trace.look_at(node, job)
    if job.extensions is not None:
        key_index.hold(node, job)
        counts.hold(node, job)
    if is_evictable(job):
        (memory.dummies if job.is_dummy else memory.evictable)[job.id] = job


def unregister(node: NodeState, job: Job, cause: Cause) -> None:
    """Drop the job here, in any state.

    An acknowledged job leaves a tombstone if other nodes may hold it.
    """
    if job.state == QUEUED:
        dequeue(node, job, Cause.DROPPED)
    if node.is_recording:
        journaling.drop(node, job)
    if cause is not Cause.COLLECTED:
        counts.dropped(node, cause)
    _conclude(node, job, cause)
    node.timers.disarm(job)
    node.table.drop(job)
    memory = node.memory
    weight = of_job(job)
    memory.held -= weight
    if memory.evictable and job.id in memory.evictable:
        del memory.evictable[job.id]
    if memory.dummies and job.id in memory.dummies:
        del memory.dummies[job.id]
    if memory.spillable is not None:
        spilling.forget(node, job)
    if weight > JOB_BYTES + HEAD or job.in_line:
        # A stale entry in a queue, or a row of `endings`, must not keep the body in memory.
        job.body = endings.head(job)
    if job.flags >= TRACED:
        trace.note(node, Kind.DROP, job, cause)


def _conclude(node: NodeState, job: Job, cause: Cause) -> None:
    """End the job's counts, leave a tombstone, and note its end for waiting clients."""
    if job.state != ACKED:
        counts.leave(node, job, job.flags)
        counts.requeue(node, job)
        if (rows := node.endings.rows) is not None and cause in OUTCOMES:
            rows.append((job, cause, node.acker, node.wall))
    elif job.holders is not node.cluster.myself.holding and not is_ours_alone(node, job):
        node.tombstones.bury(job.id)
    if node.tracked:
        tracked_deliveries.end(node, job)
    if node.awaited:
        note_end(node, job, _ENDS.get(cause, b""))
    if job.extensions is not None:
        key_index.drop(node, job, cause, is_alone=is_ours_alone(node, job))


def note_end(node: NodeState, job: Job, end: bytes) -> None:
    """Note the end of a job for the clients that wait for it; `waiters` replies to them at the end
    of the batch."""
    if job.id in node.awaited:
        node.ended[job.id] = _ACKED if job.state == ACKED else end


def is_ours_alone(node: NodeState, job: Job) -> bool:
    """Has no other node ever had this job? False for jobs of other nodes, because their list of
    holders may be incomplete."""
    myself = node.cluster.myself
    if job.holders is myself.holding:
        # Only new jobs of this node have this tuple object.
        return True
    return job.holders == (myself.id,) and job.id[2:10] == myself.id[:8]


def schedule(node: NodeState, job: Job) -> None:
    """Set the job's timer to its next deadline."""
    node.timers.arm(job, next_wake(job))


def desync(node: NodeState) -> Millis:
    """A random offset in milliseconds, so that holders of a job do not requeue it at the same
    time."""
    return int(node.rng.random() * _SPREAD) - DESYNC


def restart_retry(node: NodeState, job: Job) -> None:
    """Restart the retry period. At-most-once jobs have none."""
    timers = node.timers
    if job.retry:
        job.flags |= BCAST_WILLQUEUE
        # A period is at least a second, so this is never 0, which would mean "never".
        requeue_at = job.requeue_at = timers.shared(node.mono + job.retry + desync(node))
        if job.state != WAIT_REPL:
            # The result of `next_wake` for nearly every job that is added or delivered.
            timers.arm(job, min(requeue_at - ANNOUNCE_AHEAD, job.expires))
            return
    timers.arm(job, next_wake(job))


def requeue_in(node: NodeState, job: Job, wait: Millis) -> None:
    """Set the time of the next enqueue to `wait` ms from now."""
    was_delayed = job.flags & DELAYED
    clear(node, job, RESTORED | DELAYED)
    job.requeue_at = max(node.mono + wait, 1)
    if was_delayed:
        await_delay(node, job)
    schedule(node, job)


def mark(job: Job, flag: int) -> None:
    """Set a flag."""
    job.flags |= flag


def unmark(job: Job, flag: int) -> None:
    """Clear a flag that is not counted."""
    job.flags &= ~flag


def queue_for(node: NodeState, name: bytes) -> Queue:
    """The queue with this name, created if it does not exist."""
    queue = node.queues.get(name)
    if queue is None:
        now = node.mono
        limit = node.limits.get(name)
        queue = Queue(name, now, now, limit=limit, import_started=now, import_previous_started=now)
        held = node.memory.held + of_queue(queue)
        node.queues[name] = queue
        try:
            node.timers.arm(queue, now + QUEUE_LOOK)
        except MemoryError:
            del node.queues[name]
            raise
        node.memory.held = held
    return queue


def is_paused_in(node: NodeState, name: bytes) -> bool:
    """Does the queue exist and refuse new jobs?"""
    queue = node.queues.get(name)
    return queue is not None and bool(queue.paused & PAUSE_IN)


def enqueue(node: NodeState, job: Job, cause: Cause) -> bool:
    """Enqueue the job. Returns False, without change, if it may not be enqueued (original 6.1).

    The first enqueue is not announced, because no other holder would enqueue the job now. Later
    ones are announced with QUEUED, so that the other holders postpone their requeue.
    """
    if (
        not may_be_queued(job)
        or job.queue is None
        or (job.extensions is not None and _is_held_back(node, job, cause))
    ):
        return False
    is_recorded_so = job.flags & RETURNING and cause is not Cause.NACK
    clear(node, job, OF_PERIOD | DELAYED | POSTPONED)
    counts.requeue(node, job)
    job.state = QUEUED
    if node.tracked:
        tracked_deliveries.give_up(node, job)
    if not job.retry:
        job.flags |= QUEUED_ONCE
        job.requeue_at = 0
    if job.flags & BCAST_QUEUED or cause is Cause.NACK:
        # A requeue: count it, and announce it.
        trace.trouble(node, job, ACTIVE)
        nack, again = cause is Cause.NACK, cause not in NOT_COUNTED
        count_delivery(job, nack=nack, redelivery=again)
        send.to_holders(
            node, job, Queued(job.id, nack=nack, redelivery=again, told=cause in _BY_CLIENT)
        )
    else:
        job.flags |= BCAST_QUEUED
    restart_retry(node, job)
    queue = queue_for(node, job.queue)
    # All jobs of the queue share one name object.
    job.queue = queue.name
    queue.add(job)
    if node.memory.spillable is not None and queue.comes_late(job, node.knobs.spill_ahead):
        spilling.offer(node, job)
    queue.accessed = node.mono
    queue.jobs_in += 1
    counts.queued(node, cause)
    if (
        node.is_recording
        and not is_recorded_so
        # `begin` records the first enqueue, and `recovery` writes a record if there is none.
        and cause is not Cause.FIRST
        and cause is not Cause.LOADED
    ):
        journaling.queued(node, job)
    trace.note(node, Kind.QUEUE, job, cause)
    if queue.waiting:
        mark_ready(node, queue)
    if queue.name in node.demands:
        mark_pending(node, queue.name)
    return True


def _is_held_back(node: NodeState, job: Job, cause: Cause) -> bool:
    """Does the job wait for the end of an earlier job with its key (decision 76)? Then
    `key_ordering` enqueues it; in case that node fails, this one tries again after a period.
    ENQUEUE ends the wait."""
    if not key_index.is_held_back(job):
        return False
    if cause is Cause.ENQUEUE:
        key_index.let_go(node, job)
        return False
    clear(node, job, DELAYED | RESTORED)
    key_index.await_end(node, job)
    if job.retry:
        restart_retry(node, job)
    else:
        requeue_in(node, job, _TRIED_EVERY)
    return True


def count_delivery(job: Job, *, nack: bool, redelivery: bool) -> None:
    """Count a NACK or an additional delivery; both wrap at 16 bits (original 4.1)."""
    if nack:
        job.nacks = (job.nacks + 1) & 0xFFFF
    if redelivery:
        job.deliveries = (job.deliveries + 1) & 0xFFFF


def mark_ready(node: NodeState, queue: Queue) -> None:
    """Have waiting clients served at the end of the input, unless output is paused."""
    if not queue.paused & PAUSE_OUT:
        node.ready[queue.name] = queue


def mark_pending(node: NodeState, name: bytes) -> None:
    """Have `federation.settle` handle the queue at the end of the batch: it may have jobs for
    clients of other nodes, or clients for jobs of other nodes."""
    node.pending_queues.setdefault(name, False)


def dequeue(node: NodeState, job: Job, cause: Cause) -> bool:
    """Remove the job from its queue. Its timers continue. Returns False if it is not queued."""
    if job.state != QUEUED or job.queue is None:
        return False
    job.state = ACTIVE
    counts.unqueue(node, job)
    node.queues[job.queue].discard(node.knobs.stale_entries)
    journaling.moved(node, job)
    trace.note(node, Kind.UNQUEUE, job, cause)
    return True


def fetch(node: NodeState, queue: Queue, cause: Cause) -> Job | None:
    """Remove the first job that has not expired from its queue, for a client or another node."""
    while (job := queue.pop()) is not None and job.expires <= node.mono:
        job.state = ACTIVE
        counts.unqueue(node, job)
        trace.note(node, Kind.UNQUEUE, job, Cause.DROPPED)
        unregister(node, job, Cause.EXPIRED)
    if job is None:
        return None
    job.state = ACTIVE
    counts.unqueue(node, job)
    trace.note(node, Kind.UNQUEUE, job, cause)
    if job.retry and node.is_recording_queues:
        journaling.moved(node, job)
    _hand_out(node, queue, job)
    return job


def fetch_within(node: NodeState, queue: Queue, job: Job, cause: Cause) -> None:
    """Remove a job that need not be the first from its queue, for another node. Its group has no
    turn."""
    dequeue(node, job, cause)
    _hand_out(node, queue, job)


def _hand_out(node: NodeState, queue: Queue, job: Job) -> None:
    """A client or another node receives the job. An at-most-once job has ended here."""
    job.flags |= DELIVERED
    if not job.retry:
        journaling.delivered(node, job)
        node.memory.evictable[job.id] = job
    queue.accessed = node.mono
    queue.jobs_out += 1


def end(node: NodeState, job: Job, cause: Cause) -> None:
    """Acknowledge the job, so it is not delivered again; `acks` collects it (original 6.5). The
    caller must already have ended its counts."""
    if job.state == QUEUED:
        dequeue(node, job, Cause.ACKED)
    counts.requeue(node, job)
    job.state = ACKED
    if (rows := node.endings.rows) is not None:
        rows.append((job, cause, node.acker, node.wall))
    tracked_deliveries.end(node, job)
    note_end(node, job, _ACKED)
    node.memory.evictable[job.id] = job
    if job.extensions is not None:
        key_index.end(node, job)
    if job.flags >= TRACED:
        trace.note(node, Kind.ACKED, job, cause)


def finish(node: NodeState, job: Job, cause: Cause, end: Cause = Cause.COLLECTED) -> None:
    """`end` and collect in one step, for a job without copies elsewhere, in about half the time."""
    if job.state == QUEUED:
        dequeue(node, job, Cause.ACKED)
    counts.requeue(node, job)
    job.state = ACKED
    if (rows := node.endings.rows) is not None:
        rows.append((job, cause, node.acker, node.wall))
    if job.extensions is not None:
        key_index.end(node, job)
    if job.flags >= TRACED:
        trace.note(node, Kind.ACKED, job, cause)
    # `schedule_collection` also draws a number; so both ways draw the same ones.
    node.rng.random()
    unregister(node, job, end)


def schedule_collection(node: NodeState, job: Job) -> None:
    """Schedule the next attempt to collect an acknowledged job, after a wait that grows with each
    attempt."""
    job.gc_at = next_collection(node, job.gc_attempt)
    schedule(node, job)


def next_collection(node: NodeState, attempt: int) -> Millis:
    """The time of the next attempt to collect an acknowledged job, after `attempt` attempts."""
    return node.mono + gc_wait(attempt) + desync(node)


def drop_queue_if_idle(node: NodeState, queue: Queue, limit: Millis = QUEUE_IDLE_LIMIT) -> bool:
    """Drop a queue that is empty, not paused, without clients, and unused for `limit` ms (original
    6.11). Returns whether it was dropped."""
    if len(queue) or queue.waiting or queue.paused:
        return False
    if node.mono - queue.accessed < limit:
        return False
    queue.sweep()
    _release_queue(node, queue)
    del node.queues[queue.name]
    return True


def drop_queues(node: NodeState) -> None:
    """Drop all queues. They must have neither jobs nor waiting clients."""
    for queue in node.queues.values():
        _release_queue(node, queue)
    node.queues.clear()
    node.ready.clear()
    node.pending_queues.clear()


def _release_queue(node: NodeState, queue: Queue) -> None:
    node.timers.disarm(queue)
    node.memory.held -= of_queue(queue)
