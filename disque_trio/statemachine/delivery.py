"""Delivery of jobs to clients: the rounds of GETJOB, and blocked clients (original 2.3, 6.6)."""

from collections.abc import Callable, Generator, Sequence
from itertools import islice

from disque_trio.statemachine import (
    counts,
    federation,
    keeping,
    leases,
    lifecycle,
    limiting,
    shortcuts,
    trace,
    tracked_deliveries,
    waiters,
)
from disque_trio.statemachine.base import PAUSE_OUT, TRACED, Reply
from disque_trio.statemachine.client import COUNTERS, META, TIED, Client
from disque_trio.statemachine.events import Cause, Kind
from disque_trio.statemachine.federation import Reason
from disque_trio.statemachine.job import ANNOUNCE_AHEAD, Job
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.state import NodeState


def take_rounds(node: NodeState, client: Client, names: Sequence[bytes], count: int) -> list[Job]:
    """Deliver up to `count` jobs: in each round, one of each queue, from left to right.

    Requests jobs from other nodes for empty queues. Does not create queues that it does not reach.
    """
    if len(names) == 1:
        return _take_of_one(node, client, names[0], count)
    taken: list[Job] = []
    live = names
    while live and len(taken) < count:
        live = _round(node, client, live, count, taken)
    return taken


def _take_of_one(node: NodeState, client: Client, name: bytes, count: int) -> list[Job]:
    """`take_rounds` for one queue, in one pass if possible."""
    queue = lifecycle.queue_for(node, name)
    taken: list[Job] = []
    if count == 1:
        if (job := take(node, queue, client)) is not None:
            taken.append(job)
    elif queue.limit is not None and queue.limit.setting.is_of_groups:
        while len(taken) < count and (job := take(node, queue, client)) is not None:
            taken.append(job)
    elif not queue.paused & PAUSE_OUT:
        limit = queue.limit
        most = count if limit is None else keeping.admits(node, queue, limit, count)
        taken, was_last = shortcuts.deliver(node, queue, most, client.id)
        if limit is not None:
            limiting.spend(limit, taken)
        if was_last:
            federation.need_jobs(node, queue, Reason.REACHED_ZERO)
    if len(taken) < count:
        federation.need_jobs(node, queue, Reason.CLIENTS_WAIT)
    return taken


def _round(
    node: NodeState, client: Client, names: Sequence[bytes], count: int, taken: list[Job]
) -> list[bytes]:
    """One round. Returns the queues that may have more jobs."""
    more = []
    for name in names:
        if len(taken) >= count:
            break
        queue = lifecycle.queue_for(node, name)
        job = take(node, queue, client)
        if job is None:
            federation.need_jobs(node, queue, Reason.CLIENTS_WAIT)
        else:
            taken.append(job)
            more.append(name)
    return more


def rounds(
    node: NodeState,
    client: Client,
    names: Sequence[bytes],
    count: int,
    deliver: Callable[[list[Job]], None],
) -> Generator[None, None, None]:
    """`take_rounds` in steps; each calls `deliver` with its jobs. If it ends with fewer than
    `count` jobs, no queue has a deliverable job: it checks again queues that were filled
    meanwhile."""
    most = node.knobs.ids_at_once
    taken: list[Job] = []
    if len(names) == 1:
        while len(taken := _take_of_one(node, client, names[0], min(count, most))) == most < count:
            deliver(taken)
            count -= most
            yield
        deliver(taken)
        return
    live, looks = names, 0
    was_interrupted = False
    while live and count:
        has_yielded = False
        more: list[bytes] = []
        for at in range(0, len(live), most):
            before = len(taken)
            some = live[at : at + most]
            more += _round(node, client, some, before + count, taken)
            count -= len(taken) - before
            looks += len(some)
            if not count:
                break
            if looks >= most:
                deliver(taken)
                taken, looks = [], 0
                has_yielded = was_interrupted = True
                yield
        live = more or (_filled(node, names) if has_yielded else ())
    deliver(taken)
    if was_interrupted and count:
        # The batches of the earlier steps have ended without a client that waits.
        for name in names:
            federation.need_jobs(node, lifecycle.queue_for(node, name), Reason.CLIENTS_WAIT)


