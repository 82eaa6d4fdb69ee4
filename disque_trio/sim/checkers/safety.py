"""Safety: what must hold at every instant, except custody (S2; docs/guarantees.md, "Safety").

Each function checks one kind of row. Functions named `before_…` run before `history` applies the
row to its records, the others after.
"""

import heapq
from typing import Final

from disque_trio.sim.checkers import copy_options, succession
from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.messages import ACK
from disque_trio.sim.checkers.obligations import MILLI, SECOND
from disque_trio.sim.checkers.records import NEVER, Add, Copy, Job, Lease
from disque_trio.sim.model.vector_clocks import precedes
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.terminal.counting import counted
from disque_trio.tracing.details import body
from disque_trio.tracing.rows import Row

_OWN_DOING: Final = ("first", "delay-over", "retry", "import", "enqueue-message")
"""Causes of enqueueings that no client requested."""
_BY_TIME: Final = ("retry", "delay-over", "backed-off", "followed")


# S1: retention.


def check_retention(case: Case, job: Job) -> None:
    """S1: of the W confirmed copies, no more are missing than faults have destroyed."""
    options = job.options
    if options is None or not job.must_be_retained or job.ended is not None:
        return
    if job.created_at is not None and case.has_expired(job):
        return
    case.check("S1")
    due = options.sync - job.destroyed
    have = job.holders()
    if have < due:
        detail = (
            f"{have} of {counted(options.sync, 'copy', 'copies')} left, "
            f"though faults have destroyed only {job.destroyed}"
        )
        case.violate("S1", detail, job.id)


def after_hold(case: Case, row: Row, job: Job) -> None:
    """S1: a copy that repair has re-created counts as confirmed again and must be retained."""
    options = job.options
    if row.cause == "repljob" and job.destroyed and options is not None and job.must_be_retained:
        owed = max(options.sync - job.holders(), 0)
        if owed < job.destroyed:
            job.destroyed = owed
            case.mark("copy.restored")


# S3, S4: a delivered job was added, with the same body.


def before_hold(case: Case, row: Row, job: Job) -> None:
    """S4: no two jobs have the same id. S6: a paused queue accepts neither new jobs nor copies."""
    if row.cause in {"add", "repljob"}:
        check_pause(case, row, job, "in")
    if row.cause == "add":
        case.check("S4")
        if job.created_at is not None and not _is_handed_back(job, row):
            detail = f"{row.node} makes a job under the id of one that {job.origin} has made"
            case.violate("S4", detail, job.id, row.node)


def _is_handed_back(job: Job, row: Row) -> bool:
    """Is it the same creation? An origin may register an external job before it starts adding
    it."""
    return job.origin == row.node and job.created_at == row.time


def before_add_ok(case: Case, row: Row, job: Job) -> None:
    """S4: an id is returned once, and its parity is odd exactly if RETRY is above 0."""
    add = case.adds.get((row.client, row.ref))
    if add is None:
        return
    case.check("S4")
    if job.is_added:
        case.violate("S4", f"{row.node} gives out the id a second time", job.id, row.node)
    if bool(add.options.retry) != job.is_at_least_once:
        detail = f"the id's parity does not fit RETRY {add.options.retry // SECOND}"
        case.violate("S4", detail, job.id, row.node)


def after_add_ok(case: Case, _row: Row, job: Job) -> None:
    """S1 holds from the reply to ADDJOB on. S6 is checked now if the DELAY was not known before."""
    _check_delay(case, job)
    if not case.has_node_rows:
        return
    options = job.options
    knew_fewer = case.world.is_changing or case.is_live
    was_done = bool(job.asked_gc) if case.has_messages else job.ack_invoked is not None
    if options is not None and (was_done or (options.is_default and knew_fewer)):
        # The node has created fewer copies if it knew fewer nodes, or if the job was acknowledged
        # before ADDJOB had succeeded: the node forwarded the ack and keeps no record of it.
        options.replicate = max(1, min(options.replicate, job.holders() + job.destroyed))
        options.sync = min(options.sync, options.replicate)
    check_retention(case, job)


