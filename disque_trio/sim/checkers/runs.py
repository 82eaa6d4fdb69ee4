"""What workers that run the engine of the worker library do with their jobs (W1 to W12;
docs/guarantees.md).

The engine counts a lease from the serve, or from its own WORKING, by its own clock. So these checks
need only the rows of clients, and hold under all faults of nodes and links unless stated otherwise.
Jobs with RETRY 0 have no lease.
"""

from typing import Final

from disque_trio.sim.checkers import queue_order, trials
from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.obligations import DESYNC, MILLI, SECOND
from disque_trio.sim.checkers.records import FOREVER, NEVER, Job, Lease
from disque_trio.sim.checkers.run_records import Delivery, Process
from disque_trio.sim.scenarios.plan import Consumer, Micros
from disque_trio.sim.workload.engine_workers import ABORT, DRAIN
from disque_trio.tracing.details import number
from disque_trio.tracing.rows import Row
from disque_trio.worker.engine.connecting import LONGEST_REST

MARGIN: Final[Micros] = 300 * MILLI
"""No job begins with less than this left of its RETRY."""
PROMPT: Final[Micros] = SECOND
"""How late a worker may be if nothing is wrong."""
_GONE: Final = ("released", "lease_over", "lost", "acked", "dead", "refused", "unknown", "shutdown")
"""Causes of a drop after which the worker no longer has the job in hand."""


def _process_of(case: Case, row: Row) -> Process | None:
    """Return the worker, if it runs an engine."""
    return case.processes.get(row.client)


def _retry(case: Case, job: Job) -> Micros:
    return case.retry_of(job) if job.is_at_least_once else 0


# Processes.


def on_start(case: Case, row: Row) -> None:
    """A process starts."""
    process = _process_of(case, row)
    if process is not None:
        process.started_at = process.free_since = row.time
        process.is_up, process.stop_at = True, FOREVER
        process.stalled_at, process.is_stalled = NEVER, False


def on_stop(case: Case, row: Row) -> None:
    """A process is ordered to stop."""
    process = _process_of(case, row)
    if process is not None:
        case.mark("worker.stopped")
        process.stop_at = row.time


def on_stall(case: Case, row: Row) -> None:
    """A process is stalled or resumes."""
    process = _process_of(case, row)
    if process is not None:
        case.mark("worker.stalled")
        process.is_stalled, process.stalled_at = row.kind == "worker.stall", row.time


def on_stopped(case: Case, row: Row) -> None:
    """W8: a worker stops in time. W10: it has reported an outcome for every job that it held."""
    process = _process_of(case, row)
    if process is None:
        return
    if process.stalled_at < process.stop_at:
        case.check("W8")
        took = row.time - process.stop_at
        if took > DRAIN + ABORT + SECOND:
            case.violate("W8", f"{row.client} has taken {took / SECOND:.3f} s to stop")
    for job_id, delivery in process.deliveries.items():
        case.check("W10")
        if delivery.is_held:
            case.violate("W10", f"{row.client} has stopped and held it, without a word", job_id)
    _end(process)


def on_kill(case: Case, row: Row) -> None:
    """A process is killed: its jobs are delivered to other workers (W6)."""
    process = _process_of(case, row)
    if process is None:
        return
    case.mark("worker.killed")
    for job_id, delivery in process.deliveries.items() if not case.plan.faults else ():
        job = case.job(job_id)
        if not (delivery.is_held or job_id in process.runs):
            continue  # a node may have its outcome
        if job.lease is not None and job.lease.client != row.client:
            continue  # another worker has received it since
        retry = _retry(case, job)
        if retry and job.ended is None:
            bound = case.obligations.longest(retry + DESYNC) + PROMPT
            case.orphans[job_id] = row.time + bound
    _end(process)


def _end(process: Process) -> None:
    process.is_up = False
    process.deliveries.clear()
    process.runs.clear()


# Deliveries.


