"""S21: after an orderly stop and a start, a node has its queues as before. The same holds after a
kill if its journal records queues (`aof-queues`).

A job that was queued when the process ended is queued again at once, unless another holder has it
queued or leased, or the node has received its death. So is a job about which the node was still
asking the other holders. Any other job, because a worker has it or its DELAY is not over, is not
queued before a whole RETRY. A kill by an operator, or a fault of the disk, is no orderly stop.
Changes just before a kill may be missing from the journal; no message has announced them, so both
outcomes are allowed.
"""

from typing import Final

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.messages import QUEUED, WORKING
from disque_trio.sim.checkers.obligations import DESYNC, SECOND
from disque_trio.sim.checkers.records import Copy, Job
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.tracing.rows import Row

REQUEUE_WITHIN: Final[Micros] = 2 * SECOND
"""One second until there are links, half a second to ask the other holders, and a margin."""


def on_crash(case: Case, row: Row) -> None:
    """A process ends: the jobs queued there must be queued again."""
    case.stopped.pop(row.node, None)
    case.unwritten.pop(row.node, None)
    returning = [job_id for node, job_id in case.due_again if node == row.node]
    for job_id in returning:
        del case.due_again[row.node, job_id]
    if (row.cause, row.detail) == ("stop", "queues"):
        case.mark("stop.in_order")
    elif not case.obligations.has_queues or row.cause == "power":
        return
    else:
        since = 0
        if _is_complete(case, row):
            case.mark("kill.queues_kept")
            since = row.time - case.obligations.write
        case.unwritten[row.node] = {
            job_id: None
            for job_id, copy in case.table(row.node).items()
            if not since
            or max(copy.unqueued_at, copy.last_queueing.time if copy.last_queueing else 0) >= since
        }
    table = case.table(row.node)
    stopped = case.stopped[row.node] = {
        job_id: None for job_id, copy in table.items() if copy.queueing
    }
    for job_id in returning:
        copy = table.get(job_id)
        if copy is not None and copy.interrupted is not None:
            case.mark("stop.while_asking")
            stopped[job_id] = None


def _is_complete(case: Case, row: Row) -> bool:
    """Does the journal of a killed node have all removals from its queues, except the most
    recent?"""
    world, since = case.world, row.time - case.obligations.write
    return (
        row.cause == "kill"
        and not world.was_disk_faulty(row.node, row.time)
        and not world.was_mute(row.node, since, row.time)
        and not world.is_stopped(row.node, since, row.time)
    )


def before_queue(case: Case, row: Row, job: Job) -> None:
    """S21: only jobs that were queued are queued again at once, and the others not before RETRY,
    unless an operator orders it."""
    case.due_again.pop((row.node, job.id), None)
    copy = job.copies.get(row.node)
    if copy is None or copy.cause != "loaded" or copy.last_queueing or case.is_live:
        return
    if job.id in case.unwritten.get(row.node, ()):
        return
    if row.cause == "loaded":
        case.check("S21")
        if job.id not in case.stopped.get(row.node, {}):
            detail = f"{row.node} queues it as it starts, and had not when it ended"
            case.violate("S21", detail, job.id, row.node)
    elif copy.was_handed_out and _is_by_time(row, job):
        # The rows of loaded jobs are written after the whole journal is loaded.
        started = case.world.started_at(row.node)
        if any(each >= started for each in case.enqueues.get((row.node, job.queue), ())):
            return
        case.check("S21")
        waited = row.time - started
        least = case.obligations.shortest(case.retry_of(job)) - DESYNC
        if waited < least:
            detail = (
                f"{row.node} queues it {waited / SECOND:.3f} s after its start; it was not queued "
                f"when it ended, and RETRY is {case.retry_of(job) // SECOND} s"
            )
            case.violate("S21", detail, job.id, row.node)


def _is_by_time(row: Row, job: Job) -> bool:
    """Does the node queue the job without a message or request? The end of a DELAY does not count
    if the job has none: then the journal had it queued before the start."""
    has_delay = job.options is None or job.options.delay > 0
    return row.cause == "retry" or (row.cause == "delay-over" and not has_delay)


def on_loaded(case: Case, row: Row) -> None:
    """The node has loaded its journal: jobs that were queued and are not queued yet are due."""
    queued = case.stopped.pop(row.node, None)
    unwritten = case.unwritten.pop(row.node, {})
    if queued is None or row.cause != "kept" or case.world.was_disk_faulty(row.node, row.time):
        return
    for job_id, copy in case.table(row.node).items():
        job = case.jobs[job_id]
        if job_id in unwritten:
            continue
        if job_id in queued:
            case.check("S21")
            if not copy.queueing and not copy.is_acked:
                case.due_again[row.node, job_id] = row.time
        elif copy.interrupted is None:
            # Otherwise, the node ended again before it had asked the other holders.
            copy.was_handed_out = job.serves > 0


def judge_overdue(case: Case) -> None:
    """S21: report jobs that should have been queued again by now."""
    allowed = case.obligations.longest(REQUEUE_WITHIN) + 2 * case.obligations.latency
    for (node, job_id), since in list(case.due_again.items()):
        if case.now - since <= allowed:
            return
        del case.due_again[node, job_id]
        job = case.jobs.get(job_id)
        copy = None if job is None else job.copies.get(node)
        if job is None or copy is None or copy.is_acked or copy.state[1] or case.is_live:
            continue
        if not _is_taken(job, copy, since) and not _was_hindered(case, job, node, since):
            detail = (
                f"it was queued when {node} ended, and is not "
                f"{(case.now - since) / SECOND:.3f} s after the start"
            )
            case.violate("S21", detail, job_id, node)


def _is_taken(job: Job, copy: Copy, since: Micros) -> bool:
    """Does another holder have the job queued or leased, or has it announced that?"""
    if job.ended is not None or any(other.queueing for other in job.copies.values()):
        return True
    if job.lease is not None and (job.lease.node != copy.node or job.lease.time >= since):
        return True
    return any(
        receiver == copy.node and sort in {QUEUED, WORKING} and announcement.got_at >= since
        for (_, receiver, sort), announcement in job.announcements.items()
    )


def _was_hindered(case: Case, job: Job, node: str, since: Micros) -> bool:
    world = case.world
    if world.is_stopped(node, since, case.now) or world.was_mute(node, since, case.now):
        return True
    options = job.options
    lasts = options is None or case.now < (job.created_at or 0) + case.obligations.shortest(
        options.ttl
    )
    return world.queue_pauses.is_possible(node, job.queue, since) or not lasts
