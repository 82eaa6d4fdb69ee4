"""Replies to workers and administrators (S23; docs/guarantees.md).

A node refuses a token (LOST) only if the job was returned with it, or was delivered to another
client. The node that issued the token accepts it only if neither has happened there. A purge
acknowledges jobs that were queued, in queues that a client purges. WAITJOB reports how the job has
ended. A tied job is requeued after the grace period, not earlier; L8 finds one that is requeued
later.
"""

from disque_trio.sim.checkers import timers
from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.obligations import MILLI, SECOND
from disque_trio.sim.checkers.records import ALIVE, NEVER, Job, Lease
from disque_trio.sim.checkers.requests import Purge
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.tracing.details import fields, jobs_in
from disque_trio.tracing.rows import Row


def on_serve(case: Case, row: Row, job: Job) -> None:
    """Record the serve of a job, if workers have tokens."""
    if case.obligations.has_tokens:
        job.served.append((row.time, row.node, row.client))


def on_deliver(case: Case, row: Row, serve: Lease) -> None:
    """Record the serve to which the token belongs."""
    values = fields(row.detail, "body")
    if "token" in values:
        case.tokens[values["token"]] = (serve.time, serve.node, serve.client)
    if "tied" in values:
        case.tied.setdefault((row.client, row.node), {})[row.job] = None


# Tokens.


def on_working_invoke(case: Case, row: Row, job: Job) -> None:
    """A client sends WORKING, maybe with a token."""
    if row.detail:
        case.shown[row.client, row.ref, row.job] = row.detail
        _note_strange(case, row, job, row.detail)


def on_give_back(case: Case, row: Row, job: Job) -> None:
    """A client sends NACK or RELEASE, maybe with a token."""
    token = row.detail.partition(" ")[0]
    if token in case.tokens:
        _note_strange(case, row, job, token)
        case.shown[row.client, row.ref, row.job] = token
        case.given_back.setdefault(token, None)


def on_give_back_ok(case: Case, row: Row, job: Job) -> None:
    """A node confirms NACK or RELEASE; if it issued the token, it has recorded the return."""
    token = case.shown.pop((row.client, row.ref, row.job), "")
    if not token or row.detail != "1":
        return
    if case.tokens[token][1] == row.node:
        case.given_back[token] = row.time
    _judge_strange(case, row, job)


def on_working_ok(case: Case, row: Row, job: Job) -> None:
    """S23: the job was not returned with this token, and the node has not delivered it to another
    client since. A process that starts knows no earlier deliveries."""
    case.tied.get((row.client, row.node), {}).pop(row.job, None)
    token = case.shown.pop((row.client, row.ref, row.job), "")
    mine = case.tokens.get(token)
    _judge_strange(case, row, job)
    if mine is None or mine[1] != row.node or not case.has_node_rows:
        return
    case.check("S23")
    invoked = case.operations.get((row.client, row.ref, row.job), NEVER)
    later = [at for at, node, _ in job.served if mine[0] < at < invoked and node == mine[1]]
    if later and not case.world.has_been_down(row.node, later[-1]):
        detail = f"{row.client} is given more time, and the node has given it to others since"
        case.violate("S23", detail, job.id, row.node)
    since = case.given_back.get(token)
    if since is not None and since < invoked and not case.world.was_out(row.node, since, case.now):
        detail = f"{row.client} is given more time, and has given the job back before"
        case.violate("S23", detail, job.id, row.node)


def _note_strange(case: Case, row: Row, job: Job, token: str) -> None:
    """A node receives the token of another node. Does a worker have the job from this node, later
    than from the other one?"""
    mine, copy = case.tokens.get(token), job.copies.get(row.node)
    if mine is None or mine[1] == row.node or copy is None or not case.obligations.has_lease:
        return
    since = max([at for at, node, _ in job.served if node == row.node], default=NEVER)
    queued_at = NEVER if copy.last_queueing is None else copy.last_queueing.time
    changes = queued_at, copy.postponed_at, copy.since, copy.left_since
    runs_until = since + case.obligations.shortest(case.retry_of(job)) - SECOND
    is_over = since < max(*changes, job.untied.get(row.node, NEVER)) or row.time >= runs_until
    if since > mine[0] and not is_over:
        case.strange[row.client, row.ref, row.job] = since


