"""Nodes that are broken in how they make and list copies, and in how they remember acks.

As in `broken`, each function breaks one thing.
"""

from collections.abc import Callable
from typing import Any

from disque_trio.statemachine import (
    acks,
    counts,
    deadletters,
    dispatch,
    failure,
    lifecycle,
    links,
    membership,
    pending_adds,
    replication,
    requeue,
    resend,
    send,
    transfer,
)
from disque_trio.statemachine.base import ACKED, ACTIVE, PFAIL, CommandError, JobId, NodeId
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.commands import addjob
from disque_trio.statemachine.copies import adopt
from disque_trio.statemachine.counts import COUNTED
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import Job, make_id
from disque_trio.statemachine.messages import DelJob, GotAck, GotJob, JobCopy, ReplJob, SetAck
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.state import NodeState
from tests.sim.ablations.broken import Patch, nothing

# Copies.


def senders_unlisted(patch: Patch) -> None:
    """The sender of a message is not added to the list of holders."""
    for name in ("add_holder", "learn"):
        patch.setattr(deadletters, name, nothing)


def holders_not_introduced(patch: Patch) -> None:
    """Holders are not told of each other (HOLDERS is not sent)."""
    patch.setattr(requeue, "introduce", nothing)


def lists_not_joined(patch: Patch) -> None:
    """The holders that REPLJOB names are ignored where the job is already known."""
    for room in (replication, transfer):
        patch.setattr(room, "named", lambda *_: ())


def importers_unlisted(patch: Patch) -> None:
    """When a job moves, neither node adds the other to its list of holders."""
    for name in ("add_holder", "learn"):
        patch.setattr(transfer, name, nothing)


def without_widening(patch: Patch) -> None:
    """When a node does not confirm its copy, no other node is asked."""

    def widen(node: NodeState, pending: Any, job: Job) -> None:
        pending_adds.widen_in(node, pending, replication.RESEND_EVERY)
        replication._send_to(node, job, job.holders, no_reply=False)

    patch.setattr(replication, "_widen", widen)


def zones_ignored(patch: Patch) -> None:
    """Copies go to any nodes, whatever their zones."""
    patch.setattr(replication, "spread", lambda _node, _holders, ids, count: ids[:count])


def dying_with_a_zone(patch: Patch) -> None:
    """A node that suspects another one drops the jobs of which that one has a copy."""

    def suspect(node: NodeState, peer: Peer) -> None:
        intact(node, peer)
        if peer.flags & PFAIL:
            for job in [job for job in node.jobs.values() if peer.id in job.holders]:
                replication.drop(node, job, Cause.DELJOB)

    intact = failure.suspect_if_silent
    patch.setattr(membership, "suspect_if_silent", suspect)


def sleeping_copies(patch: Patch) -> None:
    """Only the node where a job was added queues it again."""

    def sleeping(node: NodeState, copy: JobCopy) -> Job:
        job = adopt(node, copy)
        job.requeue_at = 0
        return job

    patch.setattr(replication, "adopt", sleeping)
    patch.setattr(
        lifecycle, "restart_retry", _only_for(lifecycle.restart_retry, lambda job: job.requeue_at)
    )


def _only_for(
    verb: Callable[[NodeState, Job], None], fits: Callable[[Job], object]
) -> Callable[[NodeState, Job], None]:
    def narrowed(node: NodeState, job: Job) -> None:
        if fits(job):
            verb(node, job)

    return narrowed


def refused_by_minorities(patch: Patch) -> None:
    """A node that cannot reach a majority refuses every job."""

    def is_external(node: NodeState, replicas: int, *, is_async: bool, needs: int = 0) -> bool:
        if len(node.cluster.reachable) + 1 <= node.cluster.size // 2:
            raise CommandError(replication.NOT_ENOUGH_NODES)
        return intact(node, replicas, is_async=is_async, needs=needs)

    # This is asked for each ADDJOB.
    intact = replication.is_external
    patch.setattr(replication, "is_external", is_external)


def links_not_restored(patch: Patch) -> None:
    """A broken link is not dialled again."""
    dialled: dict[tuple[int, NodeId], None] = {}

    def dial(node: NodeState, peer: Peer) -> int:
        if (id(node), peer.id) in dialled:
            return 0
        dialled[id(node), peer.id] = None
        return intact(node, peer)

    intact = links.dial
    patch.setattr(membership, "dial", dial)


def confirmed_by_one(patch: Patch) -> None:
    """ADDJOB succeeds as soon as one node has confirmed its copy."""

    def on_gotjob(node: NodeState, sender: Peer, message: GotJob) -> None:
        job = node.jobs.get(message.id)
        if job is not None and job.id in node.adding:
            replication.achieved(node, job)

    patch.setitem(dispatch.ON_MESSAGE, GotJob, on_gotjob)


