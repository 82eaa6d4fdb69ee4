"""Dead jobs: kept, but not delivered until they are redriven (decision 71).

A job dies when a requeue would exceed its LIMIT, or by NACK DEAD. All its holders keep it, with the
reason, for `dead-letter-ttl`. The states of two holders are merged (`extensions.merged`): a redrive
supersedes an earlier death, and an acknowledgement supersedes both.

Owns `Job.expires` of a job that dies or is redriven, and writes its `state`, `requeue_at`, `nacks`
and `deliveries`, and `Memory.evictable`, as `lifecycle` does.
"""

from collections.abc import Sequence
from typing import Final

import attrs

from disque_trio.statemachine import (
    counts,
    joberrors,
    journaling,
    key_index,
    lifecycle,
    reasons,
    results,
    spilling,
    trace,
    tracked_deliveries,
)
from disque_trio.statemachine.base import (
    ACKED,
    ACTIVE,
    BCAST_QUEUED,
    DEAD,
    DELAYED,
    DELIVERED,
    POSTPONED,
    QUEUED,
    QUEUED_ONCE,
    TAKEN,
    WAIT_REPL,
    JobId,
    Millis,
)
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.copies import add_holder, is_over, send_state
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.extensions import (
    ALIVE,
    MAX_REDRIVES,
    NO_ERROR,
    DeadState,
    Extensions,
    LastError,
    merged,
)
from disque_trio.statemachine.holder_exchange import exchange_holders, learn
from disque_trio.statemachine.job import Job, may_be_queued, ttl_range
from disque_trio.statemachine.memory import put_extensions
from disque_trio.statemachine.messages import JobCopy, JobError, JobState
from disque_trio.statemachine.state import NodeState

OVER_LIMIT: Final = b"LIMIT %d: delivered %d times"
"""The reason of a job that was delivered as often as its LIMIT allows."""
_FORGOTTEN: Final = DELIVERED | QUEUED_ONCE | TAKEN | POSTPONED
"""Flags that a dead job loses, because it is enqueued like a new one."""


def queue_again(node: NodeState, job: Job, cause: Cause) -> bool:
    """Requeue a job, or bury it if that would exceed its LIMIT. Returns False, without change, if
    it may not be enqueued."""
    is_nack = cause is Cause.NACK
    is_again = bool(job.flags & BCAST_QUEUED) and cause not in lifecycle.NOT_COUNTED
    if not (is_nack or is_again) or not is_last_try(job) or not _may_be_tried(job):
        return lifecycle.enqueue(node, job, cause)
    lifecycle.count_delivery(job, nack=is_nack, redelivery=not is_nack)
    bury(node, job, OVER_LIMIT % (_limit(job), job.nacks + job.deliveries), cause)
    return True


def _may_be_tried(job: Job) -> bool:
    return may_be_queued(job) and not key_index.is_held_back(job)


def is_last_try(job: Job) -> bool:
    """Is this delivery the last that its LIMIT allows?"""
    return 0 < _limit(job) <= job.nacks + job.deliveries + 1


def _limit(job: Job) -> int:
    return 0 if job.extensions is None else job.extensions.limit


def nack(node: NodeState, job: Job, reason: bytes) -> bool:
    """Bury a job for NACK DEAD. Returns False if it waits for replicas, or is dead or acknowledged
    already."""
    if job.state not in (ACTIVE, QUEUED):
        return False
    lifecycle.count_delivery(job, nack=True, redelivery=False)
    bury(node, job, reason, Cause.NACK_DEAD)
    return True


def bury(node: NodeState, job: Job, reason: bytes, cause: Cause) -> None:
    """Mark the job as dead, here and at its other holders."""
    exchange_holders(node, job)
    after = DeadState(job.dead_state.epoch, True, reason, _life(node, job))
    _become(node, job, after, cause, node.config.dead_letter_ttl_s * 1000)
    journaling.hold(node, job)
    send_state(node, job, job.holders)


def _life(node: NodeState, job: Job) -> Millis:
    """The job's TTL, for a redrive: as kept if it was dead before; otherwise its age plus the rest.

    The age involves the clocks of this node and of the job's creator, so the result is limited to
    the range in the id, which is two minutes wide.
    """
    if job.dead_state.life:
        return job.dead_state.life
    left = job.expires - node.mono
    least, most = ttl_range(job.id)
    return max(min(node.wall - job.made + left, most), least, left)


def redrive_all(node: NodeState, ids: Sequence[JobId]) -> int:
    """Redrive these jobs. Returns how many are enqueued."""
    found = [job for job in map(node.jobs.get, ids) if job is not None]
    return sum([redrive(node, job) for job in found])


def redrive(node: NodeState, job: Job) -> bool:
    """Enqueue a dead job as if it were new. Returns False if it is not dead, or has reached
    MAX_REDRIVES."""
    before = job.dead_state
    if job.state != DEAD or before.epoch >= MAX_REDRIVES:
        return False
    after = DeadState(before.epoch + 1, life=before.life)
    exchange_holders(node, job)
    _become(node, job, after, Cause.REDRIVEN, before.life)
    send_state(node, job, job.holders)
    lifecycle.unmark(job, QUEUED_ONCE)
    lifecycle.requeue_in(node, job, 0)
    lifecycle.enqueue(node, job, Cause.REDRIVEN)
    journaling.renew(node, job)
    return True


