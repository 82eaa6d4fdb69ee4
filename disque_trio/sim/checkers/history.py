"""Records of jobs: their copies on nodes, and the copies that faults destroy.

This module writes the records of `records`, with `messages` (between nodes) and `client_events`.
Each function applies one kind of row, checks no property, and counts marks. `dispatch` lists the
checkers that run before and after it.
"""

from typing import Final

from disque_trio.sim.checkers import silence
from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.obligations import MILLI, dummy_life
from disque_trio.sim.checkers.records import NEVER, Ack, Copy, Give, Job, Lease, Queueing
from disque_trio.tracing.rows import Row

ASKED: Final = "fastack asked"
"""A client has sent FASTACK to a node, and no row shows that the node has applied it."""
_QUEUE_MARKS: Final = {
    "delay-over": "delay.elapsed",
    "retry": "requeue.retry",
    "nack": "nack.requeued",
    "release": "release.requeued",
    "enqueue": "enqueue.requeued",
    "enqueue-message": "external.told",
}
_UNQUEUE_MARKS: Final = {
    "yield": "queued.yield",
    "working": "working.unqueued",
    "dequeue": "dequeue.taken",
}
_DROP_MARKS: Final = {
    "collected": "collected",
    "client-deljob": "deljob.client",
    "fastack": "fastack.used",
    "expired": "expired.dropped",
    "moved": "federation.moved_once",
    "handed-over": "external.handed_over",
    "add-failed": "add.cleaned_up",
    "dummy-dismissed": "dummy_ack.dismissed",
}
_AFTER_A_STOP: Final = {"loaded", "retry", "delay-over"}
"""Causes for which a job that was queued at the stop is queued again: at once, or after the node
asked other holders."""


# Rows of nodes.


def on_hold(case: Case, row: Row, job: Job) -> None:
    """A node has a record of the job."""
    node, cause = row.node, row.cause
    before = job.copies.get(node)
    copy = job.copies[node] = case.table(node)[job.id] = Copy(node, row.time, cause, row.mono)
    job.last_event = row.time
    forgotten = NEVER if cause == "loaded" else case.world.started_at(node)
    copy.not_held_at = job.not_held.get(node, NEVER)
    copy.is_late = copy.not_held_at > forgotten
    copy.sent_at = copy.first_sent_at = row.time
    copy.came_counted = bool(job.nacked or job.requeued)
    job.counters.pop(node, None)
    job.queue = job.queue or row.queue
    if cause == "add":
        copy.base = row.mono
        _create(case, row, job)
    elif cause == "dummy":
        _make_dummy(case, row, job, copy)
    elif cause == "loaded":
        _load(row, job, copy, before)
        if before is not None:
            copy.interrupted = before.interrupted or _interrupted(case, job, before)
    else:
        incoming = job.incoming.pop((node, cause), None)
        if incoming is not None:
            copy.base, copy.lowest_base = incoming.base, incoming.lowest_base
            copy.came_from, copy.sent_at = incoming.sender, incoming.sent
            copy.first_sent_at = incoming.first_sent
            source = job.copies.get(incoming.sender)
            copy.is_back = source is not None and source.since < copy.sent_at and source.is_back
    if cause != "loaded" or before is None:
        copy.source = (copy.came_from, copy.sent_at)
    if copy.is_late and cause == "repljob":
        case.mark("late_repljob")


def _interrupted(case: Case, job: Job, before: Copy) -> Queueing | None:
    """Return the stay in the queue that continues at the next start, if any. A kill undoes the end
    of a stay if the journal has no record of it: then neither the reply nor the message with the
    job was sent."""
    stay, served = before.last_queueing, job.lease
    if job.id in case.stopped.get(before.node, ()):
        return stay
    if job.id not in case.unwritten.get(before.node, ()):
        return None
    if served is not None and served.queueing is stay and served not in job.open_serves:
        return None  # its reply has arrived, although an earlier kill may have undone another one
    ends: list[Lease | Give] = [*job.open_serves, *job.gives]
    return stay if any(end.queueing is stay for end in ends) else None


