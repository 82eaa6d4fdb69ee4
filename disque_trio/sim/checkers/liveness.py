"""Liveness: what must happen after the heal, and by when (docs/guarantees.md, "Liveness").

The heal ends at T0, and the healed nodes are the core. Most properties are judged at the end of the
run. If a run ends before a bound, the jobs concerned are not judged, and `Findings.open` counts
them.
"""

from disque_trio.sim.bounds import absence, backlog_of_limits
from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.cluster_liveness import is_whole, judge_rejoin, judge_unanswered
from disque_trio.sim.checkers.findings import Findings
from disque_trio.sim.checkers.messages import ACK, QUEUED, WORKING
from disque_trio.sim.checkers.obligations import MILLI, SECOND, Options, backlog
from disque_trio.sim.checkers.records import NEVER, Ack, Copy, Job, Lease
from disque_trio.sim.checkers.repairs import judge_repair
from disque_trio.sim.checkers.safety import after_leaving
from disque_trio.sim.checkers.silence import had_given_up
from disque_trio.sim.checkers.succession import held_until, is_held_back
from disque_trio.sim.checkers.zones import judge_zones
from disque_trio.sim.scenarios.plan import Consumer, Micros
from disque_trio.statemachine.base import LIMITS
from disque_trio.tracing.details import numbers

# During the run.


def on_deliver(case: Case, job: Job, serve: Lease, findings: Findings) -> None:
    """L1, L2: a job that was due after the heal is delivered in time."""
    expected_since = serve.expected_since
    healed = case.world.healed
    if healed is None or job.options is None or not job.options.retry or job.ended is not None:
        return
    if not any(case.world.in_core(holder) for holder in job.copies):
        return
    since = max(healed, expected_since, _postponed_at(case, job, serve), held_until(case, job))
    if expected_since <= healed:
        findings.redelivery.append(serve.time - healed)
    name = "L1" if job.deliveries == 1 else "L2"
    case.check(name)
    bound = delivery_bound(case, job, since)
    if serve.time - since > bound and _workers(case, job.queue):
        detail = (
            f"delivered {(serve.time - since) / SECOND:.3f} s after it could be expected, bound is "
            f"{bound / SECOND:.3f} s"
        )
        case.violate(name, detail, job.id, serve.node)


def _postponed_at(case: Case, job: Job, serve: Lease | None = None) -> Micros:
    """Return when all holders in the core had restarted their periods because a node outside the
    core announced that it has the job in its queue or leased, or because the job moved to such a
    node. Nothing guarantees that this node delivers the job.

    A node that received its first copy with such a move, and then served it, could not have queued
    it before.
    """
    stays = [] if serve is None or serve.queueing is None else serve.queueing.chain()
    newcomers = [
        stay.node
        for stay in stays
        if (copy := job.copies.get(stay.node)) is not None and NEVER < stay.given_at <= copy.since
    ]
    return min(
        (
            _holder_postponed_at(case, job, holder)
            for holder in job.copies
            if case.world.in_core(holder) and holder not in newcomers
        ),
        default=NEVER,
    )


def _holder_postponed_at(case: Case, job: Job, holder: str) -> Micros:
    copy = job.copies[holder]
    # A copy made by repair begins its period when it arrives.
    came_at = copy.since if copy.cause == "repljob" else NEVER
    announced = [
        announcement.got_at
        for (sender, receiver, sort), announcement in job.announcements.items()
        if sort in {QUEUED, WORKING} and receiver == holder and not case.world.in_core(sender)
    ]
    return max([came_at, job.put_off.get(holder, NEVER), *announced])


def delivery_bound(case: Case, job: Job, since: Micros) -> Micros:
    """B of this job: how long after `since` it must be delivered or redelivered."""
    options = job.options
    assert options is not None, job.id
    workers = _workers(case, job.queue)
    left = 0 if job.created_at is None else max(0, job.created_at + options.delay - since)
    polls = max(map(absence, workers), default=0)
    work = max([worker.work[1] for worker in workers], default=0)
    return (
        case.obligations.longest(left)
        + case.obligations.delivery(options.retry)
        + polls
        + backlog(len(case.jobs), work, len(workers))
        + backlog_of_limits(case.plan, job.queue)
    )