def _judge_strange(case: Case, row: Row, job: Job) -> None:
    """S23: a node refuses such a token, unless something else has changed."""
    since = case.strange.pop((row.client, row.ref, row.job), None)
    if since is None or not case.has_node_rows:
        return
    case.check("S23")
    was_announced = any(
        receiver == row.node and announcement.got_at >= since
        for (_, receiver, _), announcement in job.announcements.items()
    )
    if not was_announced and not case.world.was_out(row.node, since, case.now):
        detail = f"{row.client} is believed, and {row.node} has given it to others since"
        case.violate("S23", detail, job.id, row.node)


def on_working_refused(case: Case, row: Row, job: Job) -> None:
    """S23: a worker has lost a job only to another one, or to itself: it sent WORKING to another
    node, which announces to this one that a worker has the job from there; or its own NACK or
    RELEASE arrived first, on another connection."""
    token = case.shown.pop((row.client, row.ref, row.job), "")
    mine = case.tokens.get(token)
    if row.cause != "LOST":
        return
    case.mark("token.lost")
    lease = job.lease
    is_elsewhere = lease is not None and lease.client == row.client and lease.node != row.node
    if mine is None or not case.has_node_rows or is_elsewhere or token in case.given_back:
        return
    case.check("S23")
    if any(each != mine and (each[0] > mine[0] or each[1] != mine[1]) for each in job.served):
        return
    if not _is_held_back_elsewhere(job, row.node, mine[0]):
        detail = f"{row.client} is told that it has lost it, and nobody else has had it"
        case.violate("S23", detail, job.id, row.node)


def _is_held_back_elsewhere(job: Job, node: str, since: Micros) -> bool:
    """Has a holder that delays the job after a NACK or RELEASE sent WORKING to this node? It does
    so on a new link, until it knows that this node supports POSTPONED."""
    return any(
        receiver == node
        and sort == "working"
        and announcement.got_at > since
        and (copy := job.copies.get(sender)) is not None
        and NEVER < copy.postponed_at <= announcement.got_at
        for (sender, receiver, sort), announcement in job.announcements.items()
    )


# Ties.


def on_hangup(case: Case, row: Row) -> None:
    """A consumer closes a connection, which the node detects later. Its other connections, and the
    jobs tied to them, are not affected."""
    tied = case.tied.get((row.client, row.node), {})
    for job_id in jobs_in(row):
        if job_id not in tied:
            continue
        del tied[job_id]
        job = case.jobs.get(job_id)
        lease = None if job is None else job.lease
        if job is None or lease is None or (lease.client, lease.node) != (row.client, row.node):
            continue
        left = case.obligations.shortest(case.retry_of(job)) - (row.time - lease.time)
        if left > _bound(case) and job.ended is None and job.asked_again < lease.time:
            job.ties_due[row.node] = row.time


def on_crash(case: Case, row: Row) -> None:
    """A process ends, and its connections with it: later ones have no ties to earlier jobs."""
    for key in [key for key in case.tied if key[1] == row.node]:
        del case.tied[key]


def _bound(case: Case) -> Micros:
    return case.obligations.longest(case.obligations.grace) + SECOND


def _judge_tie(case: Case, job: Job, node: str) -> None:
    """S23: the node has detected the end of the connection, unless it was down or stopped, or other
    nodes have the job."""
    since = job.ties_due.pop(node, None)
    copy = job.copies.get(node)
    if since is None or copy is None or not case.has_node_rows:
        return
    if copy.is_acked or copy.state[1]:
        # A worker has reported the outcome to another node in the meantime.
        return
    world = case.world
    is_hindered = world.was_out(node, since, case.now) or world.is_stopped(node, since, case.now)
    was_announced = any(
        receiver == node and sort in timers.ANNOUNCEMENTS and announcement.got_at >= copy.since
        for (_, receiver, sort), announcement in job.announcements.items()
    )
    case.check("S23")
    if case.now - since > _bound(case) and not is_hindered and not was_announced:
        detail = f"its worker's connection ended {(case.now - since) / SECOND:.3f} s ago"
        case.violate("S23", detail, job.id, node)


