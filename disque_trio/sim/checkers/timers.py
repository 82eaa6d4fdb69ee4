"""Timers (L8): a job is queued when it is due, and not later.

The first check examines each holder separately, under all faults of links. A holder's period starts
when the copy arrives, when the job leaves its queue, and when another node announces that it has
the job queued or delivered. Within RETRY of that the holder queues the job, or its period restarts.

The second check examines all holders together, in calm: a job is queued as soon as its ADDJOB has
succeeded or its DELAY is over, and again within RETRY of its last delivery. It is needed because
two holders that keep postponing each other both keep to their own periods.

Both need a trace with the options of records (`hold`).
"""

from typing import Final

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.messages import POSTPONED
from disque_trio.sim.checkers.obligations import DESYNC, MILLI, SECOND
from disque_trio.sim.checkers.records import FOREVER, NEVER, Copy, Job
from disque_trio.sim.checkers.succession import follows
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.tracing.rows import Row

SLACK: Final[Micros] = 20 * MILLI
"""Tolerance for the end of a batch and for a late timer."""
ANNOUNCEMENTS: Final = ("queued", "working")
"""Messages after which a holder restarts its period."""


def after_hold(case: Case, row: Row, job: Job) -> None:
    """A copy arrives, and its row contains when it is due. While its ADDJOB waits for copies, its
    timer does not run. An announcement in the same batch may have arrived after the copy, and then
    restarts its period."""
    copy = job.copies.get(row.node)
    if copy is not None and copy.due and row.cause != "add":
        _arm(case, copy, copy.due * MILLI)
        if row.cause != "loaded" and _was_announced(job, copy.node, case.now):
            due_by = copy.due_by
            _arm_for_retry(case, job, copy)
            copy.due_by = max(copy.due_by, due_by)
        if row.cause == "loaded":
            # It may be the rest of a delay by a NACK, which continues.
            copy.waits_until = copy.due_by


def after_add_ok(case: Case, row: Row, job: Job) -> None:
    """L8: a job without DELAY is queued before its producer receives its id."""
    copy = job.copies.get(row.node)
    options = job.options
    if copy is None or options is None or copy.cause != "add" or not job.first_record:
        return
    if follows(job):
        return
    if options.delay:
        if (
            copy.last_queueing is None
            and copy.due_by == FOREVER
            and not (copy.is_acked or copy.state[1])
        ):
            _arm_after_add(case, job, copy, options.delay)
        return
    case.check("L8")
    if copy.queueing is None and copy.due_by == FOREVER and not (copy.is_acked or copy.state[1]):
        # Another holder has queued it, or was about to, and the period of this one starts now.
        _arm_for_retry(case, job, copy)
    is_period_over = bool(options.retry) and (
        row.time - copy.since >= case.obligations.shortest(options.retry - DESYNC)
    )
    if job.first_queueing is None and not job.acks and not case.is_live and not is_period_over:
        case.violate("L8", "its producer has its id, and no node has queued it", job.id, row.node)


def _arm_after_add(case: Case, job: Job, copy: Copy, delay: Micros) -> None:
    """The copy is due after its DELAY, or after RETRY if another holder has announced that it has
    the job queued or leased."""
    if _was_announced(job, copy.node, copy.since):
        _arm_for_retry(case, job, copy)
    else:
        _arm(case, copy, max(delay - (case.now - copy.since), 0))


def _was_announced(
    job: Job, node: str, since: Micros, sorts: tuple[str, ...] = ANNOUNCEMENTS
) -> bool:
    """Has the node learned since `since` that another one has queued or delivered the job? Or has
    it received one of these other `sorts` of messages?"""
    return any(
        receiver == node and sort in sorts and announcement.got_at >= since
        for (_, receiver, sort), announcement in job.announcements.items()
    )


def before_queue(case: Case, row: Row, job: Job) -> None:
    """L8: a job is queued no later than it is due."""
    copy = job.copies.get(row.node)
    if copy is not None:
        _judge(case, job, copy)
        copy.armed_at, copy.due_by, copy.waits_until = case.now, FOREVER, NEVER
    if row.cause == "retry":
        _judge_all(case, job)


def after_unqueue(case: Case, row: Row, job: Job) -> None:
    """The job was served, moved or dequeued: its period starts."""
    copy = job.copies.get(row.node)
    job.unqueued_at = row.time
    if copy is not None and row.cause not in {"acked", "dropped"}:
        begun = copy.armed_at
        _arm_for_retry(case, job, copy)
        if row.cause == "served" and not case.obligations.has_lease:
            _go_on(case, job, copy, begun)


def _go_on(case: Case, job: Job, copy: Copy, begun: Micros) -> None:
    """Without leases, a delivery does not restart the period that began in the queue."""
    period = case.retry_of(job) + DESYNC
    if copy.last_queueing is None or not period or case.now - begun >= period - 2 * DESYNC:
        return
    copy.armed_at = begun
    copy.due_by = begun + _latest(case, period)


