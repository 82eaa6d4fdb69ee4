"""Requeueing: due jobs, WILLQUEUE, QUEUED, WORKING, POSTPONED, ENQUEUE (original 6.4, 5.11).

The first holder whose retry period ends sends WILLQUEUE to the others, and half a second later
enqueues the job, unless one of them answers that it has the job queued, delivered or acknowledged.
The sender of a message about a job that it holds is added to `Job.holders`.
"""

from disque_trio.statemachine import (
    acks,
    deadletters,
    journaling,
    key_index,
    leases,
    lifecycle,
    postponing,
    reasons,
    replication,
    send,
    trace,
    tracked_deliveries,
)
from disque_trio.statemachine.base import (
    ACKED,
    ACTIVE,
    BCAST_QUEUED,
    BCAST_WILLQUEUE,
    DEAD,
    DELAYED,
    POSTPONED,
    QUEUED,
    QUEUED_ONCE,
    RESTORED,
    RETURNING,
    TAKEN,
    JobId,
)
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.copies import send_state
from disque_trio.statemachine.events import Cause, Kind
from disque_trio.statemachine.holder_exchange import exchange_holders
from disque_trio.statemachine.job import ANNOUNCE_AHEAD, DESYNC, Job, was_ever_queued, wins
from disque_trio.statemachine.messages import Enqueue, Postponed, Queued, WillQueue, Working
from disque_trio.statemachine.state import NodeState


def on_due(node: NodeState, job: Job) -> None:
    """The timer of a job: expiry, collection, WILLQUEUE, or requeue."""
    if job.expires <= node.mono:
        replication.drop(node, job, Cause.EXPIRED)
        return
    if job.state == ACKED:
        acks.on_due(node, job)
        return
    if job.state in (ACTIVE, QUEUED) and job.requeue_at:
        _announce(node, job)
        _requeue(node, job)
    lifecycle.schedule(node, job)


def _announce(node: NodeState, job: Job) -> None:
    """Send WILLQUEUE to the other holders. A queued job only restarts its period, so it sends
    none."""
    if not job.flags & BCAST_WILLQUEUE or job.requeue_at - ANNOUNCE_AHEAD > node.mono:
        return
    if job.state == ACTIVE:
        exchange_holders(node, job)
        send.to_holders(node, job, WillQueue(job.id))
    # The lease of this node ends, even if the job cannot be enqueued here now.
    lifecycle.unmark(job, BCAST_WILLQUEUE)
    reasons.lapse(node, job)


def _requeue(node: NodeState, job: Job) -> None:
    """Requeue the job if it is due. A queue that is paused in input accepts only jobs with RETRY 0,
    which would otherwise be lost."""
    if job.requeue_at > node.mono:
        return
    if job.state == QUEUED:
        lifecycle.restart_retry(node, job)
        return
    if job.retry and _is_paused(node, job):
        reasons.clear(node, job, DELAYED | POSTPONED | RESTORED)
        lifecycle.restart_retry(node, job)
        return
    if node.tracked and tracked_deliveries.is_held(node, job):
        # Its consumer has not begun the job, so this does not count as a delivery.
        tracked_deliveries.forfeit(node, job)
        lifecycle.enqueue(node, job, Cause.UNBEGUN)
        return
    deadletters.queue_again(node, job, _cause(node, job))


def _is_paused(node: NodeState, job: Job) -> bool:
    return job.queue is not None and lifecycle.is_paused_in(node, job.queue)


def _will_queue_unbegun(node: NodeState, job: Job) -> bool:
    """Will this node enqueue the job within half a second, because its consumer has not begun
    it?"""
    return (
        bool(node.tracked) and tracked_deliveries.is_held(node, job) and not _is_paused(node, job)
    )


def _cause(node: NodeState, job: Job) -> Cause:
    if node.tracked and tracked_deliveries.is_orphan(node, job):
        return Cause.UNTIED
    if job.flags & POSTPONED:
        return Cause.BACKED_OFF
    return Cause.RETRY if job.flags & BCAST_QUEUED else Cause.DELAY_OVER


def _pending(node: NodeState, sender: Peer, job_id: JobId) -> Job | None:
    """The job of a holder's message. If it has ended or is dead here, the sender receives SETACK or
    JOBSTATE, and the result is None."""
    job = deadletters.known(node, sender, job_id)
    if job is not None and job.state == DEAD:
        send_state(node, job, (sender.id,))
        return None
    return job


def on_queued(node: NodeState, sender: Peer, message: Queued) -> None:
    """Handle QUEUED: the sender has enqueued the job, so postpone it here. If both have it queued,
    one of them dequeues it."""
    job = _pending(node, sender, message.id)
    if job is None:
        return
    if message.nack or message.redelivery:
        trace.trouble(node, job, job.state)
    lifecycle.count_delivery(job, nack=message.nack, redelivery=message.redelivery)
    tracked_deliveries.follow(node, job, sender.id)
    if message.redelivery:
        exchange_holders(node, job)
    if leases.runs(node, job) and not (message.nack or message.told):
        # The sender has not received this node's lease. The lease is not renewed, because two nodes
        # could repeat that endlessly.
        send.to_node(node, sender, Working(job.id))
        return
    if postponing.rest(node, job) > DESYNC and not (message.nack or message.told):
        postponing.announce(node, job, (sender.id,))
        return
    if job.state == QUEUED:
        # Both have it queued. The node that keeps it sends QUEUED again, because that of the other
        # may be older than its own.
        if wins(node.cluster.myself.id, sender.id, job.id):
            lifecycle.dequeue(node, job, Cause.YIELD)
        else:
            send.to_node(node, sender, Queued(job.id))
    _postpone(node, job)