def _filled(node: NodeState, names: Sequence[bytes]) -> list[bytes]:
    """The queues that have deliverable jobs."""
    found = [queue for name in names if (queue := node.queues.get(name)) is not None]
    return [
        queue.name
        for queue in found
        if queue.length
        and not queue.paused & PAUSE_OUT
        and (queue.limit is None or keeping.opens(node, queue, queue.limit))
    ]


def take(node: NodeState, queue: Queue, client: Client) -> Job | None:
    """Deliver the first job of a queue, unless its output is paused or a limit is reached."""
    if queue.paused & PAUSE_OUT:
        return None
    limit = queue.limit
    if limit is not None and not keeping.opens(node, queue, limit):
        return None
    job = lifecycle.fetch(node, queue, Cause.SERVED)
    if job is None:
        return None
    if job.flags >= TRACED:
        trace.note(node, Kind.SERVE, job, Cause.SERVED, client=client.id)
    counts.delivered(node, (job,))
    leases.start(node, job)
    if limit is not None:
        keeping.spend(node, limit, job)
    if not queue.length:
        federation.need_jobs(node, queue, Reason.REACHED_ZERO)
    return job


def serve_ready(node: NodeState) -> None:
    """Deliver one job to each client that waits on a queue with new jobs, in order of arrival."""
    ready = node.ready
    while ready:
        queue = ready.pop(next(iter(ready)))
        # There are at most as many deliveries as jobs.
        for client in list(islice(queue.waiting.values(), queue.length)):
            job = take(node, queue, client)
            if job is None:
                break
            waiters.release(node, client, give(node, client, (job,), client.wants))
        if node.cluster.size > 1:
            lifecycle.mark_pending(node, queue.name)


def give(node: NodeState, client: Client, jobs: Sequence[Job], wants: int) -> list[Reply]:
    """The reply with these jobs, in the form that the client has requested (`Client.wants`)."""
    if wants & (META | TIED) or node.tracked:
        for job in jobs:
            tracked_deliveries.hand_out(node, client, job, wants)
    if wants & META:
        return [describe(job) + meta(node, job) for job in jobs]
    if wants & COUNTERS:
        return [describe(job) + counters(job) for job in jobs]
    return [describe(job) for job in jobs]


def describe(job: Job) -> list[Reply]:
    """A job in the replies of GETJOB and QPEEK."""
    return [job.queue, job.id, job.body]


def counters(job: Job) -> list[Reply]:
    """The elements that WITHCOUNTERS adds."""
    return [b"nacks", job.nacks, b"additional-deliveries", job.deliveries]


def meta(node: NodeState, job: Job) -> list[Reply]:
    """The elements that WITHMETA adds. The lease ends when another holder may announce that it
    enqueues the job."""
    lease = job.requeue_at - ANNOUNCE_AHEAD - node.mono if job.requeue_at else 0
    reply: list[Reply] = [b"attempt", job.nacks + job.deliveries + 1, *counters(job)]
    reply += [b"priority", job.priority, b"created-ms", job.made]
    reply += [b"age-ms", max(node.wall - job.made, 0), b"lease-ms", max(lease, 0)]
    reply += [b"ttl-ms", max(job.expires - node.mono, 0), *tracked_deliveries.described(node, job)]
    extensions = job.extensions
    if extensions is not None and extensions.group is not None:
        reply += [b"group", extensions.group]
    if extensions is not None and extensions.key is not None:
        reply += [b"key", extensions.key]
    if extensions is not None and extensions.snoozes:
        reply += [b"snoozes", extensions.snoozes]
    if extensions is not None and extensions.error.text:
        reply += [b"failed-at", extensions.error.at, b"error", extensions.error.text]
    return reply
