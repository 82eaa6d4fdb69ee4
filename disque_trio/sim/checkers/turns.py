"""Groups of a queue are served in turn (S37; docs/guarantees.md): of two groups with jobs of one
priority at a node, neither gets two deliveries before the other gets one. Jobs without a group form
one more group. So over any 100 deliveries neither gets more than twice as many as the other.

Each node follows this rule by itself, so it is judged under all faults.
"""

from collections import deque

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.copy_options import NO_GROUP, group_of, priority_of
from disque_trio.sim.checkers.records import NEVER, Copy, Job, Queueing, Turns
from disque_trio.sim.checkers.silence import is_unanswered_since_start, may_be_unlinked
from disque_trio.tracing.rows import Row


def after_queue(case: Case, row: Row, job: Job) -> None:
    """A job of a group is queued."""
    turns = _turns(case, row, job)
    copy = job.copies.get(row.node)
    if turns is not None and copy is not None and copy.queueing is not None:
        waiting = turns.waiting.setdefault(group_of(job), deque())
        waiting.append((turns.begin(), job.id, copy.queueing))


def on_leave(case: Case, row: Row, job: Job) -> None:
    """A job leaves the queue without delivery. If it had expired at its turn, its group has had the
    turn; if its timer fired before, it has not."""
    if row.cause == "dropped" and (turns := _turns(case, row, job)) is not None:
        turns.perhaps_served[group_of(job)] = turns.begin()


def on_crash(case: Case, row: Row) -> None:
    """The turns go with the memory of the process. A job that is queued again may go on with its
    stay in the queue, but not with its place."""
    for key in [key for key in case.turns if key[0] == row.node]:
        del case.turns[key]


def on_taken(case: Case, row: Row, job: Job) -> None:
    """S37: a job is delivered or moved. Has any other group waited since before the last turn of
    its group?"""
    turns = _turns(case, row, job)
    if turns is None:
        return
    group = group_of(job)
    if row.kind == "give" and group == NO_GROUP and _may_skip_groups(case, row):
        turns.perhaps_served[group] = turns.begin()
        return
    last = turns.served.get(group, 0)
    table = case.table(row.node)
    for other, waiting in turns.waiting.items():
        while waiting and _is_gone(table.get(waiting[0][1]), waiting[0][2]):
            waiting.popleft()
        if other == group or not waiting:
            continue
        case.check("S37")
        if max(waiting[0][0], turns.perhaps_served.get(other, 0)) < last:
            detail = f"its group was served before, and since then not that of {waiting[0][1]}"
            case.violate("S37", detail, job.id, row.node)
    turns.served[group] = turns.perhaps_served[group] = turns.begin()


def _may_skip_groups(case: Case, row: Row) -> bool:
    """May the receiver have a new link, on which it has not announced yet that it supports groups?
    Until then the sender skips jobs with groups, which takes no turn."""
    ponged = case.ponged.get((row.node, row.peer), NEVER)
    return (
        case.world.is_separated(row.node, row.peer, ponged, row.time)
        or may_be_unlinked(case, row.node, row.peer)
        or is_unanswered_since_start(case, row.node, row.peer)
    )


def _turns(case: Case, row: Row, job: Job) -> Turns | None:
    """Return the turns of the job's priority in this queue. Return None in a run without groups, or
    if groups have limits: a group without tokens gets no turn."""
    limited = case.limits.get(job.queue or row.queue)
    if not case.has_groups or (limited is not None and limited.of_group.is_set):
        return None
    return case.turns.setdefault((row.node, job.queue or row.queue, priority_of(job)), Turns())


def _is_gone(copy: Copy | None, queueing: Queueing) -> bool:
    return copy is None or copy.queueing is not queueing