def finish(case: Case) -> None:
    """Judge the ties at the end of the run."""
    for job in case.jobs.values():
        if job.ended is None:
            for node in list(job.ties_due):
                _judge_tie(case, job, node)


def on_untie(case: Case, row: Row, job: Job) -> None:
    """The connection of a worker has ended: the job is due after the grace period."""
    case.mark("tie.ended")
    job.ties_due.pop(row.node, None)
    job.untied[row.node] = row.time
    job.asked_again = row.time
    timers.after_untie(case, job, row.node)


def before_queue(case: Case, row: Row, job: Job) -> None:
    """S23: a tied job is not queued before the end of the grace period."""
    _judge_tie(case, job, row.node)
    since = job.untied.pop(row.node, NEVER)
    if row.cause == "unbegun" and since == NEVER:
        # The lease of a held job has ended.
        return
    if row.cause not in {"untied", "unbegun"}:
        return
    case.mark("tie.requeued")
    case.check("S23")
    if since == NEVER:
        case.violate("S23", "queued as if its connection had ended", job.id, row.node)
    elif row.time - since < case.obligations.shortest(case.obligations.grace):
        detail = f"queued {(row.time - since) / SECOND:.3f} s after the end of the connection"
        case.violate("S23", detail, job.id, row.node)


# Purges.


def on_purge_invoke(case: Case, row: Row) -> None:
    """A client sends PURGE."""
    what = row.queue, row.kind.startswith("purge-dead")
    case.purges.setdefault(what, {})[row.client, row.ref] = Purge(row.time)


def on_purge_ok(case: Case, row: Row) -> None:
    """The PURGE has begun, and later jobs stay. Other nodes receive it later."""
    what = row.queue, row.kind.startswith("purge-dead")
    case.mark("purge.dead" if what[1] else "purge.used")
    purge = case.purges.get(what, {}).get((row.client, row.ref))
    if purge is not None:
        purge.answered_at = row.time


def before_ack(case: Case, row: Row, job: Job) -> None:
    """S23: the jobs that a purge acknowledges were queued until now, in a queue that a client
    purges."""
    if row.cause != "purge":
        return
    case.check("S23")
    copy = job.copies.get(row.node)
    is_dead = copy is not None and copy.state[1]
    was_queued = copy is not None and copy.last_queueing is not None
    if not is_dead and (not was_queued or job.unqueued_at != row.time):
        case.violate("S23", "purged, and it was neither queued nor dead there", job.id, row.node)
    purges = case.purges.get((job.queue or row.queue, is_dead), {}).values()
    slack = case.obligations.latency
    created = NEVER if job.created_at is None else job.created_at
    is_live = case.obligations.is_stream and not case.plan.faults
    if not any(created <= purge.answered_at + slack or not is_live for purge in purges):
        case.violate("S23", "purged, and nobody has asked for it since", job.id, row.node)


# WAITJOB.


def on_wait_ok(case: Case, row: Row, job: Job) -> None:
    """S23: the end that WAITJOB reports has happened."""
    case.check("S23")
    end = next(iter(fields(row.detail)))
    case.mark("wait.told" if end != "None" else "wait.timeout")
    if end == "b'acked'":
        if not (job.acks or job.ack_invoked is not None or job.may_delete):
            case.violate("S23", "WAITJOB says acked, and nobody has", job.id, row.node)
    elif end == "b'dead'":
        case.mark("wait.dead")
        if job.state == ALIVE:
            case.violate("S23", "WAITJOB says dead, and nobody has known it so", job.id, row.node)
    elif end == "b'expired'":
        options, created = job.options, job.created_at
        if options is None or created is None:
            return
        if job.lives_until is not None:
            if row.time < job.lives_until - SECOND:
                case.violate("S23", "WAITJOB says expired before its time", job.id, row.node)
            return
        if row.time - created < case.obligations.shortest(options.ttl):
            detail = f"WAITJOB says expired after {(row.time - created) / (1000 * MILLI):.3f} s"
            case.violate("S23", detail, job.id, row.node)