def on_deliver(case: Case, row: Row, job: Job) -> None:
    """S3: every delivered job was added, to this queue, with this body."""
    case.check("S3")
    text = body(row.detail)
    if text is None:
        return
    add = job.add or _find_add(case, row.queue, text, job)
    if add is None:
        case.violate("S3", f"nobody has added {text!r} to {row.queue}", job.id, row.node)
    elif add.queue != row.queue:
        detail = f"it was added to {add.queue} and comes out of {row.queue}"
        case.violate("S3", detail, job.id, row.node)
    elif add.options.body not in {None, text}:
        detail = f"it was added as {add.options.body!r} and comes out as {text!r}"
        case.violate("S3", detail, job.id, row.node)


def _find_add(case: Case, queue: str, body: str, job: Job) -> Add | None:
    """Match the job to an ADDJOB with an unknown outcome that may have created it, and return it.

    Of several with this body, the last one that the job's node had received applies, if any: a
    producer may have repeated an ADDJOB with an unknown outcome at another node.
    """
    waiting = case.unclaimed.get((queue, body))
    if not waiting:
        return None
    created = NEVER if job.created_at is None else job.created_at
    there = [each for each in waiting if each.node == job.origin and each.invoked <= created]
    add = there[-1] if there else waiting[0]
    waiting.remove(add)
    if not waiting:
        del case.unclaimed[queue, body]
    add.job, job.add = job.id, add
    copy_options.compare_with_request(case, job)
    _check_delay(case, job)
    return add


# S6, S8, S10, S13: enqueueing.


def before_queue(case: Case, row: Row, job: Job) -> None:
    """S8: a node with an acknowledged copy does not queue the job. S6: no node requeues a job while
    the queue is paused, except a job with RETRY 0, which is queued only once."""
    _check_ack_is_final(case, row, job)
    if row.cause == "enqueue-message" or (row.cause in _BY_TIME and job.is_at_least_once):
        check_pause(case, row, job, "in")


def _check_delay(case: Case, job: Job) -> None:
    """S6: a job is not queued before its DELAY is over. This is checked when it is first queued, or
    when its DELAY becomes known, whichever is later."""
    options, first = job.options, job.first_queueing
    if first is None or first.cause not in _OWN_DOING:
        return
    if options is None or not options.delay or job.created_at is None:
        return
    case.check("S6")
    if _counts_by_creator(case, job):
        return
    elapsed = first.time - job.created_at
    if elapsed < case.obligations.shortest(options.delay):
        queued = f"queued {elapsed / SECOND:.3f} s after its birth"
        detail = f"{queued}, DELAY is {options.delay / SECOND:g} s"
        case.violate("S6", detail, job.id, first.node)


def _counts_by_creator(case: Case, job: Job) -> bool:
    """Has a node loaded the job from a journal in the original's format, which measures the rest of
    its DELAY by the creator's clock, while clocks differ?"""
    obligations = case.obligations
    if not (obligations.has_original_file and obligations.differs):
        return False
    return any(copy.cause == "loaded" for copy in job.copies.values())


def _check_ack_is_final(case: Case, row: Row, job: Job) -> None:
    copy = job.copies.get(row.node)
    case.check("S8")
    if copy is not None and copy.is_acked:
        detail = f"{row.kind} ({row.cause}) of a job that is acknowledged here ({copy.acked_by})"
        case.violate("S8", detail, job.id, row.node)


def after_queue(case: Case, row: Row, job: Job) -> None:
    """S6; S10: in calm, two nodes have the job queued only until they learn of each other.

    Jobs that both sides of a partition have queued stay queued, and may move to other nodes.
    """
    first = job.first_queueing
    if first is not None and (first.node, first.time) == (row.node, row.time):
        _check_delay(case, job)
    if len(job.copies) > 1 and job.double_queued_since is None and len(_queued(job)) > 1:
        case.mark("queued.twice")
        if row.cause != "import" and case.world.is_calm(row.time, row.time):
            job.double_queued_since = row.time
    # The creation stamp of a follower may be later than those of jobs added after it.
    if not case.plan.faults and job.origin == row.node and not succession.follows(job):
        lines = case.waiting_by_place.setdefault((row.node, row.queue), {})
        line = lines.setdefault(copy_options.group_of(job), [])
        heapq.heappush(line, (-copy_options.priority_of(job), job.serial, job.id))


def on_give(case: Case, row: Row, job: Job) -> None:
    """S6: no node delivers or moves a job from a paused queue."""
    check_pause(case, row, job, "out")