def _workers(case: Case, queue: str) -> list[Consumer]:
    """Return the consumers of the queue that stay at nodes of the core until the end. Consumers of
    a node that has ever left have moved to another one, which may be outside the core. If there was
    none, they get no jobs while their node is leaving: it was down when it was told to stay."""
    world = case.world
    is_anywhere_core = all(world.in_core(node) for node in world.nodes)
    return [
        consumer
        for consumer in case.plan.consumers
        if queue in consumer.queues
        and not consumer.stop
        and world.in_core(f"n{consumer.node}")
        and (is_anywhere_core or f"n{consumer.node}" not in world.have_left)
        and not _is_leaving(case, f"n{consumer.node}")
    ]


def _is_leaving(case: Case, node: str) -> bool:
    """Is it leaving, by its own report?"""
    return "leaving" in case.node_tables.get(node, {}).get(node, ())


# At the end.


def finish(case: Case, findings: Findings) -> None:
    """Run the checks that need the end of the run."""
    for job in list(case.jobs.values()):
        after_leaving(case, job)
        if job.is_added and job.ended is None:
            _judge_unfinished(case, job, findings)
        elif job.is_added and not job.is_at_least_once and not job.deliveries:
            _judge_once(case, job, findings)
    if case.world.healed is not None:
        for job in list(case.jobs.values()):
            if job.copies and job.first_ack is not None:
                _judge_collection(case, job, findings)
            elif job.copies and job.is_added and job.ended is None:
                judge_repair(case, job, findings)
        judge_rejoin(case, findings)
    _judge_leaks(case)
    judge_unanswered(case)


def _judge_unfinished(case: Case, job: Job, findings: Findings) -> None:
    """L1 and L2 for a job that has not ended, and whether it is lost."""
    options = job.options
    assert options is not None, job.id
    if not options.retry:
        if not job.deliveries:
            _judge_once(case, job, findings)
    elif not job.copies:
        _judge_loss(case, job, options, findings)
    elif case.world.healed is not None:
        _judge_wait(case, job, findings)


def _judge_loss(case: Case, job: Job, options: Options, findings: Findings) -> None:
    """No node has the job, and it has not ended."""
    if case.has_expired(job) or job.deliveries or not case.has_node_rows:
        return
    judge_zones(case, job)
    if job.destroyed >= (1 if options.is_async else options.sync):
        findings.excused.append(job.id)
        case.mark("excused")
    else:
        findings.lost.append(job.id)


def _judge_wait(case: Case, job: Job, findings: Findings) -> None:
    """A node has the job, but it is not delivered or redelivered."""
    healed = case.world.healed
    options = job.options
    assert healed is not None
    assert options is not None, job.id
    name = "L2" if job.deliveries else "L1"
    holders = [node for node in job.copies if case.world.in_core(node)]
    if not holders or not _workers(case, job.queue) or case.has_expired(job):
        return
    if job.is_dead or _is_held_back(case, job) or _is_queued_outside(case, job):
        return
    if job.queue in case.limits and _may_lack_shares(case):
        findings.leave_open(name, "the limits may have no share for the core")
        return
    since = max(healed, job.expected_since, _postponed_at(case, job), held_until(case, job))
    bound, waited = delivery_bound(case, job, since), case.now - since
    if waited <= bound or not is_whole(case):
        findings.leave_open(name)
        return
    case.check(name)
    detail = (
        f"held by {' '.join(holders)}, not delivered{' again' if job.deliveries else ''} for "
        f"{waited / SECOND:.3f} s, the bound is {bound / SECOND:.3f} s"
    )
    case.violate(name, detail, job.id, holders[0])


def _may_lack_shares(case: Case) -> bool:
    """May a keeper have so small a share of limits that it is 0? A node without limits uses none,
    and one outside the core may be the keeper for some nodes of the core and not for others."""
    world = case.world
    if LIMITS & ~case.obligations.capabilities:
        return True
    return any(world.is_up(node) and node not in world.core for node in world.nodes)


