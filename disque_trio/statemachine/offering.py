"""Offers of jobs for which no client waits here to nodes where clients wait: WAITING, HAVEJOBS.

A node of ours sends WAITING when its clients find a queue empty. A node with jobs of that queue,
but without clients for them, answers HAVEJOBS, and sends the jobs in answer to NEEDJOBS. So a job
leaves only for a client that is waiting at that moment. Jobs are offered to one node at a time; the
next node is offered jobs when that one declines or does not answer in time. Offers are recorded, so
none is repeated needlessly (docs/bus.md, "Federation").

Owns `NodeState.demands` and the fields of `Demand` and `Asker`, with `federation`
`Queue.unattended`; charges `Memory.held` for them.
"""

from collections.abc import Iterable
from typing import Final

from disque_trio.statemachine import lifecycle, limiting, send, transfer
from disque_trio.statemachine.base import KEEPS_ALL, PAUSE_OUT, Millis, NodeId
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.job import Job, was_ever_queued
from disque_trio.statemachine.memory import ASKER_BYTES, of_demand
from disque_trio.statemachine.messages import HaveJobs, NeedJobs, Waiting
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.state import Asker, Demand, NodeState, Offer

ANSWER_WITHIN: Final[Millis] = 50
"""How long an offer waits for an answer."""
OFFER_AGAIN: Final[Millis] = 500
"""The pause before an unanswered offer is repeated. It doubles each time."""
MAX_OFFER_AGAIN: Final[Millis] = 30_000
INTEREST: Final[Millis] = 65_000
"""How long a WAITING is valid. A node whose clients continue to wait sends two in this time."""


# Messages of other nodes.


def on_waiting(node: NodeState, sender: Peer, message: Waiting) -> None:
    """Handle WAITING: clients wait at the sender. With count 0, none does, and the sender declines
    an offer.

    A decline without an offer is late, from an earlier link, and is ignored: clients may wait by
    now.
    """
    demand = node.demands.get(message.queue)
    if message.count:
        _answered(_remember(node, sender, message.queue), sender, Offer.NONE)
    elif demand is not None and _has_offer(demand, sender):
        _answered(demand, sender, Offer.KNOWN)
    lifecycle.mark_pending(node, message.queue)


def on_needjobs(node: NodeState, sender: Peer, message: NeedJobs) -> None:
    """Handle NEEDJOBS: send jobs to the sender, or HAVEJOBS to one of ours if none were sent."""
    if not sender.link:
        return
    queue = node.queues.get(message.queue)
    sent = left = 0
    if queue is not None and _may_go(node, queue):
        sent = _give(node, queue, sender, message)
        # If the sender cannot keep any of the jobs, report none.
        left = queue.length if sent or sender.capabilities & KEEPS_ALL == KEEPS_ALL else 0
    if sender.is_ours:
        if not sent:
            send.to_node(node, sender, HaveJobs(message.queue, left))
        demand = _remember(node, sender, message.queue)
        _answered(demand, sender, Offer.KNOWN if left else Offer.NONE)
        if left:
            lifecycle.mark_pending(node, message.queue)
        elif message.waits:
            asker = demand.askers[sender.id]
            asker.credit = min(message.count, node.knobs.jobs_per_request) - sent
            asker.credit_until = node.mono + node.knobs.credit


