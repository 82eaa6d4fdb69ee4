"""Counts of the jobs of each queue that are here and not queued, by reason; the dead jobs; and the
totals of the node (`tally`).

The counts are not fields of `Queue`, because a queue may not exist while it has such jobs. A job's
flags determine how it is counted, so a job needs no field for it.

Owns `NodeState.delayed`, `leased`, `restored`, `due_seconds`, `unqueued`, `dead`, `group_leases`
and `freed`, `Limit.leases`, `Queue.acks` and `transferred`, and `Tally`.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from disque_trio.statemachine.backlog import Backlog
from disque_trio.statemachine.base import (
    ACTIVE,
    DEAD,
    DELAYED,
    DELIVERED_HERE,
    RESTORED,
    CommandError,
    Failure,
    JobId,
    Millis,
)
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.limit import Limit
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.refusals import REFUSALS
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.tally import LULL, SAMPLED, Streak

COUNTED: Final = DELAYED | DELIVERED_HERE | RESTORED
"""Flags by which a job is counted until it is acknowledged."""


def lease(node: NodeState, job: Job) -> None:
    """Count the lease of a job that is delivered."""
    name = job.queue or b""
    node.leased[name] = node.leased.get(name, 0) + 1
    if node.group_limits and (group := job.group) is not None:
        limit = node.group_limits.get((name, group))
        if limit is not None and limit.setting.concurrency:
            node.group_leases[job.id] = limit
            limit.leases += 1


def end_group_leases(node: NodeState, ids: Iterable[JobId]) -> None:
    """End the leases of these jobs that count towards the limits of groups."""
    for id in ids:
        limit = node.group_leases.pop(id, None)
        if limit is not None:
            limit.leases -= 1
            node.freed[limit.name, limit.group] = limit


def take_freed(node: NodeState) -> list[Limit]:
    """The groups that have had a lease end since the last call."""
    freed = list(node.freed.values())
    node.freed.clear()
    return freed


def delay(node: NodeState, job: Job) -> None:
    """Count a job that waits here for the end of its delay."""
    name = job.queue or b""
    backlog = node.delayed.get(name)
    if backlog is None:
        backlog = node.delayed[name] = Backlog()
    node.due_seconds += backlog.add(job.requeue_at)


def restore(node: NodeState, job: Job) -> None:
    """Count a job that was read from the journal and waits for the end of its RETRY."""
    name = job.queue or b""
    backlog = node.restored.get(name)
    if backlog is None:
        backlog = node.restored[name] = Backlog()
    node.due_seconds += backlog.add(job.requeue_at)


def unqueue(node: NodeState, job: Job) -> None:
    """Count a job that becomes active."""
    name = job.queue or b""
    node.unqueued[name] = node.unqueued.get(name, 0) + 1


def fetched(node: NodeState, name: bytes, number: int) -> None:
    """Count `number` jobs that have left the queue and are active."""
    node.unqueued[name] = node.unqueued.get(name, 0) + number


def requeue(node: NodeState, job: Job) -> None:
    """End the count of an active job; no effect for other states."""
    if job.state == ACTIVE:
        _less(node.unqueued, job.queue or b"", 1)


def hold(node: NodeState, job: Job) -> None:
    """Add the job to the dead ones, if it is dead."""
    if job.state == DEAD:
        node.dead.setdefault(job.queue or b"", {})[job.id] = job


def leave(node: NodeState, job: Job, flags: int) -> None:
    """End the counts of a job that is about to lose `flags`, or to end."""
    name = job.queue or b""
    if flags & DELIVERED_HERE:
        _less(node.leased, name, 1)
        if node.group_leases:
            end_group_leases(node, (job.id,))
    if flags & DELAYED and _was_last(node, node.delayed[name], job):
        del node.delayed[name]
    if flags & RESTORED and _was_last(node, node.restored[name], job):
        del node.restored[name]
    if job.state == DEAD:
        dead = node.dead[name]
        del dead[job.id]
        if not dead:
            del node.dead[name]


def acknowledged(
    node: NodeState, name: bytes, acks: int, leases: int = 0, cause: Cause = Cause.ACKJOB
) -> None:
    """Count `acks` acknowledgements of jobs of the queue, and end `leases` leases."""
    if acks:
        # `acked` and `_less` are inlined: calls are half of the cost of counting an ACKJOB.
        total = node.tally.acked
        total[cause] = total.get(cause, 0) + acks
    if (queue := node.queues.get(name)) is not None:
        queue.acks += acks
    if leases:
        leased = node.leased
        if left := leased[name] - leases:
            leased[name] = left
        else:
            del leased[name]


def acked(node: NodeState, cause: Cause, number: int) -> None:
    """Count `number` jobs as acknowledged."""
    if number:
        total = node.tally.acked
        total[cause] = total.get(cause, 0) + number


def gave(node: NodeState, queue: Queue, number: int) -> None:
    """Count `number` jobs that were sent to another node."""
    queue.transferred += number
    node.tally.transferred += number


def _was_last(node: NodeState, backlog: Backlog, job: Job) -> bool:
    """Remove the job from the backlog. Returns whether the backlog is empty."""
    node.due_seconds -= backlog.remove(job.requeue_at)
    return not backlog.number


def _less(counts: dict[bytes, int], name: bytes, number: int) -> None:
    left = counts[name] - number
    if left:
        counts[name] = left
    else:
        del counts[name]


# Totals.


def added(node: NodeState) -> None:
    """Count a job that a client has added."""
    node.tally.added += 1


def copied(node: NodeState, job: Job) -> None:
    """Count a job that a client has added, with its copies and the time that they took."""
    myself = node.cluster.myself.id
    node.tally.added += 1
    node.tally.copies_confirmed += sum([id != myself for id in job.confirmed or ()])
    node.tally.copying.note(node.wall - job.made)


def queued(node: NodeState, cause: Cause) -> None:
    """Count a job that enters its queue."""
    total = node.tally.queued
    total[cause] = total.get(cause, 0) + 1
    if cause is Cause.RETRY or cause is Cause.UNTIED:
        node.tally.again = _once_more(node, node.tally.again)


def _once_more(node: NodeState, streak: Streak | None) -> Streak:
    """The streak with one more event at this time; a new one after a lull."""
    wall = node.wall
    if streak is None or not 0 <= wall - streak.last < LULL:
        streak = Streak(wall, node.tally.delivered)
    streak.note(wall)
    return streak


def delivered(node: NodeState, jobs: Sequence[Job], name: bytes = b"", leases: int = 0) -> None:
    """Count jobs that are delivered; `leases` of them are new leases of the queue `name`."""
    tally = node.tally
    tally.delivered += len(jobs)
    if tally.delivered >= tally.next_wait:
        _note_waits(node, jobs)
    if leases:
        node.leased[name] = node.leased.get(name, 0) + leases


def due_since(node: NodeState, job: Job) -> Millis:
    """When the job was first due, in Unix milliseconds: added, and its DELAY over, or redriven."""
    if life := job.dead_state.life:
        return node.wall - max(life - (job.expires - node.mono), 0)
    return job.made + job.delay


def waited(node: NodeState, job: Job) -> Millis:
    """The time since then; inexact if the clocks of the two nodes differ."""
    return max(node.wall - due_since(node, job), 0)


def _note_waits(node: NodeState, jobs: Sequence[Job]) -> None:
    tally = node.tally
    before = tally.delivered - len(jobs)
    while tally.next_wait <= tally.delivered:
        job = jobs[tally.next_wait - before - 1]
        # Extensions are rare, and a call costs as much as the rest.
        is_plain = job.extensions is None
        tally.wait.note(node.wall - job.made - job.delay if is_plain else waited(node, job))
        tally.next_wait += SAMPLED


def nacked(node: NodeState, number: int) -> int:
    """Count `number` NACKs. Returns the number."""
    node.tally.nacked += number
    return number


def postponed(node: NodeState) -> None:
    """Count a WORKING."""
    node.tally.postponed += 1


def dropped(node: NodeState, cause: Cause) -> None:
    """Count a job that is dropped without collection."""
    total = node.tally.dropped
    total[cause] = total.get(cause, 0) + 1


def copy_taken(node: NodeState) -> None:
    """Count a copy of a job of another node."""
    node.tally.copies_taken += 1


OUT_OF_MEMORY: Final = b"OOM the process has not enough memory for this command"


def failure(node: NodeState, text: bytes, *, is_work: bool = True) -> Failure:
    """The error as a reply, counted. `is_work` is true for requests that add or change something;
    only these count as refused, not those of health checks and consoles."""
    errors, code = node.tally.errors, text.split(b" ", 1)[0]
    errors[code] = errors.get(code, 0) + 1
    if is_work and code in REFUSALS:
        node.tally.refused[code] = _once_more(node, node.tally.refused.get(code))
    return Failure(text)


def refusal(node: NodeState, error: CommandError | MemoryError, *, is_whole: bool) -> Failure:
    """The error of a failed command as a reply, counted. A MemoryError is raised again unless
    `is_whole`, because the command may be half done."""
    if isinstance(error, CommandError):
        return failure(node, error.text)
    if not is_whole:
        raise error
    return failure(node, OUT_OF_MEMORY)
