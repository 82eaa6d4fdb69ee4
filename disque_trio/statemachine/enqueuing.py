"""ENQUEUE QUEUE: enqueue the jobs of a queue that wait only for the end of their RETRY, some at a
time (docs/commands.md).

Mostly these are jobs that were read from the journal at a restart; also jobs that DEQUEUE or a
pause has removed from the queue, and jobs whose other holders cannot be reached. Jobs that are
delayed, that are leased according to this node, or that wait for their key are not affected.

If another holder may have enqueued or delivered the job, this node sends WILLQUEUE first, as at the
end of every period. It then enqueues the job within a second, unless a holder objects.

Owns `Enqueuing.orders` and `EnqueueOrder`.
"""

from typing import Final

from disque_trio.statemachine import deadletters, key_index, lifecycle, waiters
from disque_trio.statemachine.base import (
    ACTIVE,
    BCAST_WILLQUEUE,
    DELAYED,
    DELIVERED,
    LEASED,
    PENDING,
    POSTPONED,
    RESTORED,
    TAKEN,
    Millis,
    Reply,
)
from disque_trio.statemachine.client import Blocked, Client
from disque_trio.statemachine.cluster import UNREACHABLE
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import ANNOUNCE_AHEAD, DESYNC, Job
from disque_trio.statemachine.state import EnqueueOrder, Enqueuing, NodeState

RUN_EVERY: Final[Millis] = 8
COST: Final = 8
"""Enqueuing one job costs as much as checking this many."""
_WAITS_OTHERWISE: Final = DELAYED | POSTPONED | LEASED | TAKEN


def begin(node: NodeState, client: Client, name: bytes, count: int) -> Reply:
    """Begin an order: enqueue up to `count` jobs, the oldest records first; 0 is all. The reply is
    the number of jobs found, at once if one run suffices."""
    order = EnqueueOrder(name, count, client)
    node.enqueuing.orders.append(order)
    if len(node.enqueuing.orders) == 1:
        on_due(node, node.enqueuing)
    if order.is_over:
        return order.found
    waiters.block(node, client, Blocked.ENQUEUE, 0)
    order.is_answered_later = True
    return PENDING


def on_due(node: NodeState, enqueuing: Enqueuing) -> None:
    """One run of the timer. Orders are carried out one at a time, in order of arrival."""
    looks = node.knobs.enqueuing_looks
    orders = enqueuing.orders
    while orders and looks > 0:
        looks = _run(node, orders[0], looks)
        if orders[0].is_over:
            order = orders.pop(0)
            client = order.client
            if order.is_answered_later and node.clients.get(client.id) is client:
                waiters.release(node, client, order.found)
    if orders:
        node.timers.arm(enqueuing, node.mono + RUN_EVERY)


def _run(node: NodeState, order: EnqueueOrder, looks: int) -> int:
    """Continue an order. Returns the number of checks that are left."""
    walk = order.walk
    if walk is None:
        walk = order.walk = node.table.walk()
    while looks > 0 and (job := next(walk, None)) is not None:
        looks -= 1
        if job.queue == order.name and _waits_for_retry(node, job):
            looks -= COST
            order.found += _queue(node, job)
            if order.found == order.count:
                walk.end()
    order.is_over = walk.is_over
    return looks


def _waits_for_retry(node: NodeState, job: Job) -> bool:
    """Does the job wait only for the end of its RETRY?"""
    if job.state != ACTIVE or not job.retry or job.flags & _WAITS_OTHERWISE:
        return False
    if not job.flags & BCAST_WILLQUEUE:
        # The job is announced already, and is enqueued within half a second.
        return False
    if job.extensions is not None and key_index.is_held_back(job):
        return False
    if job.flags & RESTORED:
        return True
    if job.flags & DELIVERED and not node.config.delivery_lease:
        # Without leases, the end of the worker's period is unknown.
        return False
    return node.wall - job.made >= job.delay and not _reaches_others(node, job)


def _reaches_others(node: NodeState, job: Job) -> bool:
    """Is another holder reachable?"""
    cluster = node.cluster
    if job.holders is cluster.myself.holding:
        return False
    others = [cluster.nodes.get(id) for id in job.holders if id != cluster.myself.id]
    return any(peer is not None and not peer.flags & UNREACHABLE for peer in others)


def _queue(node: NodeState, job: Job) -> bool:
    """Enqueue the job at once or, if other holders are reachable, end its RETRY early."""
    if not _reaches_others(node, job):
        return deadletters.queue_again(node, job, Cause.ENQUEUE)
    # Spread over time, because all holders may have received the command.
    wait = ANNOUNCE_AHEAD + DESYNC + lifecycle.desync(node)
    if job.requeue_at > node.mono + wait:
        lifecycle.mark(job, BCAST_WILLQUEUE)
        lifecycle.requeue_in(node, job, wait)
    return True