def confirmed_without_a_copy(patch: Patch) -> None:
    """GOTJOB is sent, but no copy is kept."""

    def on_repljob(node: NodeState, sender: Peer, message: ReplJob) -> None:
        if not message.no_reply:
            send.to_node(node, sender, GotJob(message.copies[0].id))

    patch.setitem(dispatch.ON_MESSAGE, ReplJob, on_repljob)


def cleaned_up_after_success(patch: Patch) -> None:
    """The copies are deleted after a successful ADDJOB."""
    intact = replication.achieved

    def achieved(node: NodeState, job: Job) -> None:
        intact(node, job)
        send.to_holders(node, job, DelJob(job.id))

    patch.setattr(replication, "achieved", achieved)


def without_clean_up(patch: Patch) -> None:
    """The copies are not deleted after a failed ADDJOB."""

    def give_up(node: NodeState, job: Job, reply: Any) -> None:
        pending_adds.settle(node, job, reply)
        lifecycle.unregister(node, job, Cause.ADD_FAILED)

    patch.setattr(replication, "give_up", give_up)


def ids_told_wrong(patch: Patch) -> None:
    """The ids of jobs with RETRY 0 say at least once."""

    def always_odd(node: NodeId, bits: int, ttl_s: int, *, at_least_once: bool) -> JobId:
        return make_id(node, bits, ttl_s, at_least_once=True)

    patch.setattr(addjob, "make_id", always_odd)


# Acknowledgements.


def collected_at_once(patch: Patch) -> None:
    """An acknowledged job is collected without waiting for confirmations."""
    patch.setattr(acks, "unconfirmed", lambda *_: [])


def ack_not_kept(patch: Patch) -> None:
    """ACKJOB deletes the local copy, and no other node is told."""

    def ack(node: NodeState, job_id: JobId) -> bool:
        job = node.jobs.get(job_id)
        if job is not None:
            counts.leave(node, job, job.flags)
            lifecycle.end(node, job, Cause.ACKJOB)
            lifecycle.schedule_collection(node, job)
            lifecycle.unregister(node, job, Cause.COLLECTED)
        return job is not None

    patch.setattr(acks, "ack", ack)


def acked_holders_silent(patch: Patch) -> None:
    """A holder that knows of an ack does not answer QUEUED, WORKING or WILLQUEUE with SETACK."""

    def pending(node: NodeState, sender: Peer, job_id: JobId) -> Job | None:
        job = node.jobs.get(job_id)
        if job is not None and job.state == ACKED:
            return None
        return intact(node, sender, job_id)

    intact = requeue._pending
    patch.setattr(requeue, "_pending", pending)


def setack_ignored(patch: Patch) -> None:
    """SETACK is confirmed, but not applied."""

    def on_setack(node: NodeState, sender: Peer, message: SetAck) -> None:
        acks.answer_setack(node, sender, message.id, node.jobs.get(message.id))

    patch.setitem(dispatch.ON_MESSAGE, SetAck, on_setack)


def dummies_vouch(patch: Patch) -> None:
    """A dummy ack confirms SETACK as if it were a copy."""

    def answer(node: NodeState, sender: Peer, job_id: JobId, job: Job | None) -> None:
        send.to_node(node, sender, GotAck(job_id, known=job is not None))

    patch.setattr(acks, "answer_setack", answer)


def acks_overruled(patch: Patch) -> None:
    """An imported job is queued even if it is acknowledged here."""

    def take(node: NodeState, sender: Peer, copy: JobCopy, *, is_for_clients: bool) -> Queue | None:
        job = node.jobs.get(copy.id)
        if job is not None and job.state == ACKED and not job.is_dummy:
            job.state = ACTIVE
            # Acknowledged, it is not counted any more.
            job.flags &= ~COUNTED
            job.requeue_at = node.mono + 1
        return intact(node, sender, copy, is_for_clients=is_for_clients)

    intact = transfer.take
    patch.setattr(transfer, "take", take)


def without_dummies(patch: Patch) -> None:
    """An ack for an unknown job leaves no dummy ack."""
    patch.setattr(acks, "_remember_unknown", nothing)


def without_back_off(patch: Patch) -> None:
    """The garbage collection of acks retries every second, without back-off."""
    patch.setattr(lifecycle, "gc_wait", lambda _: 1000)


def not_told_on_return(patch: Patch) -> None:
    """A holder that returns is told of acks only by the next attempt to collect them."""
    patch.setattr(resend, "begin", nothing)


def unknown_jobs_not_fastacked(patch: Patch) -> None:
    """FASTACK at a node that does not know the job is not passed on."""
    intact = acks.fast_ack

    def fast_ack(node: NodeState, job_id: JobId) -> bool:
        return job_id in node.jobs and intact(node, job_id)

    patch.setattr(acks, "fast_ack", fast_ack)