def on_announcement(case: Case, row: Row) -> None:
    """Another node announces that it has the job queued, or that a worker has it."""
    job = case.jobs.get(row.job)
    if job is not None and _was_announced(job, row.node, row.time, (POSTPONED,)):
        job.restarted[row.node] = row.time
    copy = None if job is None else job.copies.get(row.node)
    if job is None or copy is None or copy.is_acked or copy.state[1]:
        return
    if copy.queueing is not None:
        copy.armed_at = case.now  # its period restarts although it stays in the queue
        return
    if copy.cause == "add" and (job.add is None or not job.add.outcome):
        # It waits for its copies: its timer does not run yet.
        return
    _judge(case, job, copy)
    _arm_for_retry(case, job, copy)


def on_working(case: Case, row: Row, job: Job) -> None:
    """A client has renewed its lease at this node, or the outcome is unknown. A job that died
    before the reply is not queued."""
    copy = job.copies.get(row.node)
    if copy is not None and copy.queueing is None and not (copy.is_acked or copy.state[1]):
        _arm_for_retry(case, job, copy)


def after_untie(case: Case, job: Job, node: str) -> None:
    """The connection of the worker has ended: the rest of the period is the grace."""
    copy = job.copies.get(node)
    if copy is not None:
        _arm(case, copy, case.obligations.grace)


def after_postpone(case: Case, job: Job, copy: Copy, wait: Micros) -> None:
    """A NACK delays the job by at most `wait`. An announcement that follows in the same batch
    restarts the period, and has a row before this one (everything, seed 3741)."""
    if copy.is_acked or copy.queueing is not None:
        return
    _arm(case, copy, wait)
    copy.waits_until = copy.due_by
    if job.restarted.get(copy.node) == case.now:
        _arm_for_retry(case, job, copy)


def before_end(case: Case, row: Row, job: Job) -> None:
    """L8: a copy that is acknowledged or dropped was not overdue."""
    copy = job.copies.get(row.node)
    if copy is not None:
        _judge(case, job, copy)
        copy.due_by = FOREVER


def after_state(case: Case, row: Row, job: Job) -> None:
    """The job is dead at this node, or has been redriven. A dead job is never due."""
    copy = job.copies.get(row.node)
    if copy is None or copy.queueing is not None:
        return
    _judge(case, job, copy)
    if row.kind == "dead":
        copy.due_by = FOREVER
    else:
        _arm_for_retry(case, job, copy)


def _arm_for_retry(case: Case, job: Job, copy: Copy) -> None:
    retry = case.retry_of(job)
    if retry:
        _arm(case, copy, retry + DESYNC)
        if copy.waits_until > case.now:
            # The delay may continue.
            copy.due_by = max(copy.due_by, copy.waits_until)
    else:
        copy.due_by = FOREVER


def _arm(case: Case, copy: Copy, wait: Micros) -> None:
    copy.armed_at = case.now
    copy.due_by = case.now + _latest(case, wait)


def _latest(case: Case, wait: Micros) -> Micros:
    """Return the longest time until a timer for this wait fires."""
    obligations = case.obligations
    return obligations.longest(wait) + SLACK + obligations.no_processor


def _judge(case: Case, job: Job, copy: Copy) -> None:
    """L8: a copy is not overdue, unless its node was hindered."""
    if copy.due_by == FOREVER or not job.first_record or follows(job):
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
    """Was the node stopped or silent, or its queue paused? Then it tries again a period later."""
    world, since = case.world, copy.armed_at
    if world.is_stopped(copy.node, since, case.now) or world.was_mute(copy.node, since, case.now):
        return True
    return world.queue_pauses.is_possible(copy.node, job.queue, since)


def _judge_all(case: Case, job: Job) -> None:
    """L8: in calm, a job is queued within RETRY of its last delivery, or of the time at which it
    last left a queue."""
    retry = case.retry_of(job)
    since = max(job.expected_since, job.unqueued_at)
    if since == NEVER or not job.first_record or case.is_live:
        return
    if not case.world.is_calm(since, case.now) or case.is_ttl_over(job):
        # A copy may live a second longer than the first one, whose node may have postponed it.
        return
    if any(copy.queueing is not None for copy in job.copies.values()):
        return
    case.check("L8")
    waited = case.now - since
    bound = _latest(case, retry + DESYNC) + 2 * case.obligations.latency
    if waited > bound and not case.obligations.has_tail:
        detail = (
            f"queued {waited / SECOND:.3f} s after it was handed out, with nothing wrong; the "
            f"bound is {bound / SECOND:.3f} s"
        )
        case.violate("L8", detail, job.id)


def finish(case: Case) -> None:
    """L8: at the end of the run no copy is overdue."""
    for job in case.jobs.values():
        is_waiting = job.ended is None and bool(job.copies) and not job.is_dead
        for copy in job.copies.values():
            if not copy.is_offline and not copy.is_acked and case.world.is_up(copy.node):
                _judge(case, job, copy)
        if is_waiting and job.is_added and case.retry_of(job) and job.lease is not None:
            _judge_all(case, job)
