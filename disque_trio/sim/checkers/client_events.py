"""Records of jobs: the requests and replies of clients (see `history`)."""

from disque_trio.sim.checkers import copy_options
from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.history import ASKED, record_ack
from disque_trio.sim.checkers.obligations import read_options
from disque_trio.sim.checkers.records import Ack, Add, Job, Lease
from disque_trio.tracing.details import body
from disque_trio.tracing.rows import Row


def on_add_invoke(case: Case, row: Row) -> None:
    """Record an ADDJOB."""
    ours = case.obligations
    options = read_options(
        row.detail, ours.nodes, replicate=ours.default_replicate, sync=ours.default_sync
    )
    add = Add(row.ref, row.client, row.node, row.queue, row.time, options)
    add.was_leaving = row.node in case.world.leaving
    if any((each.client, each.node) == (add.client, add.node) for each in case.adds.values()):
        case.behind[row.client, row.ref] = None
    case.adds[row.client, row.ref] = add
    if options.body is not None:
        key = (row.queue, options.body)
        case.unclaimed.setdefault(key, []).append(add)
        case.adds_of_body[key] = case.adds_of_body.get(key, 0) + 1
    if options.is_async:
        case.mark("async.added")
    if not options.retry:
        case.mark("at_most_once.added")


def on_add_ok(case: Case, row: Row, job: Job) -> None:
    """Record the success of an ADDJOB."""
    add = case.adds.pop((row.client, row.ref), None)
    if add is None:
        return
    add.outcome, add.answered = "ok", row.time
    if job.add is not add and not job.is_added:
        if job.add is not None:
            _unclaim(case, job.add)
        claim(case, add, job)
    if job.deliveries:
        case.mark("deliver.before_add_ok")
    job.expected_since = max(job.expected_since, row.time)


def claim(case: Case, add: Add, job: Job) -> None:
    """Match this ADDJOB to the job that it created."""
    add.job, job.add = job.id, add
    copy_options.compare_with_request(case, job)
    body = add.options.body
    if body is not None:
        key = (add.queue, body)
        waiting = case.unclaimed.get(key, [])
        if add in waiting:
            waiting.remove(add)
        if not waiting:
            case.unclaimed.pop(key, None)


def _unclaim(case: Case, add: Add) -> None:
    """Undo the match of an ADDJOB: another one with the same body created the job."""
    add.job = ""
    waiting = case.unclaimed.setdefault((add.queue, add.options.body or ""), [])
    waiting.append(add)
    waiting.sort(key=lambda each: each.invoked)


def on_add_end(case: Case, row: Row) -> None:
    """Record that an ADDJOB was refused, or that its outcome is unknown."""
    add = case.adds.pop((row.client, row.ref), None)
    if add is not None:
        add.outcome = row.kind.partition(".")[2]
        if add.outcome == "refused":
            withdraw(case, add)
        if add.job and case.job(add.job).deliveries:
            case.mark("add.recovered")
    case.mark(row.kind)
    if row.cause == "OOM":
        case.mark("memory.oom")


def withdraw(case: Case, add: Add) -> None:
    """Record that this ADDJOB has created no job."""
    waiting = case.unclaimed.get((add.queue, add.options.body or ""), [])
    if add in waiting:
        waiting.remove(add)


def on_deliver(case: Case, row: Row, job: Job) -> Lease | None:
    """Record that a consumer has received the job. Return the serve, or None if the trace has none.
    Of several open serves to this client the last one counts, because the replies to earlier ones
    were lost."""
    found = None
    for lease in reversed(job.open_serves):
        if lease.node == row.node and lease.client == row.client:
            found = lease
            break
    if found is not None:
        job.open_serves.remove(found)
    job.deliveries += 1
    if job.deliveries == 1:
        job.first_delivered = row.time
        _compare_bodies(case, row, job)
    return found


def note_recovery(case: Case, job: Job) -> None:
    """Mark the delivery of a job whose ADDJOB seemed to have failed."""
    if job.add is not None and job.add.outcome in {"unknown", "refused"}:
        case.mark("add.recovered")


def _compare_bodies(case: Case, row: Row, job: Job) -> None:
    """D13: count jobs with the queue and body of another job: a producer may have added it
    twice."""
    key = (row.queue, body(row.detail) or "")
    if case.adds_of_body.get(key, 0) > 1 and case.first_with_body.setdefault(key, job.id) != job.id:
        case.repeated += 1


def on_ack_invoke(case: Case, row: Row, job: Job) -> None:
    """Record the request of an ACKJOB or FASTACK."""
    if job.ack_invoked is None:
        job.ack_invoked = row.time
    if row.kind == "ack.invoke" and row.node not in job.copies:
        case.mark("ack.elsewhere")
    if row.kind == "fastack.invoke":
        job.may_delete[row.node] = ASKED


def on_ack_ok(case: Case, row: Row, job: Job) -> None:
    """Record the reply to ACKJOB or FASTACK. If the trace has the node's own rows, those decide
    whether it applied the ack: a node ignores jobs with RETRY 0 that it does not have, and all jobs
    while it leaves."""
    kind = "fastack" if row.kind == "fastack.ok" else "ackjob"
    if case.has_messages if kind == "fastack" else case.has_node_rows:
        return
    record_ack(case, job, Ack(row.time, row.node, kind, row.clock))
    case.finish(job, "acked" if kind == "ackjob" else "fastack")


def on_ack_unknown(case: Case, _row: Row, _job: Job) -> None:
    """Mark an ack with an unknown outcome."""
    case.mark("ack.unknown")


def on_requeue_invoke(_case: Case, row: Row, job: Job) -> None:
    """Record a NACK or ENQUEUE."""
    job.asked_again = row.time


def on_enqueue_queue(case: Case, row: Row) -> None:
    """Record ENQUEUE QUEUE: it ends the periods of the node's jobs without a known lease."""
    case.enqueues.setdefault((row.node, row.queue), []).append(row.time)


def on_working_invoke(case: Case, row: Row, _job: Job) -> None:
    """Record a WORKING."""
    case.operations[row.client, row.ref, row.job] = row.time


def on_working_end(case: Case, row: Row, job: Job) -> None:
    """Record the outcome of a WORKING."""
    invoked = case.operations.pop((row.client, row.ref, row.job), row.time)
    if row.kind != "working.ok":
        case.mark("working.refused")
        if row.kind == "working.unknown":
            # The node may have renewed the lease.
            job.expected_since = max(job.expected_since, row.time)
        return
    case.mark("working.renewed")
    job.expected_since = max(job.expected_since, row.time)
    if job.lease is None or job.lease.time <= invoked:
        job.lease = Lease(invoked, row.node, row.client, before=job.lease)
    copy = job.copies.get(row.node)
    if copy is not None:
        copy.begin_period(row.time)