def check_pause(case: Case, row: Row, job: Job, way: str) -> None:
    """S6: no job passes a paused queue in the paused direction, in or out (`way`)."""
    queue = job.queue or row.queue
    if (row.node, queue) not in case.world.queue_pauses.begun:
        return
    case.check("S6")
    if case.world.is_queue_paused(row.node, queue, way, row.time):
        detail = f"{row.kind} ({row.cause}) though {queue} is paused there"
        case.violate("S6", detail, job.id, row.node)


def _queued(job: Job) -> list[str]:
    return [copy.node for copy in job.copies.values() if copy.queueing is not None]


def after_leaving(case: Case, job: Job) -> None:
    """S10: check when the job leaves a queue, and at the end of the run."""
    if job.double_queued_since is None:
        return
    case.check("S10")
    lasted = case.now - job.double_queued_since
    if case.world.is_calm(job.double_queued_since, case.now) and lasted > _double_queue_bound(case):
        detail = f"queued on two nodes for {lasted / SECOND:.3f} s with nothing wrong"
        case.violate("S10", detail, job.id)
    if len(_queued(job)) < 2:
        job.double_queued_since = None


def _double_queue_bound(case: Case) -> Micros:
    """Return how long QUEUED and the answer to it may take."""
    return 3 * case.obligations.latency + 50 * MILLI


# S5, S7, S8, S9, S11, S13: serving.


def on_serve(case: Case, row: Row, job: Job) -> None:
    """Check everything that must hold when a node serves a job to a client."""
    _check_ack_is_final(case, row, job)
    check_pause(case, row, job, "out")
    _check_once(case, row, job)
    copy = job.copies.get(row.node)
    if copy is not None:
        _check_not_late(case, row, job, copy)
    if job.acks:
        _check_known_acks(case, row, job, copy)
    if job.lease is not None and job.lease.before is not None:
        _check_lease(case, row, job, job.lease.before)
    if not case.plan.faults and job.origin == row.node:
        _check_order(case, row, job)


def _check_once(case: Case, row: Row, job: Job) -> None:
    """S5: a job with RETRY 0 is served at most once. This holds on stream links only. A reply that
    had not left its node when it crashed does not count."""
    if job.is_at_least_once or not case.obligations.is_stream:
        return
    case.check("S5")
    served = job.serves - job.unsent_serves
    if served > 1 + job.state[0]:
        case.violate("S5", f"served {counted(served, 'time')} with RETRY 0", job.id, row.node)


def _check_not_late(case: Case, row: Row, job: Job, copy: Copy) -> None:
    """S7: a job is not served after its TTL by the node's own clock."""
    options = job.options
    if options is None or copy.base is None:
        return
    case.check("S7")
    late = row.mono - copy.base - options.ttl // MILLI
    if late >= 0:
        detail = f"served {late} ms after it had expired here"
        case.violate("S7", detail, job.id, row.node)


def _check_known_acks(case: Case, row: Row, job: Job, copy: Copy | None) -> None:
    """S9: no node serves a job after it has received the ack; nor, in calm, if it should have
    received it."""
    case.check("S9")
    if copy is not None and copy.since <= copy.ack_received_at < row.time:
        detail = "served by a node that had been told that the job is acknowledged"
        case.violate("S9", detail, job.id, row.node)
        return
    known = [c for c in job.copies.values() if c.is_acked and precedes(c.acked_stamp, row.clock)]
    if not known or not row.clock:
        return
    if job.lease is not None:
        job.lease.is_dominated = True
    since = min(c.acked_at for c in known)
    is_listed = any(row.node in job.listed.get(c.node, ()) for c in known)
    if is_listed and case.obligations.has_tail:
        return
    if case.world.is_calm(since, row.time) and not _is_ack_under_way(case, job):
        detail = f"{known[0].node} knows of the ack, has spoken with {row.node}, and never told it"
        case.violate("S9", detail, job.id, row.node)


def _is_ack_under_way(case: Case, job: Job) -> bool:
    """Is a message about the ack in transit, or was one lost?"""
    return not case.has_messages or any(
        sort == ACK and announcement.sent > announcement.got
        for (_, _, sort), announcement in job.announcements.items()
    )