def on_deliver(case: Case, row: Row, serve: Lease) -> None:
    """W5: a worker has no more jobs in hand than it may run and hold."""
    process = _process_of(case, row)
    if process is None:
        return
    # The worker cannot detect how long a reply waited for a faulty disk, or at a stopped node.
    world = case.world
    has_waited = world.was_disk_faulty(row.node, row.time)
    has_waited = has_waited or world.is_stopped(row.node, serve.time, row.time)
    base = row.time if has_waited else serve.time
    known = process.deliveries.get(row.job)
    if known is not None and (known.is_held or row.job in process.runs):
        known.base, known.asked_at, known.is_lost = base, row.time, False
        known.additional = number(row.detail, "additional")
        return
    process.deliveries[row.job] = delivery = Delivery(base, row.time, row.time, row.node)
    delivery.outcome = "" if known is None else known.outcome
    delivery.additional = number(row.detail, "additional")
    delivery.is_once = not case.job(row.job).is_at_least_once
    case.check("W5")
    held = sum(delivery.is_held for delivery in process.deliveries.values()) + len(process.runs)
    if held > process.plan.count + process.plan.prefetch * len(process.plan.queues):
        case.violate("W5", f"{row.client} has {held} jobs in hand", row.job)


def on_drop(case: Case, row: Row, _job: Job) -> None:
    """A delivery ends without a run, or no node has recorded the outcome of a run."""
    process = _process_of(case, row)
    delivery = None if process is None else process.deliveries.get(row.job)
    if process is None or delivery is None:
        return
    if row.cause == "twice":
        case.mark("worker.twice")
        if delivery.outcome:  # the run has ended, and no node has confirmed that yet
            delivery.is_held = False
    elif row.cause == "done_before":
        case.mark("worker.done_before")
        delivery.is_held, delivery.outcome = False, "done"
    elif row.cause in _GONE:
        trials.over(process, delivery, row.time)
        delivery.is_held = False
        delivery.is_leaving = row.cause == "released"
        if row.cause != "released":
            delivery.is_lost = True


# Runs.


def on_begin(case: Case, row: Row, job: Job) -> None:
    """W3: enough of the lease is left. W9: no other worker runs the job."""
    process = _process_of(case, row)
    if process is None:
        return
    _judge_overlap(case, row, process)
    delivery = process.deliveries.get(row.job)
    if delivery is None:
        case.violate("W3", f"{row.client} begins it and was not given it", row.job)
        delivery = process.deliveries[row.job] = Delivery(row.time, row.time, row.time, row.node)
    _judge_wait(case, row, job, process.plan, delivery)
    trials.before_begin(case, row, process, delivery)
    queue_order.before_begin(case, row, process)
    delivery.is_held, delivery.outcome, delivery.began_at = False, "", row.time
    process.runs[row.job] = False
    process.free_since = FOREVER if len(process.runs) >= process.plan.count else process.free_since
    retry = _retry(case, job)
    if retry:
        case.check("W3")
        left = delivery.base + retry - row.time
        if left < MARGIN:
            detail = f"{row.client} begins it with {left / SECOND:.3f} s of its lease left"
            case.violate("W3", detail, row.job)


def _judge_wait(case: Case, row: Row, job: Job, plan: Consumer, delivery: Delivery) -> None:
    """W5: a worker with a `prefetch_window` holds no job for long."""
    waited, retry = row.time - delivery.came_at, _retry(case, job)
    if not (plan.prefetch_window and delivery.is_held and retry) or case.plan.faults:
        return
    case.check("W5")
    if waited > plan.prefetch_window // 2:
        case.mark("worker.held")
    if waited > retry // 3:
        case.violate("W5", f"{row.client} has held it for {waited / SECOND:.3f} s", row.job)