def _is_held_back(case: Case, job: Job) -> bool:
    """Does a node have the job in a paused queue? Then the other holders correctly do not queue
    it."""
    return any(
        copy.queueing is not None and (copy.node, job.queue) in case.world.queue_pauses.begun
        for copy in job.copies.values()
    )


def _is_queued_outside(case: Case, job: Job) -> bool:
    """Does a node outside the core have the job queued, so that the holders in the core do not?"""
    retry = 0 if job.options is None else job.options.retry
    lately = case.now - case.obligations.longest(2 * retry) - case.obligations.calm_after
    core = [node for node in job.copies if case.world.in_core(node)]
    return any(
        copy.queueing is not None
        and not case.world.in_core(copy.node)
        and all(job.announcement(copy.node, holder, QUEUED).got_at >= lately for holder in core)
        for copy in job.copies.values()
    )


def _judge_once(case: Case, job: Job, findings: Findings) -> None:
    """S5: a job with at-most-once delivery is lost only for a cause."""
    if not case.has_node_rows or not case.obligations.is_stream:
        return
    case.check("S5")
    healed = case.world.healed
    if any(not copy.is_dummy for copy in job.copies.values()):
        if healed is not None:
            findings.leave_open("S5")
        return
    if job.open_serves or job.losses or job.gives or job.ended is not None:
        findings.lost_once.append(job.id)
        return
    case.violate("S5", "it is gone, was never served, and nothing explains it", job.id)


def _judge_collection(case: Case, job: Job, findings: Findings) -> None:
    """L3: all copies of an acknowledged job are collected if all possible holders can be
    reached."""
    world = case.world
    assert world.healed is not None
    for copy in job.copies.values():
        if not world.in_core(copy.node) or case.may_leave(copy.node):
            continue
        if _is_kept_waiting(case, job, copy) or _will_expire(case, job, copy):
            continue
        if _was_fastack_kept(case, job, copy) or _has_outlived_ack(case, job, copy):
            continue
        since = max(world.healed, job.last_event)
        bound = case.obligations.collection
        if world.is_calm(job.last_event, case.now):
            bound = 10 * SECOND + 4 * case.obligations.latency
        if case.now - since <= bound or not is_whole(case):
            findings.leave_open("L3")
            continue
        case.check("L3")
        detail = (
            f"{copy.node} still has it {(case.now - since) / SECOND:.3f} s after the last thing "
            f"that happened to it, acknowledged since {(case.now - copy.acked_at) / SECOND:.3f} s"
            if copy.is_acked
            else f"{copy.node} has a copy that was never told of the ack"
        )
        case.violate("L3", detail, job.id, copy.node)


def _is_kept_waiting(case: Case, job: Job, copy: Copy) -> bool:
    """May the copy wait for a node outside the core, for a node that itself waits for one, or for a
    name that no node has any more? A dummy asks all nodes."""
    world = case.world
    listed = {
        peer: None
        for lists in (job.listed, job.perhaps_listed)
        for node in job.copies
        for peer in lists.get(node, ())
    }
    holders = {job.origin: None, **job.copies, **job.not_held, **job.sent_to, **listed}
    asked = world.nodes if copy.is_dummy else holders
    if _has_not_waited(job) and len(job.sent_to) < _replicas_of(job) - 1:
        # Some holders may be nodes to which no copy could be sent; no row names them.
        asked = world.nodes
    if world.names_forgotten or not all(world.in_core(node) for node in asked):
        return True
    return any(case.may_be_named_twice(job, node) for node in holders) or any(
        world.is_name_new(give.receiver, give.node, give.time) for give in job.gives
    )


def _has_not_waited(job: Job) -> bool:
    options = job.options
    return options is not None and (options.is_async or options.sync < _replicas_of(job))


def _replicas_of(job: Job) -> int:
    """Return the required number of copies, from the first record: ADDJOB may leave it out."""
    options = job.options
    return numbers(job.first_record).get("replicate", 1 if options is None else options.replicate)


