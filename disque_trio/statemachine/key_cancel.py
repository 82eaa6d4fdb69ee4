"""KEYCANCEL: a job with a key ends at all nodes, and its key is free (docs/bus.md).

For CANCEL KEY, for a job that yields to an earlier one, and for one that is replaced. The last ends
only if it was never delivered, of which the node that is to deliver it is sure.
"""

from disque_trio.statemachine import acks, key_index, key_search, send
from disque_trio.statemachine.base import ACKED, ACTIVE, DELAYED, QUEUED, JobId
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.key_facts import ALWAYS, UNLESS_TAKEN, KeyFact, is_live
from disque_trio.statemachine.keys import KeyName, Search
from disque_trio.statemachine.messages import KeyCancel, SetAck
from disque_trio.statemachine.state import NodeState


def cancel(node: NodeState, search: Search, fact: KeyFact, cause: Cause) -> None:
    """The job ends here and at the nodes that the search asks."""
    _tell(node, search, KeyCancel(fact.id, *search.name))
    key_index.free(node, search.name, fact.id)
    if is_live(fact) and not _is_acked(node, fact.id):
        acks.ack(node, fact.id, cause)


def replace(node: NodeState, search: Search, fact: KeyFact, unless: int) -> None:
    """The job ends where it is known that it was never delivered."""
    _tell(node, search, KeyCancel(fact.id, *search.name, unless))
    _end_untaken(node, search.name, fact.id, unless)


def free(node: NodeState, search: Search, fact: KeyFact) -> None:
    """The job has been replaced: its key is free also where its end was told before that."""
    _tell(node, search, KeyCancel(fact.id, *search.name))
    key_index.free(node, search.name, fact.id)


def _tell(node: NodeState, search: Search, message: KeyCancel) -> None:
    links = [peer.link for peer in key_search.awaited(node, search) if peer.link]
    send.broadcast(node, links, message)


def _is_acked(node: NodeState, job_id: JobId) -> bool:
    job = node.jobs.get(job_id)
    return job_id in node.tombstones if job is None else job.state == ACKED


def on_keycancel(node: NodeState, sender: Peer, message: KeyCancel) -> None:
    """Another node's client has cancelled or replaced the job, or it yields."""
    name = message.queue, message.key
    if message.unless != ALWAYS:
        _end_untaken(node, name, message.id, message.unless)
        return
    key_index.free(node, name, message.id)
    job = node.jobs.get(message.id)
    if job is not None and job.state != ACKED:
        acks.on_setack(node, sender, SetAck(job.id, 0))


def _end_untaken(node: NodeState, name: KeyName, job_id: JobId, unless: int) -> None:
    job = node.jobs.get(job_id)
    if job is None or job.state not in (ACTIVE, QUEUED) or key_index.was_given_out(job):
        return
    if unless != UNLESS_TAKEN or is_to_deliver(node, job):
        key_index.free(node, name, job_id)
        acks.ack(node, job_id, Cause.REPLACED)


def is_to_deliver(node: NodeState, job: Job) -> bool:
    """Is this the node that delivers the job, as far as it knows, and has it not done so?"""
    if key_index.was_given_out(job) or job.state not in (ACTIVE, QUEUED):
        return False
    search = key_index.search_for(node, job)
    # Once it has asked about an earlier job, it knows that no other node queues this one.
    will_queue = search is not None and bool(search.about)
    return job.state == QUEUED or bool(job.flags & DELAYED) or will_queue