def _judge_overlap(case: Case, row: Row, process: Process) -> None:
    case.check("W9")
    if row.job in process.runs:
        case.violate("W9", f"{row.client} runs it already", row.job)
    if case.plan.faults or case.obligations.has_tail or process.stalled_at != NEVER:
        return  # two nodes may have queued it at once (D5)
    for name, other in case.processes.items():
        is_calm = other.is_up and other.stalled_at == NEVER and other.plan.meta
        if other is not process and is_calm and other.runs.get(row.job) is False:
            case.violate("W9", f"{row.client} begins it and {name} runs it", row.job)


def on_cancel(case: Case, row: Row, job: Job) -> None:
    """A handler is cancelled."""
    process = _process_of(case, row)
    if process is None or row.job not in process.runs:
        return
    process.runs[row.job] = True
    case.mark("worker.cancelled")
    if row.cause == "lease_over":
        _judge_keeping(case, row, process, job)
    if row.cause not in ("too_long", "shutdown"):
        process.deliveries[row.job].is_lost = True


def on_end(case: Case, row: Row, job: Job) -> None:
    """A handler ends."""
    process = _process_of(case, row)
    if process is None or process.runs.pop(row.job, None) is None:
        return
    if process.free_since == FOREVER:
        process.free_since = row.time
    _judge_keeping(case, row, process, job)
    process.deliveries[row.job].outcome = row.cause
    trials.over(process, process.deliveries[row.job], row.time)


# Leases.


def on_working(case: Case, row: Row, job: Job) -> None:
    """W4: a worker asks for a renewal in time."""
    process = _process_of(case, row)
    delivery = None if process is None else process.deliveries.get(row.job)
    if process is not None and delivery is not None:
        _judge_keeping(case, row, process, job)
        delivery.asked_at = row.time
        delivery.asks[row.ref] = row.time


def on_working_end(case: Case, row: Row, _job: Job) -> None:
    """A worker learns the outcome of a renewal."""
    process = _process_of(case, row)
    delivery = None if process is None else process.deliveries.get(row.job)
    if delivery is None:
        return
    since = delivery.asks.pop(row.ref, None)
    if row.kind == "working.ok" and since is not None and not delivery.is_lost:
        delivery.base = max(delivery.base, since)
    elif row.kind == "working.refused" and since and row.cause not in {"NOJOB", "MISCONF"}:
        delivery.is_lost = True  # without `since`, the WORKING was for an earlier delivery


def _judge_keeping(case: Case, row: Row, process: Process, job: Job) -> None:
    """W4: while a worker has a job, it asks for a renewal after half of RETRY at the latest,
    whatever else it does, if it can reach all nodes."""
    delivery = process.deliveries[row.job]
    retry = _retry(case, job)
    since = max(delivery.base, delivery.asked_at)
    was_stalled = process.is_stalled or process.stalled_at >= since
    if not retry or delivery.is_lost or was_stalled or _was_node_hindered(case, delivery.base):
        return
    case.check("W4")
    waited = row.time - since
    if waited > retry // 2 + PROMPT // 2:
        detail = f"{row.client} has asked for no more time for {waited / SECOND:.3f} s"
        case.violate("W4", detail, row.job)


def _was_node_hindered(case: Case, since: Micros) -> bool:
    world, since = case.world, since - LONGEST_REST
    return any(
        world.was_out(node, since, case.now) or world.is_stopped(node, since, case.now)
        for node in world.nodes
    )


# Outcomes.


def on_added(case: Case, row: Row, _job: Job) -> None:
    """A worker has added a job, maybe a copy of a dead one that its node does not keep."""
    if (process := _process_of(case, row)) is not None:
        process.moved[row.queue] = process.moved.get(row.queue, 0) + 1


def on_ack(case: Case, row: Row, job: Job) -> None:
    """W1: an acknowledged job is done, or dead and moved to a queue of dead jobs. A job with RETRY
    0 is acknowledged after any outcome."""
    process = _process_of(case, row)
    if process is None:
        return
    case.check("W1")
    delivery = process.deliveries.get(row.job)
    outcome = "" if delivery is None else delivery.outcome
    if delivery is not None and outcome == "dead" and process.moved.get(f"dead.{job.queue}"):
        process.moved[f"dead.{job.queue}"] -= 1
        delivery.outcome = outcome = "done"
    if outcome != "done" and (job.is_at_least_once or not outcome):
        case.violate("W1", f"{row.client} acknowledges it and has not done it", row.job)


