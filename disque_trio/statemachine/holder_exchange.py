"""HOLDERS: merge the lists of a job's holders (decision 62).

A holder announces deliveries and requeues of a job to the holders in its list. Two nodes that
received the job on different sides of a partition are not in each other's lists: both would requeue
it repeatedly, without WORKING of the other. The node that sent them the job has both in its list.
So a node whose list has grown sends it to all holders in it, once, before the next requeue: most
jobs are acknowledged before that.
"""

from disque_trio.statemachine import leases, lifecycle, postponing, send
from disque_trio.statemachine.base import (
    ACKED,
    ACTIVE,
    BCAST_WILLQUEUE,
    DEAD,
    GROWN,
    LISTS,
    QUEUED,
    NodeId,
)
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.copies import (
    add_holders,
    is_over,
    named,
    send_ack_back,
    send_state,
)
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import Holders, Queued, WillQueue, Working
from disque_trio.statemachine.state import NodeState


def learn(job: Job, ids: tuple[NodeId, ...]) -> None:
    """Add nodes to the job's holders. If one is new, mark the job as GROWN, because other holders
    may lack it too."""
    known = job.holders
    add_holders(job, ids)
    if job.holders is not known and job.retry:
        lifecycle.mark(job, GROWN)


def exchange_holders(node: NodeState, job: Job) -> None:
    """Send the list of holders to all of them before a requeue, if it has grown."""
    if not job.flags & GROWN:
        return
    lifecycle.unmark(job, GROWN)
    find = node.cluster.nodes.get
    peers = [peer for id in job.holders if (peer := find(id)) is not None and peer.link]
    if len(peers) > 1:
        links = [peer.link for peer in peers if peer.capabilities & LISTS]
        send.broadcast(node, links, Holders(job.id, job.holders))


def on_holders(node: NodeState, sender: Peer, message: Holders) -> None:
    """Handle HOLDERS: add the nodes to the job's holders, and send the new ones the job's state
    here."""
    job = node.jobs.get(message.id)
    if job is None:
        is_over(node, sender, message.id)
        return
    if job.state == ACKED:
        send_ack_back(node, sender, job, message.holders)
        return
    known = job.holders
    add_holders(job, (*named(node, message.holders), sender.id))
    if not job.retry:
        return
    if all(id in message.holders for id in known):
        # All receivers of this message have every holder in this node's list.
        lifecycle.unmark(job, GROWN)
    else:
        lifecycle.mark(job, GROWN)
    _send_announcement(node, job, [id for id in job.holders if id not in known])


def _send_announcement(node: NodeState, job: Job, ids: list[NodeId]) -> None:
    """Send the announcement that other holders have received in the current period."""
    if job.state == DEAD:
        send_state(node, job, ids)
    elif job.state == QUEUED:
        send.to_ids(node, ids, Queued(job.id))
    elif leases.runs(node, job):
        send.to_ids(node, ids, Working(job.id))
    elif postponing.rest(node, job):
        postponing.announce(node, job, ids)
    elif job.state == ACTIVE and not job.flags & BCAST_WILLQUEUE:
        send.to_ids(node, ids, WillQueue(job.id))