def _load(row: Row, job: Job, copy: Copy, before: Copy | None) -> None:
    """A copy is loaded from the disk: everything that its record lacks is lost. A record without a
    queue is a dummy. A dummy's life is not that of the job; the disk may have had the job before,
    and may have it again after a power failure."""
    copy.before = before
    copy.is_dummy = not row.queue
    copy.confirmed_at = row.time
    if copy.is_late and row.node not in job.drop_on_disk:
        job.resurrected_at = row.time
        copy.is_back = True
    if before is not None:
        copy.base = before.base if before.is_dummy == copy.is_dummy else None
        copy.postponed_at = before.postponed_at
        copy.is_back = copy.is_back or before.is_back
        copy.source = before.source
    listed = job.listed.pop(row.node, {})
    job.perhaps_listed.setdefault(row.node, []).extend(listed)
    _forget_gc(job, row.node)


def _create(case: Case, row: Row, job: Job) -> None:
    if job.created_at is None:
        job.created_at, job.origin = row.time, row.node
        job.serial = case.creations[row.node] = case.creations.get(row.node, 0) + 1
        case.jobs_created += 1
        if job.ended is None:
            case.alive += 1


def _make_dummy(case: Case, row: Row, job: Job, copy: Copy) -> None:
    """A node records an ack of a job that it does not have."""
    copy.is_dummy = True
    copy.base = row.mono + dummy_life(job.id) // MILLI
    case.mark("dummy_ack.created")
    _acknowledge(case, row, job, copy, "ackjob")


def on_acked(case: Case, row: Row, job: Job) -> None:
    """The node's record is acknowledged."""
    copy = job.copies.get(row.node)
    if copy is not None:
        _acknowledge(case, row, job, copy, row.cause)


def _acknowledge(case: Case, row: Row, job: Job, copy: Copy, cause: str) -> None:
    copy.is_acked = True
    copy.acked_at, copy.acked_by, copy.acked_stamp = row.time, cause, row.clock
    copy.queueing = None
    job.last_event = row.time
    if cause in {"ackjob", "purge", "cancel", "yielded", "replaced"}:
        record_ack(case, job, Ack(row.time, row.node, "ackjob", row.clock))
    case.finish(job, "acked")


def record_ack(case: Case, job: Job, ack: Ack) -> None:
    """Record that an acknowledgement has reached a node."""
    job.acks.append(ack)
    if job.first_ack is None:
        job.first_ack = ack.time
    if job.add is None or not job.add.outcome:
        case.mark("ack.before_add_ok")


def on_queue(case: Case, row: Row, job: Job) -> None:
    """A node queued the job."""
    copy = job.copies.get(row.node)
    queueing = Queueing(row.time, row.mono, row.node, row.cause)
    if row.cause == "import" or _was_given(row, job, copy):
        _link_import(case, row, job, queueing)
    if copy is not None:
        stay = copy.interrupted
        if stay is not None and row.cause in _AFTER_A_STOP and _goes_on(case, job, copy):
            queueing = stay
            if job.lease is not None and job.lease.queueing is queueing:
                job.lease = job.lease.before
        copy.interrupted = None
        copy.queueing = copy.last_queueing = queueing
        copy.queued_at = row.time
    job.last_event = row.time
    if job.first_queueing is None:
        job.first_queueing = queueing
    _count_queueing(job, copy, row.cause)
    if row.cause in _QUEUE_MARKS:
        case.mark(_QUEUE_MARKS[row.cause])
    if row.cause == "retry":
        if case.world.last_heal is not None:
            case.mark("requeue.after_heal")
        if job.lease is not None and job.lease.node != row.node:
            case.mark("requeue.remote")


def _goes_on(case: Case, job: Job, copy: Copy) -> bool:
    """Does the interrupted stay continue after the restart? In a trace without messages, it does
    not if a delivery has followed."""
    return case.has_messages or job.lease is None or job.lease.time < copy.since


