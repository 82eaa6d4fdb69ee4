"""How many jobs of each queue are here and not queued, and why; counted as they come and go; and
which are dead; and the totals of the node (`tally`).

The counts stand beside the queues, because a queue may be dropped, or not exist yet, while it has
such jobs. What a job counts as is said by its flags, so a plain job needs no field for it.

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
)
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.limit import Limit
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.refusals import REFUSALS
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.tally import LULL, SAMPLED, Streak

COUNTED: Final = DELAYED | DELIVERED_HERE | RESTORED
"""The flags that are counted, unless the job is acknowledged."""


def lease(node: NodeState, job: Job) -> None:
    """A worker gets the job."""
    name = job.queue or b""
    node.leased[name] = node.leased.get(name, 0) + 1
    if node.group_limits and (group := job.group) is not None:
        limit = node.group_limits.get((name, group))
        if limit is not None and limit.setting.concurrency:
            node.group_leases[job.id] = limit
            limit.leases += 1


def end_group_leases(node: NodeState, ids: Iterable[JobId]) -> None:
    """These are over, if they are leases of groups with limits."""
    for id in ids:
        limit = node.group_leases.pop(id, None)
        if limit is not None:
            limit.leases -= 1
            node.freed[limit.name, limit.group] = limit


def take_freed(node: NodeState) -> list[Limit]:
    """The groups of which leases have ended since the last call."""
    freed = list(node.freed.values())
    node.freed.clear()
    return freed


def delay(node: NodeState, job: Job) -> None:
    """The job waits here for the end of its delay."""
    name = job.queue or b""
    backlog = node.delayed.get(name)
    if backlog is None:
        backlog = node.delayed[name] = Backlog()
    node.due_seconds += backlog.add(job.requeue_at)


def restore(node: NodeState, job: Job) -> None:
    """The job has been read from the journal, and waits for the end of its RETRY."""
    name = job.queue or b""
    backlog = node.restored.get(name)
    if backlog is None:
        backlog = node.restored[name] = Backlog()
    node.due_seconds += backlog.add(job.requeue_at)


def unqueue(node: NodeState, job: Job) -> None:
    """The job is active from now on."""
    name = job.queue or b""
    node.unqueued[name] = node.unqueued.get(name, 0) + 1


def fetched(node: NodeState, name: bytes, number: int) -> None:
    """So many jobs have left the queue and are active."""
    node.unqueued[name] = node.unqueued.get(name, 0) + number


def requeue(node: NodeState, job: Job) -> None:
    """The job may have been active, and is not any more."""
    if job.state == ACTIVE:
        _less(node.unqueued, job.queue or b"", 1)


def hold(node: NodeState, job: Job) -> None:
    """The job is here, and may be dead."""
    if job.state == DEAD:
        node.dead.setdefault(job.queue or b"", {})[job.id] = job


def leave(node: NodeState, job: Job, flags: int) -> None:
    """The job is about to lose these flags, or to end."""
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
    """Clients have acknowledged so many jobs of the queue, and so many of them were leased."""
    if acks:
        # `acked` and `_less` are written out here: calls are half of what counting an ACKJOB costs.
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
    """It has become known that so many jobs are acknowledged."""
    if number:
        total = node.tally.acked
        total[cause] = total.get(cause, 0) + number


def gave(node: NodeState, queue: Queue, number: int) -> None:
    """So many jobs have gone to another node."""
    queue.transferred += number
    node.tally.transferred += number


def _was_last(node: NodeState, backlog: Backlog, job: Job) -> bool:
    """The job does not wait any more. Does none?"""
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
    """A client's job has its copies."""
    node.tally.added += 1


def copied(node: NodeState, job: Job) -> None:
    """The same of one whose client has waited for them."""
    myself = node.cluster.myself.id
    node.tally.added += 1
    node.tally.copies_confirmed += sum([id != myself for id in job.confirmed or ()])
    node.tally.copying.note(node.wall - job.made)


def queued(node: NodeState, cause: Cause) -> None:
    """A job enters its queue."""
    total = node.tally.queued
    total[cause] = total.get(cause, 0) + 1
    if cause is Cause.RETRY or cause is Cause.UNTIED:
        node.tally.again = _once_more(node, node.tally.again)


def _once_more(node: NodeState, streak: Streak | None) -> Streak:
    """It has happened again."""
    wall = node.wall
    if streak is None or not 0 <= wall - streak.last < LULL:
        streak = Streak(wall, node.tally.delivered)
    streak.note(wall)
    return streak


def delivered(node: NodeState, jobs: Sequence[Job], name: bytes = b"", leases: int = 0) -> None:
    """A client gets these, of which so many are leased and of the queue with this name."""
    tally = node.tally
    tally.delivered += len(jobs)
    if tally.delivered >= tally.next_wait:
        _note_waits(node, jobs)
    if leases:
        node.leased[name] = node.leased.get(name, 0) + leases


def _note_waits(node: NodeState, jobs: Sequence[Job]) -> None:
    tally = node.tally
    before = tally.delivered - len(jobs)
    while tally.next_wait <= tally.delivered:
        job = jobs[tally.next_wait - before - 1]
        tally.wait.note(node.wall - job.made - job.delay)
        tally.next_wait += SAMPLED


def nacked(node: NodeState, number: int) -> int:
    """Clients give back so many jobs. Returns the number."""
    node.tally.nacked += number
    return number


def postponed(node: NodeState) -> None:
    """A worker gets more time."""
    node.tally.postponed += 1


def dropped(node: NodeState, cause: Cause) -> None:
    """A record goes that was not collected."""
    total = node.tally.dropped
    total[cause] = total.get(cause, 0) + 1


def copy_taken(node: NodeState) -> None:
    """A job of another node is held here from now on."""
    node.tally.copies_taken += 1


OUT_OF_MEMORY: Final = b"OOM the process has not enough memory for this command"


def failure(node: NodeState, text: bytes, *, is_work: bool = True) -> Failure:
    """The error as a reply. Only a request that adds or changes something `is_work` that was
    refused: health checks and consoles, which look at a node that loads, are no trouble."""
    errors, code = node.tally.errors, text.split(b" ", 1)[0]
    errors[code] = errors.get(code, 0) + 1
    if is_work and code in REFUSALS:
        node.tally.refused[code] = _once_more(node, node.tally.refused.get(code))
    return Failure(text)


def refusal(node: NodeState, error: CommandError | MemoryError, *, is_whole: bool) -> Failure:
    """The same of a command that was not carried out. Out of memory, it may be half done, unless
    the state `is_whole`; then the error is raised again."""
    if isinstance(error, CommandError):
        return failure(node, error.text)
    if not is_whole:
        raise error
    return failure(node, OUT_OF_MEMORY)
