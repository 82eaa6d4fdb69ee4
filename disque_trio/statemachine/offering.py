"""Jobs for which no client waits here are offered to nodes where clients wait: WAITING, HAVEJOBS.

A node of ours sends WAITING when its clients find a queue empty. A node that gets jobs of that
queue and has no client for them answers HAVEJOBS, and gives the jobs when NEEDJOBS asks for them.
So a job leaves only for a client that waits at that moment. Jobs are offered to one node at a time;
the next one follows when it has declined, or has not answered in time. Offers are remembered, so
none is made twice (docs/bus.md, "Federation").

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
"""How long an offer waits for its answer."""
OFFER_AGAIN: Final[Millis] = 500
"""Pause before an offer that was not answered is made again. It doubles each time."""
MAX_OFFER_AGAIN: Final[Millis] = 30_000
INTEREST: Final[Millis] = 65_000
"""How long a WAITING is valid. A node whose clients go on waiting sends two in this time."""


# What other nodes say.


def on_waiting(node: NodeState, sender: Peer, message: Waiting) -> None:
    """Clients wait at the sender; with 0, none does, and the sender declines an offer.

    A decline without an offer has come late, over an earlier link: clients may wait by now.
    """
    demand = node.demands.get(message.queue)
    if message.count:
        _answered(_remember(node, sender, message.queue), sender, Offer.NONE)
    elif demand is not None and _has_offer(demand, sender):
        _answered(demand, sender, Offer.KNOWN)
    lifecycle.mark_pending(node, message.queue)


def on_needjobs(node: NodeState, sender: Peer, message: NeedJobs) -> None:
    """Give jobs to a node that needs them. One of ours is told how many are left."""
    if not sender.link:
        return
    queue = node.queues.get(message.queue)
    sent = left = 0
    if queue is not None and _may_go(node, queue):
        sent = _give(node, queue, sender, message)
        # To one that can read none of them there are none.
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
    """A node whose clients wait for jobs gets as many as it asks for. One that fetches ahead gets
    at most half of a short queue, and none if this node imports jobs of the queue itself."""
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
    """Are there jobs of the queue for other nodes?"""
    if limiting.keeps(queue):
        return False
    if queue.limit is not None:
        queue.unpark_all()
    return bool(queue.length) and not queue.paused & PAUSE_OUT and node.refusal is None


# Waiting nodes.


def _remember(node: NodeState, sender: Peer, name: bytes) -> Demand:
    """The sender is interested in the queue from now on."""
    demand = node.demands.pop(name, None)
    if demand is None:
        demand = Demand(name)
        node.memory.held += of_demand(demand.name)
        if len(node.demands) >= node.knobs.demands:
            # Forget the queue that was asked for longest ago. Its jobs are offered before, which
            # otherwise happens at the end of the batch: it may have been asked for in this one.
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
    # The node that asked last is offered jobs last.
    demand.askers[sender.id] = asker
    asker.until = node.mono + INTEREST
    return demand


def _forget(node: NodeState, demand: Demand) -> None:
    node.timers.disarm(demand)
    del node.demands[demand.name]
    node.memory.held -= of_demand(demand.name, len(demand.askers))


def _has_offer(demand: Demand, sender: Peer) -> bool:
    """Has the sender been offered jobs, and not answered?"""
    asker = demand.askers.get(sender.id)
    return asker is not None and asker.offer is Offer.MADE


def _answered(demand: Demand, sender: Peer, offer: Offer) -> None:
    """The sender has answered an offer: note what it knows now."""
    asker = demand.askers.get(sender.id)
    if asker is not None:
        asker.offer = offer
        demand.pause = OFFER_AGAIN
    if demand.pending == sender.id:
        demand.pending = b""


# Offers.


def offer(node: NodeState, queue: Queue) -> None:
    """There are jobs and no client here for them: give them to nodes that have just asked for more
    than there were, or offer them to the node that has waited longest."""
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
    """Give jobs without an offer, so that a busy queue needs one request for several jobs."""
    for id, asker in list(demand.askers.items()):
        credit, asker.credit = asker.credit, 0
        peer = node.cluster.nodes.get(id)
        if not credit or asker.credit_until < node.mono or peer is None or not peer.is_connected:
            continue
        sent = transfer.give(node, queue, peer, credit, _goes_unasked)
        asker.credit = credit - sent
        if sent and not queue.length:
            # It reads in YOURJOBS that there are no more, whatever it was offered before.
            _answered(demand, peer, Offer.NONE)


def _goes_unasked(node: NodeState, job: Job) -> bool:
    """May the job go without an offer? Not with RETRY 0: the node may have died since it asked, and
    the job would be lost. Not a job that was queued before: its holders wake together, and the
    message that another one has it may still be on its way."""
    return bool(job.retry) and job.expires > node.mono and not was_ever_queued(job)


def _not_offered(node: NodeState, demand: Demand) -> list[NodeId]:
    """The nodes with a link that have not been offered jobs, in the order in which they asked.
    Another version may run there by now, which reads no offers."""
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
    """Clients take no jobs of the queue here: tell all nodes, also those that have not asked. Their
    clients may find so many jobs there that they never wait."""
    if _may_go(node, queue):
        nodes = node.cluster.nodes.items()
        ids = [id for id, peer in nodes if peer.is_connected and peer.is_ours]
        send.to_ids(node, ids, HaveJobs(queue.name, queue.length))


def on_due(node: NodeState, demand: Demand) -> None:
    """An offer was not answered in time, or a WAITING is not valid any more."""
    # Forget nodes that have been silent for too long or have gone.
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
        # The node may have stopped: go on with the next.
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
    """Repeat offers that were not answered: they may have been lost with their links."""
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
    """Offer all queues anew: this node can give jobs again, and has ignored requests meanwhile."""
    for name, demand in node.demands.items():
        for asker in demand.askers.values():
            asker.offer = Offer.NONE
        lifecycle.mark_pending(node, name)