def _count_queueing(job: Job, copy: Copy | None, cause: str) -> None:
    """Update upper bounds of the job's counters, and lower bounds of this copy's."""
    if cause == "nack":
        job.nacked += 1
    elif cause not in {"first", "import", "release", "unbegun", "backed-off", "followed"}:
        job.requeued += 1
    if copy is not None:
        # Only these causes are certainly no first stay, which does not count.
        nacks, more = copy.counted
        copy.counted = (nacks + (cause == "nack"), more + (cause in {"retry", "untied"}))


def _was_given(row: Row, job: Job, copy: Copy | None) -> bool:
    """Did another node move the job to this one while its ADDJOB waited for copies? Then this node
    queues it when it has them."""
    incoming = job.incoming.get((row.node, "yourjobs"))
    return (
        row.cause == "first"
        and copy is not None
        and incoming is not None
        and incoming.time >= copy.since
    )


def _link_import(case: Case, row: Row, job: Job, queueing: Queueing) -> None:
    """The job has moved: link this stay to the one at the sender."""
    case.mark("federation.moved")
    for give in job.gives:
        if give.receiver == row.node:
            job.gives.remove(give)
            queueing.given_by, queueing.given_at = give.queueing, give.time
            if give.queueing is not None and give.queueing.given_by is not None:
                case.mark("federation.chain")
            return


def on_unqueue(case: Case, row: Row, job: Job) -> None:
    """A node removed the job from its queue."""
    copy = job.copies.get(row.node)
    if copy is not None:
        copy.queueing = None
        copy.unqueued_at = row.time
    if row.cause in _UNQUEUE_MARKS:
        case.mark(_UNQUEUE_MARKS[row.cause])
    if row.cause == "working" and not job.was_recalled:
        job.was_recalled = True
        job.expected_since = max(job.expected_since, row.time)


def on_serve(case: Case, row: Row, job: Job) -> None:
    """A node served the job to a client, which has it when the reply arrives."""
    copy = job.copies.get(row.node)
    queueing = None if copy is None else copy.last_queueing
    job.lease = Lease(row.time, row.node, row.client, queueing, job.expected_since, job.lease)
    is_doubtful = copy is not None and copy.came_counted
    is_doubtful = is_doubtful or case.may_be_named_twice(job, row.node)
    job.lease.counted = None if is_doubtful else (job.nacked, job.requeued)
    job.lease.counted_here = (0, 0) if copy is None else copy.counted
    job.open_serves.append(job.lease)
    job.serves += 1
    job.expected_since = job.last_event = row.time


def on_give(case: Case, row: Row, job: Job) -> None:
    """A node moves the job to the queue of another node."""
    copy = job.copies.get(row.node)
    queueing = None if copy is None else copy.last_queueing
    base = None if copy is None else copy.base
    job.gives.append(Give(row.time, row.node, row.peer, queueing, base))
    if case.has_messages and job.is_at_least_once:
        # Also if the message has no row because the link has ended.
        job.listed.setdefault(row.node, {}).setdefault(row.peer, row.time)
    to = job.copies.get(row.peer)
    if to is not None and to.is_acked:
        case.mark("import.refused")


def on_drop(case: Case, row: Row, job: Job) -> None:
    """A node dropped its record."""
    copy = job.copies.pop(row.node, None)
    case.table(row.node).pop(job.id, None)
    job.not_held[row.node] = row.time
    if row.cause in _DROP_MARKS:
        case.mark(_DROP_MARKS[row.cause])
    if copy is not None and not copy.is_dummy:
        job.dropped[row.node] = row.time
    if copy is not None:
        _DROPS.get(row.cause, _drop_quietly)(case, row, job, copy)
    _forget_gc(job, row.node)
    if not job.copies:
        case.retire(job)


def _drop_quietly(_case: Case, _row: Row, _job: Job, _copy: Copy) -> None:
    """The drop has no further effect."""


def _drop_collected(_case: Case, row: Row, job: Job, copy: Copy) -> None:
    """Record the nodes that had an unacknowledged copy. A node that is down counts if this node may
    not have listed it."""
    job.may_delete[row.node] = "collected"
    if not copy.is_dummy:
        unlisted = job.unlisted.get(row.node, ())
        for other in job.copies.values():
            if not other.is_acked and (not other.is_offline or other.node in unlisted):
                job.collected_over[other.node] = None