def _will_expire(case: Case, job: Job, copy: Copy) -> bool:
    """Is the copy one that only its TTL removes? It has expired; or the job has RETRY 0, and either
    moved here, so that no node with the ack has listed this one, or a power failure destroyed the
    record of its delivery, and it is never delivered again (docs/guarantees.md)."""
    is_left = copy.cause == "yourjobs" and not job.is_at_least_once and not copy.is_acked
    if copy.cause == "loaded" and copy.node not in job.drop_on_disk:
        was_out = copy.is_late or job.serves > 0
        is_left = is_left or (was_out and not (job.is_at_least_once or copy.is_acked))
    return is_left or (job.options is not None and case.has_expired(job))


def _comes_again(case: Case, job: Job, copy: Copy) -> bool:
    """Will the job be delivered again without a request? With RETRY 0, or when dead, it waits for
    the end of its TTL (docs/guarantees.md); a follower waits for the end of another job."""
    return job.is_at_least_once and not copy.state[1] and not is_held_back(case, job, copy)


def _was_fastack_kept(case: Case, job: Job, copy: Copy) -> bool:
    """Was the job ended only by FASTACK, which is sent once, and did none of its messages reach
    this node: lost, without a link, or in transit? Such a job is not delivered again. Its copy may
    have been in transit then, or come later from a node that DELJOB did not reach either."""
    if _comes_again(case, job, copy) or copy.is_acked or not job.acks:
        return False
    return all(ack.kind == "fastack" and _is_unreached(case, job, ack, copy) for ack in job.acks)


def _is_unreached(case: Case, job: Job, ack: Ack, copy: Copy) -> bool:
    """Did no message of the FASTACK reach the node of the copy, or the node that has sent the copy
    since then?"""
    sender, sent_at = copy.source
    if sent_at <= ack.time:
        return _was_unsent(case, job, ack, copy.node)
    source = job.copies.get(sender)
    return source is not None and source.since < sent_at and _is_unreached(case, job, ack, source)


def _has_outlived_ack(case: Case, job: Job, copy: Copy) -> bool:
    """Is the job never delivered, so that it is not acknowledged again, while no node has the ack
    any more? All nodes with the ack have crashed, or evicted it, or kept it for the job's TTL
    without reaching this node, or lost the record of their drop."""
    return (
        not (_comes_again(case, job, copy) and _workers(case, job.queue))
        and (job.acks_crashed + job.acks_evicted > 0 or case.is_ttl_over(job) or copy.is_back)
        and not any(other.is_acked for other in job.copies.values())
        and copy.ack_received_at == NEVER
        and copy.node not in job.collected_over
    )


def _was_unsent(case: Case, job: Job, ack: Ack, node: str) -> bool:
    announcement = job.announcement(ack.node, node, ACK)
    if announcement.sent >= ack.time:
        is_stuck = announcement.is_under_way() and not case.world.in_core(ack.node)
        return announcement.lost >= ack.time or is_stuck
    return case.world.is_separated(ack.node, node, ack.time, ack.time) or had_given_up(
        case, ack.node, node, ack.time, ack.time
    )


def _judge_leaks(case: Case) -> None:
    """L4: no copy is left after the TTL, whatever has happened."""
    for node, table in case.tables.items():
        if not case.world.is_up(node) or node in case.world.paused:
            continue
        for job_id, copy in table.items():
            due = _expires_by(case, case.jobs[job_id], copy)
            if due is not None and not copy.is_offline:
                case.check("L4")
                if case.now > due:
                    detail = f"{node} still has it {(case.now - due) / SECOND:.3f} s after its time"
                    case.violate("L4", detail, job_id, node)


def _expires_by(case: Case, job: Job, copy: Copy) -> Micros | None:
    """Return when the copy must have expired; None if unknown."""
    if copy.base is None:
        return None
    ttl = 0 if copy.is_dummy else (None if job.options is None else job.options.ttl)
    if ttl is None:
        return None
    left = (copy.base - copy.mono) * MILLI + ttl
    return copy.since + case.obligations.longest(max(left, 0)) + SECOND
