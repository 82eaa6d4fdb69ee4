"""ENQUEUE QUEUE: the jobs of a queue that wait for the end of their RETRY and for nothing else, a
few at a time (docs/commands.md).

Above all these are jobs that a restart has read from the journal; and those that DEQUEUE or a pause
has put back, and copies whose other holders cannot be reached. A job that waits for a delay, that a
worker has as far as is known here, or that its key holds back, stays as it is.

A job that another holder may have queued or delivered is announced first (WILLQUEUE), as at the end
of every period, so it is queued within a second, unless one of them objects.

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
"""As many looks take as long as queuing one job."""
_WAITS_OTHERWISE: Final = DELAYED | POSTPONED | LEASED | TAKEN


def begin(node: NodeState, client: Client, name: bytes, count: int) -> Reply:
    """Begin with the jobs that have been here longest; `count` of them at most, 0 is all. The reply
    is how many were found, at once if one run is enough."""
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
    """One run. One order at a time is carried out, in the order in which they came."""
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
    """Go on with an order. Returns how many looks are left."""
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
    """Does it wait for the end of its RETRY, and for nothing else?"""
    if job.state != ACTIVE or not job.retry or job.flags & _WAITS_OTHERWISE:
        return False
    if not job.flags & BCAST_WILLQUEUE:
        # It is queued in half a second, until which its worker has it.
        return False
    if job.extensions is not None and key_index.is_held_back(job):
        return False
    if job.flags & RESTORED:
        return True
    if job.flags & DELIVERED and not node.config.delivery_lease:
        # Without leases it is not known how long a worker has it.
        return False
    return node.wall - job.made >= job.delay and not _reaches_others(node, job)


def _reaches_others(node: NodeState, job: Job) -> bool:
    """Is there another holder that can be asked?"""
    cluster = node.cluster
    if job.holders is cluster.myself.holding:
        return False
    others = [cluster.nodes.get(id) for id in job.holders if id != cluster.myself.id]
    return any(peer is not None and not peer.flags & UNREACHABLE for peer in others)


def _queue(node: NodeState, job: Job) -> bool:
    """Queue it, or let its period end now."""
    if not _reaches_others(node, job):
        return deadletters.queue_again(node, job, Cause.ENQUEUE)
    # Spread, because all holders may have been told to.
    wait = ANNOUNCE_AHEAD + DESYNC + lifecycle.desync(node)
    if job.requeue_at > node.mono + wait:
        lifecycle.mark(job, BCAST_WILLQUEUE)
        lifecycle.requeue_in(node, job, wait)
    return True