def _drop_fastacked(case: Case, row: Row, job: Job, _copy: Copy) -> None:
    record_fastack(case, job, row, row.node)


def _drop_deleted(case: Case, row: Row, job: Job, copy: Copy) -> None:
    if copy.is_acked:
        job.ack_deleted = True
    else:
        job.withdrawn[row.node] = row.time
    case.finish(job, "deljob")


def _drop_expired(case: Case, _row: Row, job: Job, copy: Copy) -> None:
    if not copy.is_dummy:
        case.finish(job, "expired")


def _drop_failed(_case: Case, row: Row, job: Job, copy: Copy) -> None:
    job.may_delete[row.node] = "add-failed"
    if not copy.is_acked:
        job.withdrawn[row.node] = row.time


def _drop_by_message(case: Case, row: Row, job: Job, _copy: Copy) -> None:
    """A node received DELJOB. In a trace without messages, a requested FASTACK explains it."""
    for node, why in job.may_delete.items():
        if why == ASKED and job.ended is None:
            record_fastack(case, job, row, node)


def record_fastack(case: Case, job: Job, row: Row, node: str) -> None:
    """Record that a node forwards a FASTACK, once."""
    job.may_delete[node] = "fastack"
    unlinked = silence.unlinked(case, node)
    record_ack(case, job, Ack(row.time, node, "fastack", row.clock, unlinked))
    case.finish(job, "fastack")


def _drop_evicted(case: Case, _row: Row, job: Job, _copy: Copy) -> None:
    job.acks_evicted += 1
    case.mark("memory.evicted")


def _drop_flushed(case: Case, _row: Row, job: Job, copy: Copy) -> None:
    _count_loss(case, job, copy)


_DROPS: Final = {
    "deljob": _drop_by_message,
    "collected": _drop_collected,
    "fastack": _drop_fastacked,
    "client-deljob": _drop_deleted,
    "expired": _drop_expired,
    "add-failed": _drop_failed,
    "evicted": _drop_evicted,
    "flush": _drop_flushed,
}


# Faults.


def on_crash(case: Case, row: Row) -> None:
    """A process has ended: its copies are lost, or only on its disk."""
    for job_id in list(case.table(row.node)):
        job = case.jobs[job_id]
        copy = job.copies[row.node]
        copy.queueing = None
        if case.obligations.has_disk:
            copy.is_offline = True
        else:
            destroy(case, job, copy)


def on_start(case: Case, row: Row) -> None:
    """A process has started: without its journal its copies are lost."""
    if row.cause != "loaded":
        on_wipe(case, row)


def on_wipe(case: Case, row: Row) -> None:
    """A node has lost its disk, or was removed for good."""
    for job_id in list(case.table(row.node)):
        job = case.jobs[job_id]
        destroy(case, job, job.copies[row.node])


def destroy(case: Case, job: Job, copy: Copy) -> None:
    """Count the copy as destroyed by a fault, and remove it."""
    _count_loss(case, job, copy)
    forget(case, job, copy)


def forget(case: Case, job: Job, copy: Copy) -> None:
    """Remove the record of the copy."""
    del job.copies[copy.node]
    del case.table(copy.node)[job.id]
    _forget_gc(job, copy.node)
    if copy.state[1]:
        # The remaining holders may not have it as dead.
        job.expected_since = max(job.expected_since, case.now)
    if not job.copies:
        case.retire(job)


def _count_loss(case: Case, job: Job, copy: Copy) -> None:
    if copy.is_acked:
        job.acks_crashed += 1
        case.mark("ack.destroyed")
    if not copy.is_dummy:
        job.destroyed += 1
        job.lost_on[copy.node] = case.now
        job.losses["crash"] = None
        case.mark("copy.destroyed")


def _forget_gc(job: Job, node: str) -> None:
    """The node's collection of the ack restarts, if at all."""
    job.gc_holders.pop(node, None)
    for key in [key for key in job.asked_gc if key[0] == node]:
        del job.asked_gc[key]
        job.asked_before[key] = None