def _postpone(node: NodeState, job: Job) -> None:
    """Another holder has enqueued or delivered the job: restart its period, without a lease of this
    node.

    If the job waits for replicas here, it is not enqueued when it has them.
    """
    was_returning = job.flags & RETURNING
    waited = postponing.rest(node, job)
    reasons.clear(node, job, reasons.OF_PERIOD | DELAYED | POSTPONED)
    tracked_deliveries.give_up(node, job)
    key_index.let_go(node, job)
    if job.retry:
        lifecycle.mark(job, QUEUED_ONCE | BCAST_QUEUED)
    lifecycle.restart_retry(node, job)
    if waited:
        # Otherwise the job would still be postponed after a restart.
        journaling.renew(node, job)
    elif was_returning:
        # Otherwise a restart would enqueue it at once.
        journaling.moved(node, job)


def on_working(node: NodeState, sender: Peer, message: Working) -> None:
    """Handle WORKING: the sender has delivered the job, so no other holder may keep it queued."""
    job = _pending(node, sender, message.id)
    if job is None or postponing.stands(node, job):
        return
    lifecycle.dequeue(node, job, Cause.WORKING)
    _postpone(node, job)
    if job.retry:
        lifecycle.mark(job, TAKEN)


def on_willqueue(node: NodeState, sender: Peer, message: WillQueue) -> None:
    """Handle WILLQUEUE: object if the job is queued here, leased by this node, or postponed by a
    NACK. For a held job that has not begun, this node objects until it requeues the job itself,
    because a requeue by the sender would count as a delivery."""
    job = _pending(node, sender, message.id)
    if job is None:
        return
    exchange_holders(node, job)
    if job.state == QUEUED:
        send.to_holders(node, job, Queued(job.id))
    elif leases.runs(node, job) or _will_queue_unbegun(node, job):
        send.to_node(node, sender, Working(job.id))
    elif postponing.rest(node, job):
        postponing.announce(node, job, (sender.id,))


def on_postponed(node: NodeState, sender: Peer, message: Postponed) -> None:
    """Handle POSTPONED: a client of another node has returned the job, with a delay."""
    job = _pending(node, sender, message.id)
    if job is not None:
        postponing.obey(node, job, message)
        tracked_deliveries.follow(node, job, sender.id)


def on_enqueue(node: NodeState, _sender: Peer, message: Enqueue) -> None:
    """Handle ENQUEUE: enqueue this copy, now or later, because its creator keeps none (external
    replication). Never later than without the message.

    A copy with RETRY 0 has no time to be enqueued, so this sets one; the original loses the job
    here (original, defect 14).
    """
    job = node.jobs.get(message.id)
    if job is None or job.state != ACTIVE or was_ever_queued(job):
        return
    if job.queue is not None and lifecycle.is_paused_in(node, job.queue):
        return
    lifecycle.unmark(job, BCAST_QUEUED)
    wait = message.delay * 1000
    if job.requeue_at:
        wait = min(wait, max(job.requeue_at - node.mono, 0))
    lifecycle.requeue_in(node, job, wait)
    reasons.await_delay(node, job)
    if not message.delay:
        lifecycle.enqueue(node, job, Cause.ENQUEUE_MESSAGE)
    key_index.await_turn(node, job)
    if not job.retry:
        journaling.renew(node, job)


def end_soon(node: NodeState, client: Client) -> None:
    """A connection has ended: its tied leases end after `tied-grace`.

    Then the jobs are requeued as at the end of every period: WILLQUEUE precedes that by half a
    second, and other holders may object.
    """
    for job in tracked_deliveries.orphan(node, client):
        if job.requeue_at > node.mono + node.config.tied_grace:
            trace.note(node, Kind.UNTIE, job, Cause.DISCONNECTED)
            lifecycle.mark(job, BCAST_WILLQUEUE)
            lifecycle.requeue_in(node, job, node.config.tied_grace)
        else:
            tracked_deliveries.untie(node, job)


def working(node: NodeState, job: Job, client: Client) -> None:
    """WORKING of a client: restart the period, here and at the other holders."""
    tracked_deliveries.untie(node, job, client)
    was_returning = job.flags & RETURNING
    lifecycle.dequeue(node, job, Cause.WORKING)
    waited = postponing.is_postponed(job)
    leases.renew(node, job)
    lifecycle.unmark(job, TAKEN)
    lifecycle.mark(job, BCAST_QUEUED)
    if waited:
        journaling.hold(node, job)
    elif was_returning:
        journaling.moved(node, job)