def on_give_back(case: Case, row: Row, job: Job) -> None:
    """W2: NACK, RELEASE and ENQUEUE are sent only while the lease lasts."""
    process = _process_of(case, row)
    delivery = None if process is None else process.deliveries.get(row.job)
    retry = _retry(case, job)
    if delivery is None or not retry:
        return
    case.check("W2")
    late = row.time - delivery.base - retry
    if late > 0:
        detail = f"{row.client} gives it back {late / SECOND:.3f} s after the end of its lease"
        case.violate("W2", detail, row.job)


def on_given_back(case: Case, row: Row, _job: Job) -> None:
    """A node has replied to a NACK, RELEASE or ENQUEUE, or its outcome is unknown."""
    process = _process_of(case, row)
    delivery = None if process is None else process.deliveries.get(row.job)
    if delivery is not None:
        delivery.is_leaving = False


# Jobs that wait for a worker.


def on_queue(case: Case, row: Row, job: Job) -> None:
    """A job is queued: a worker that could run it must begin it soon (W7)."""
    if case.processes:
        _judge_orphan(case, job)
        judge_silence(case)
        case.unbegun.append((row.time, row.node, job))


def on_leave(case: Case, _row: Row, job: Job) -> None:
    """A job has ended, or is dead."""
    case.orphans.pop(job.id, None)


def _judge_orphan(case: Case, job: Job) -> None:
    """W6: the jobs of a killed worker are queued again when their leases end."""
    until = case.orphans.pop(job.id, None)
    if until is not None and job.ended is None:
        case.check("W6")
        if case.now > until:
            detail = f"queued {(case.now - until) / SECOND:.3f} s too late after a worker's end"
            case.violate("W6", detail, job.id)


def judge_silence(case: Case) -> None:
    """W7: in calm, no queued job waits while a worker has a free slot."""
    obligations = case.obligations
    bound = 2 * PROMPT + 4 * obligations.latency
    while case.unbegun and case.unbegun[0][0] + bound <= case.now:
        since, node, job = case.unbegun.popleft()
        copy = job.copies.get(node)
        stay = None if copy is None else copy.queueing
        if stay is None or stay.time != since or not _is_quiet(case, since):
            continue
        if job.queue in case.limits:
            continue
        case.check("W7")
        for name, process in case.processes.items():
            if _is_free(process, job.queue, since):
                detail = f"{name} has had a free slot for {bound / SECOND:.3f} s, and waits"
                case.violate("W7", detail, job.id, node)


def _is_quiet(case: Case, since: Micros) -> bool:
    """Is the cluster in calm, and was it for the longest time for which a worker avoids a node?"""
    has_pauses = any(fault.kind == "pause-queue" for fault in case.plan.faults)
    return (
        not has_pauses
        and not case.obligations.has_tail
        and case.world.is_calm(since - 2 * LONGEST_REST, case.now)
    )


def _is_free(process: Process, queue: str, since: Micros) -> bool:
    return (
        process.is_up
        and not process.is_stalled
        and not trials.occupies(process)
        and queue in process.plan.queues
        and process.stop_at == FOREVER
        and max(process.started_at, process.free_since, process.stalled_at, process.trial_over_at)
        < since
    )


def finish(case: Case) -> None:
    """At the end of the run: W6 for jobs not requeued, and W10 for jobs still held."""
    for job_id in list(case.orphans):
        _judge_orphan(case, case.job(job_id))
    for name, process in case.processes.items():
        for job_id, delivery in process.deliveries.items() if process.is_up else ():
            retry = _retry(case, case.job(job_id))
            if delivery.is_held and retry and case.now > delivery.base + retry + PROMPT:
                case.violate("W10", f"{name} holds it beyond its lease, without a word", job_id)