def _give(node: NodeState, queue: Queue, receiver: Peer, message: NeedJobs) -> int:
    """Send jobs for a NEEDJOBS; returns their number. A node whose clients wait receives as many as
    it requests. One that fetches ahead receives at most half of a short queue, and none if this
    node imports jobs of the queue itself."""
    count = min(max(message.count, 1), node.knobs.jobs_per_request)
    if not message.waits:
        if transfer.import_rate(node, queue):
            return 0
        if queue.length < 2 * count:
            count = max(queue.length // 2, 1)
    sent = transfer.give(node, queue, receiver, count)
    if sent:
        queue.unattended = 0
    return sent


def _may_go(node: NodeState, queue: Queue) -> bool:
    """May jobs of the queue be sent to other nodes?"""
    if limiting.keeps(queue):
        return False
    if queue.limit is not None:
        queue.unpark_all()
    return bool(queue.length) and not queue.paused & PAUSE_OUT and node.refusal is None


# Waiting nodes.


def _remember(node: NodeState, sender: Peer, name: bytes) -> Demand:
    """Record the interest of the sender in the queue."""
    demand = node.demands.pop(name, None)
    if demand is None:
        demand = Demand(name)
        node.memory.held += of_demand(demand.name)
        if len(node.demands) >= node.knobs.demands:
            # Drop the queue with the oldest request. Offer its jobs first, because the request may
            # be of this batch, at the end of which it would be handled.
            oldest = next(iter(node.demands.values()))
            queue = node.queues.get(oldest.name)
            if queue is not None:
                offer(node, queue)
            _forget(node, oldest)
        node.timers.arm(demand, node.mono + INTEREST)
    node.demands[name] = demand
    asker = demand.askers.pop(sender.id, None)
    if asker is None:
        asker = Asker()
        node.memory.held += ASKER_BYTES
    # The node with the latest request is offered jobs last.
    demand.askers[sender.id] = asker
    asker.until = node.mono + INTEREST
    return demand


def _forget(node: NodeState, demand: Demand) -> None:
    node.timers.disarm(demand)
    del node.demands[demand.name]
    node.memory.held -= of_demand(demand.name, len(demand.askers))


def _has_offer(demand: Demand, sender: Peer) -> bool:
    """Does an offer to the sender wait for an answer?"""
    asker = demand.askers.get(sender.id)
    return asker is not None and asker.offer is Offer.MADE


def _answered(demand: Demand, sender: Peer, offer: Offer) -> None:
    """Record the sender's answer to an offer."""
    asker = demand.askers.get(sender.id)
    if asker is not None:
        asker.offer = offer
        demand.pause = OFFER_AGAIN
    if demand.pending == sender.id:
        demand.pending = b""


# Offers.


def offer(node: NodeState, queue: Queue) -> None:
    """Offer jobs for which no client waits here. Sends them directly to nodes that have just
    requested more than there were; otherwise offers them to the node that has waited longest."""
    demand = node.demands.get(queue.name)
    if demand is None or demand.pending or not _may_go(node, queue):
        return
    _give_on_credit(node, demand, queue)
    if not queue.length:
        return
    for id in _not_offered(node, demand):
        _offer_to(node, demand, queue, [id])
        demand.pending = id
        node.timers.arm(demand, node.mono + ANSWER_WITHIN)
        return


def _give_on_credit(node: NodeState, demand: Demand, queue: Queue) -> None:
    """Send jobs without an offer, so that a busy queue needs one request for several jobs."""
    for id, asker in list(demand.askers.items()):
        credit, asker.credit = asker.credit, 0
        peer = node.cluster.nodes.get(id)
        if not credit or asker.credit_until < node.mono or peer is None or not peer.is_connected:
            continue
        sent = transfer.give(node, queue, peer, credit, _goes_unasked)
        asker.credit = credit - sent
        if sent and not queue.length:
            # YOURJOBS reports that there are no more jobs, which replaces an earlier offer.
            _answered(demand, peer, Offer.NONE)


def _goes_unasked(node: NodeState, job: Job) -> bool:
    """May the job be sent without an offer? Not with RETRY 0: the receiver may have died since its
    request, and the job would be lost. Not a job that was queued before: its holders requeue it at
    about the same time, and the announcement of another one may not have arrived yet."""
    return bool(job.retry) and job.expires > node.mono and not was_ever_queued(job)


def _not_offered(node: NodeState, demand: Demand) -> list[NodeId]:
    """The linked nodes without an offer, in the order of their requests. Excludes nodes that no
    longer understand offers, because another version runs there."""
    nodes = node.cluster.nodes
    return [
        id
        for id, asker in demand.askers.items()
        if asker.offer is Offer.NONE
        and (peer := nodes.get(id)) is not None
        and peer.is_connected
        and peer.is_ours
    ]


def _offer_to(node: NodeState, demand: Demand, queue: Queue, ids: Iterable[NodeId]) -> None:
    for id in ids:
        asker = demand.askers[id]
        asker.offer = Offer.MADE
    send.to_ids(node, ids, HaveJobs(queue.name, queue.length))


def offer_to_all(node: NodeState, queue: Queue) -> None:
    """Offer jobs of the queue, which no client takes here, to all nodes, even without a request:
    clients there may always find jobs, so that they never wait."""
    if _may_go(node, queue):
        nodes = node.cluster.nodes.items()
        ids = [id for id, peer in nodes if peer.is_connected and peer.is_ours]
        send.to_ids(node, ids, HaveJobs(queue.name, queue.length))


def on_due(node: NodeState, demand: Demand) -> None:
    """The timer: an offer was not answered in time, or a WAITING has expired."""
    # Drop nodes whose WAITING has expired, or that are no longer in the table.
    for id, asker in list(demand.askers.items()):
        if asker.until <= node.mono or id not in node.cluster.nodes:
            del demand.askers[id]
            node.memory.held -= ASKER_BYTES
    if not demand.askers:
        _forget(node, demand)
        return
    queue = node.queues.get(demand.name)
    if queue is None or not _may_go(node, queue):
        _withdraw(demand)
    elif demand.pending:
        # The node may have stopped: offer the jobs to the others.
        demand.pending = b""
        demand.again_at = node.mono + demand.pause
        _offer_to(node, demand, queue, _not_offered(node, demand))
    else:
        _offer_again(node, demand, queue)
    askers = demand.askers.values()
    due = min(asker.until for asker in askers)
    if any(asker.offer is Offer.MADE for asker in askers):
        due = min(due, demand.again_at)
    node.timers.arm(demand, due)


def _offer_again(node: NodeState, demand: Demand, queue: Queue) -> None:
    """Repeat unanswered offers, which may have been lost with their links."""
    if demand.again_at > node.mono:
        return
    _withdraw(demand)
    demand.pause = min(demand.pause * 2, MAX_OFFER_AGAIN)
    demand.again_at = node.mono + demand.pause
    _offer_to(node, demand, queue, _not_offered(node, demand))


def _withdraw(demand: Demand) -> None:
    """Stop waiting for answers."""
    demand.pending = b""
    for asker in demand.askers.values():
        if asker.offer is Offer.MADE:
            asker.offer = Offer.NONE


def offer_anew(node: NodeState, name: bytes, peer: Peer) -> None:
    """Repeat the offer to this node: an earlier one may have been lost with its old link."""
    demand = node.demands.get(name)
    if demand is not None and (asker := demand.askers.get(peer.id)) is not None:
        asker.offer = Offer.NONE
        lifecycle.mark_pending(node, name)


def offer_all_anew(node: NodeState) -> None:
    """Repeat the offers of all queues: this node can send jobs again, and has ignored requests
    meanwhile."""
    for name, demand in node.demands.items():
        for asker in demand.askers.values():
            asker.offer = Offer.NONE
        lifecycle.mark_pending(node, name)