def _check_lease(case: Case, row: Row, job: Job, lease: Lease) -> None:
    """S11: in calm, a lease lasts for RETRY: the job is not served again before."""
    options = job.options
    if options is None or not options.retry or job.asked_again >= lease.time:
        return
    if lease.queueing is not None and not case.obligations.has_lease:
        return
    if not case.world.is_calm(lease.time, row.time):
        return
    case.check("S11")
    held = row.time - lease.time
    if _was_given_in_time(case, job, lease) or _is_cut_short(job, lease):
        return
    if case.obligations.spread_delay < held < case.obligations.lease(options.retry):
        detail = (
            f"served again after {held / SECOND:.3f} s with nothing wrong: {lease.node} had "
            f"{'delivered it' if lease.queueing else 'given more time'}, RETRY is "
            f"{options.retry // SECOND} s"
        )
        case.violate("S11", detail, job.id, row.node)


def _was_given_in_time(case: Case, job: Job, lease: Lease) -> bool:
    """Had another node that had the job queued moved it before it could learn of the lease?"""
    queueing = None if job.lease is None else job.lease.queueing
    chain = [] if queueing is None else queueing.chain()
    return len(chain) > 1 and chain[-2].given_at <= lease.time + case.obligations.spread_delay


def _is_cut_short(job: Job, lease: Lease) -> bool:
    """Did the node receive a NACK after its delivery? The message does not name the delivery."""
    copy = job.copies.get(lease.node)
    return copy is not None and copy.postponed_at > lease.time


def before_working_ok(case: Case, row: Row, job: Job) -> None:
    """S11: WORKING is refused after half of the TTL. Nodes measure the age by wall clocks."""
    invoked = case.operations.get((row.client, row.ref, row.job))
    age = None if invoked is None else _age(case, job, row.node, invoked)
    if age is None or job.options is None:
        return
    case.check("S11")
    ttl = job.options.ttl
    if age > case.obligations.longest(ttl) // 2 + case.obligations.reconnect:
        detail = f"given more time at the age of {age // SECOND} s, TTL is {ttl // SECOND} s"
        case.violate("S11", detail, job.id, row.node)


def on_working_refused(case: Case, row: Row, job: Job) -> None:
    """S11: WORKING is not refused as too late before half of the TTL."""
    age = _age(case, job, row.node, row.time) if row.cause == "TOOLATE" else None
    if age is None or job.options is None:
        return
    case.check("S11")
    ttl = job.options.ttl
    if age < case.obligations.shortest(ttl) // 2 - case.obligations.reconnect - SECOND:
        detail = f"too late at the age of {age // SECOND} s, TTL is {ttl // SECOND} s"
        case.violate("S11", detail, job.id, row.node)


def _age(case: Case, job: Job, node: str, time: Micros) -> Micros | None:
    """Return the time since the job was created, or last redriven as far as the node knows; None if
    it is unknown."""
    copy = job.copies.get(node)
    if job.created_at is None or copy is None or case.obligations.differs:
        return None
    if not copy.state[0]:
        return time - job.created_at
    return time - job.redriven_at if copy.state[0] == job.state[0] else None


def _check_order(case: Case, row: Row, job: Job) -> None:
    """S13: without faults, a node delivers its own jobs in order of priority, and those of a group
    in order of creation. If groups have limits, jobs of one group need not wait for those of
    another."""
    lines = case.waiting_by_place.get((row.node, row.queue))
    if lines is None:
        return
    table = case.table(row.node)
    rank, own = -copy_options.priority_of(job), copy_options.group_of(job)
    case.check("S13")
    limited = case.limits.get(row.queue)
    have_limits = limited is not None and limited.of_group.is_set
    for group, line in lines.items():
        if have_limits and group != own:
            continue
        while line:
            copy = table.get(line[0][2])
            if copy is not None and copy.queueing is not None:
                break
            heapq.heappop(line)
        # Groups take turns within a priority (S37).
        if line and line[0][:2] < (rank, job.serial if group == own else 0):
            what = "is older" if line[0][0] == rank else "has priority"
            detail = f"served before {line[0][2]}, which {what} and waits in the same queue"
            case.violate("S13", detail, job.id, row.node)


# S12.


def on_exception(case: Case, row: Row) -> None:
    """S12: no message of a client or a node makes a state machine raise an exception."""
    case.violate("S12", f"{row.cause}: {row.detail}", row.job, row.node)