def _become(node: NodeState, job: Job, after: DeadState, cause: Cause, left: Millis) -> None:
    """Set the job's dead state to `after`. It expires in `left` ms."""
    is_redriven = after.epoch > job.dead_state.epoch
    was_dead = job.state == DEAD
    _put(node, job, after)
    job.expires = node.timers.shared(node.mono + left)
    if is_redriven:
        job.nacks = job.deliveries = 0
        lifecycle.unmark(job, TAKEN)
    if after.is_dead and not was_dead:
        trace.trouble(node, job, job.state)
        _die(node, job)
    elif was_dead and not after.is_dead:
        counts.leave(node, job, 0)
        _wait(node, job)
    trace.state(node, job, cause)
    lifecycle.schedule(node, job)
    key_index.mark_dirty(node, job)


def _put(node: NodeState, job: Job, after: DeadState) -> None:
    """Store the dead state. A redrive resets the count of snoozes."""
    known = job.extensions or Extensions()
    snoozes = known.snoozes if after.epoch == known.dead.epoch else 0
    put_extensions(node.memory, job, attrs.evolve(known, dead=after, snoozes=snoozes))


def _die(node: NodeState, job: Job) -> None:
    lifecycle.dequeue(node, job, Cause.BURIED)
    reasons.clear(node, job, reasons.OF_PERIOD | DELAYED)
    lifecycle.unmark(job, _FORGOTTEN)
    tracked_deliveries.end(node, job)
    node.memory.evictable.pop(job.id, None)
    counts.requeue(node, job)
    job.state = DEAD
    job.requeue_at = 0
    counts.hold(node, job)
    spilling.offer(node, job)
    lifecycle.note_end(node, job, b"dead")


def _wait(node: NodeState, job: Job) -> None:
    """Make the job active, as if another holder had just enqueued it."""
    job.state = ACTIVE
    counts.unqueue(node, job)
    job.requeue_at = 0
    lifecycle.mark(job, BCAST_QUEUED | (0 if job.retry else QUEUED_ONCE))
    lifecycle.restart_retry(node, job)


# Messages of other holders.


def known(node: NodeState, sender: Peer, job_id: JobId) -> Job | None:
    """The job of a holder's message. If it has ended or is acknowledged here, the sender receives
    SETACK, and the result is None."""
    job = node.jobs.get(job_id)
    if job is None:
        is_over(node, sender, job_id)
        return None
    if job.state == ACKED:
        # Its collection now waits for the sender too.
        if not job.is_dummy:
            add_holder(job, sender.id)
        results.say_ack(node, (sender.id,), job.id, job.holders)
        return None
    if sender.id not in job.holders:
        learn(job, (sender.id,))
    return job


def on_jobstate(node: NodeState, sender: Peer, message: JobState) -> None:
    """Handle JOBSTATE: at the sender, the job is dead or has been redriven."""
    job = known(node, sender, message.id)
    if job is not None:
        _join(node, sender, job, message.state, message.left)


def on_copy(node: NodeState, sender: Peer, job: Job, copy: JobCopy) -> bool:
    """Merge the state of a received copy into a job that is here. Returns False if the job is dead
    here, or was redriven since the copy; then the sender receives JOBSTATE."""
    if job.extensions is None and copy.extensions is None:
        return True
    theirs = ALIVE if copy.extensions is None else copy.extensions.dead
    joberrors.learn(node, job, NO_ERROR if copy.extensions is None else copy.extensions.error)
    _join(node, sender, job, theirs, copy.etime * 1000)
    return job.state != DEAD and job.dead_state.epoch == theirs.epoch


def _join(node: NodeState, sender: Peer, job: Job, theirs: DeadState, left: Millis) -> None:
    mine = job.dead_state
    both = merged(mine, theirs)
    if both != theirs:
        send_state(node, job, (sender.id,))
    if both == mine:
        return
    if job.state == WAIT_REPL:
        # The job waits for replicas here, and another holder has enqueued it since. ADDJOB still
        # needs them.
        _put(node, job, both)
        job.expires = node.timers.shared(node.mono + left)
        trace.state(node, job, Cause.JOBSTATE)
        lifecycle.mark(job, BCAST_QUEUED)
        lifecycle.restart_retry(node, job)
        return
    _become(node, job, both, Cause.JOBSTATE, left)
    journaling.hold(node, job)


def on_joberror(node: NodeState, sender: Peer, message: JobError) -> None:
    """Handle JOBERROR: a worker has returned the job to another holder with an error."""
    job = known(node, sender, message.id)
    if job is not None and joberrors.learn(node, job, LastError(message.at, message.text)):
        journaling.renew(node, job)


def begin(node: NodeState, job: Job) -> None:
    """Begin a new job of this node that has its replicas; it may have died meanwhile."""
    if not job.dead_state.is_dead:
        lifecycle.begin(node, job)
        return
    _die(node, job)
    trace.state(node, job, Cause.JOBSTATE)
    lifecycle.schedule(node, job)
    journaling.hold(node, job)
