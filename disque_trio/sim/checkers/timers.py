"""Timers (L8): a job is queued when its time has come, and not later.

Each holder by itself: from what last restarted the period of its copy (the copy came, the job left
its queue, or another node announced that it has it queued or delivered) it queues the job within
RETRY, or announces why it waits anew. This holds whatever happens to links. All holders together,
in calm: a job is queued as soon as its ADDJOB succeeds or its DELAY is over, and again within RETRY
of its last delivery. The second check is needed because two holders that keep postponing each other
both keep to their own periods. Judged only if the trace has the options of records (`hold`).
"""

from typing import Final

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.obligations import DESYNC, MILLI, SECOND
from disque_trio.sim.checkers.records import FOREVER, NEVER, Copy, Job
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.tracing.rows import Row

SLACK: Final[Micros] = 20 * MILLI
"""For the end of a batch, and a late timer."""
ANNOUNCEMENTS: Final = ("queued", "working")
"""Messages after which a holder begins its period anew."""


def after_hold(case: Case, row: Row, job: Job) -> None:
    """A copy has come, and says itself when it will be queued. One that waits for its copies does
    not wait for its time yet."""
    copy = job.copies.get(row.node)
    if copy is not None and copy.due and row.cause != "add":
        _arm(case, copy, copy.due * MILLI)


def after_add_ok(case: Case, row: Row, job: Job) -> None:
    """L8: it was queued before its producer knew of it, unless it has a DELAY."""
    copy = job.copies.get(row.node)
    options = job.options
    if copy is None or options is None or copy.cause != "add" or not job.first_record:
        return
    if options.delay:
        if copy.last_queueing is None and copy.due_by == FOREVER and not copy.is_acked:
            _arm_after_add(case, job, copy, options.delay)
        return
    case.check("L8")
    if copy.queueing is None and copy.due_by == FOREVER and not copy.is_acked:
        # Another holder has queued it, or was about to, and this one keeps a period from now on.
        _arm_for_retry(case, job, copy)
    is_period_over = bool(options.retry) and (
        row.time - copy.since >= case.obligations.shortest(options.retry - DESYNC)
    )
    if job.first_queueing is None and not job.acks and not case.is_live and not is_period_over:
        case.violate("L8", "its producer has its id, and no node has queued it", job.id, row.node)


def _arm_after_add(case: Case, job: Job, copy: Copy, delay: Micros) -> None:
    """It waits for its DELAY, unless it was told of a queueing or a lease elsewhere."""
    has_received = any(
        receiver == copy.node and sort in ANNOUNCEMENTS and announcement.got_at >= copy.since
        for (_, receiver, sort), announcement in job.announcements.items()
    )
    if has_received:
        _arm_for_retry(case, job, copy)
    else:
        _arm(case, copy, max(delay - (case.now - copy.since), 0))


def before_queue(case: Case, row: Row, job: Job) -> None:
    """L8: not later than it had to."""
    copy = job.copies.get(row.node)
    if copy is not None:
        _judge(case, job, copy)
        copy.due_by = FOREVER
    if row.cause == "retry":
        _judge_all(case, job)


def after_unqueue(case: Case, row: Row, job: Job) -> None:
    """The job was served, given away or unqueued: a period begins."""
    copy = job.copies.get(row.node)
    job.unqueued_at = row.time
    if copy is not None and row.cause not in {"acked", "dropped"}:
        _arm_for_retry(case, job, copy)


def on_announcement(case: Case, row: Row) -> None:
    """Another node has the job queued, or knows who works on it."""
    job = case.jobs.get(row.job)
    copy = None if job is None else job.copies.get(row.node)
    if job is None or copy is None or copy.queueing is not None or copy.is_acked:
        return
    if copy.cause == "add" and (job.add is None or not job.add.outcome):
        # It waits for its copies, and not for its time.
        return
    _judge(case, job, copy)
    _arm_for_retry(case, job, copy)


def on_working(case: Case, row: Row, job: Job) -> None:
    """A client has got more time there."""
    copy = job.copies.get(row.node)
    if copy is not None and copy.queueing is None and not copy.is_acked:
        _arm_for_retry(case, job, copy)


def before_end(case: Case, row: Row, job: Job) -> None:
    """It is acknowledged there, or gone: should it have been queued before?"""
    copy = job.copies.get(row.node)
    if copy is not None:
        _judge(case, job, copy)
        copy.due_by = FOREVER


def _arm_for_retry(case: Case, job: Job, copy: Copy) -> None:
    retry = case.retry_of(job)
    if retry:
        _arm(case, copy, retry + DESYNC)
    else:
        copy.due_by = FOREVER


def _arm(case: Case, copy: Copy, wait: Micros) -> None:
    copy.armed_at = case.now
    copy.due_by = case.now + case.obligations.longest(wait) + SLACK


def _judge(case: Case, job: Job, copy: Copy) -> None:
    """L8: is the copy overdue, though nothing hindered its node?"""
    if copy.due_by == FOREVER or not job.first_record:
        return
    case.check("L8")
    late = case.now - copy.due_by
    if late <= 0 or _was_hindered(case, job, copy) or case.is_live:
        return
    detail = (
        f"it should have been queued there {late / SECOND:.3f} s ago, "
        f"{(copy.due_by - copy.armed_at) / SECOND:.3f} s after its period began"
    )
    case.violate("L8", detail, job.id, copy.node)


def _was_hindered(case: Case, job: Job, copy: Copy) -> bool:
    """Was the node stopped, or its queue paused? Then it tries again a period later."""
    world, since = case.world, copy.armed_at
    if world.is_stopped(copy.node, since, case.now) or world.was_mute(copy.node, since, case.now):
        return True
    place = (copy.node, job.queue)
    return place in world.paused_queues or case.unpaused.get(place, NEVER) >= since


def _judge_all(case: Case, job: Job) -> None:
    """L8: with nothing wrong, it is queued within RETRY of the last delivery, or of when it last
    left a queue."""
    retry = case.retry_of(job)
    since = max(job.expected_since, job.unqueued_at)
    if since == NEVER or not job.first_record or case.is_live:
        return
    if not case.world.is_calm(since, case.now):
        return
    if any(copy.queueing is not None for copy in job.copies.values()):
        return
    case.check("L8")
    waited = case.now - since
    bound = case.obligations.longest(retry + DESYNC) + 2 * case.obligations.latency + SLACK
    if waited > bound and not case.obligations.has_tail:
        detail = (
            f"queued {waited / SECOND:.3f} s after it was handed out, with nothing wrong; the "
            f"bound is {bound / SECOND:.3f} s"
        )
        case.violate("L8", detail, job.id)


def finish(case: Case) -> None:
    """L8: what should be queued by now."""
    for job in case.jobs.values():
        is_waiting = job.ended is None and bool(job.copies)
        for copy in job.copies.values():
            if not copy.is_offline and not copy.is_acked and case.world.is_up(copy.node):
                _judge(case, job, copy)
        if is_waiting and job.is_added and case.retry_of(job) and job.lease is not None:
            _judge_all(case, job)
