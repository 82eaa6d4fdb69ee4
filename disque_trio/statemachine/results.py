"""Results of jobs, set by ACKJOB RESULT and kept after the job itself is gone (decision 137).

A result is kept for KEEP at the node of the ACKJOB, and at each holder that receives it with the
acknowledgement: the message RESULT replaces SETACK, and is repeated in the same way until its
receiver answers GOTACK. So a result is lost only together with the acknowledgement, or with all
these nodes. The earlier of two results of a job applies.

Owns `NodeState.results`; adds their size to `Memory.held`.
"""

from collections.abc import Iterable, Sequence

from disque_trio.statemachine import journaling, pressure, send
from disque_trio.statemachine.base import DIGESTS, HANDSHAKE, RESULTS, JobId, LinkId, NodeId
from disque_trio.statemachine.job import Job, digest_of
from disque_trio.statemachine.memory import of_result
from disque_trio.statemachine.messages import Result, SetAck
from disque_trio.statemachine.records import StoredResult
from disque_trio.statemachine.state import KeptResult, NodeState


def keep(node: NodeState, job_id: JobId, kept: KeptResult) -> None:
    """Keep this result, unless an earlier one of the job is kept, or it has expired."""
    before = node.results.get(job_id)
    if kept.until <= node.mono or (before is not None and before.order <= kept.order):
        return
    if before is not None:
        _forget(node, before)
    node.results[job_id] = kept
    node.memory.held += of_result(kept.queue, kept.value)
    node.timers.arm(kept, kept.until)
    journaling.keep_result(node, kept)


def on_due(node: NodeState, kept: KeptResult) -> None:
    """The result has expired."""
    _forget(node, kept)


def _forget(node: NodeState, kept: KeptResult) -> None:
    del node.results[kept.id]
    node.memory.held -= of_result(kept.queue, kept.value)
    node.timers.disarm(kept)


def delete(node: NodeState, job_id: JobId) -> None:
    """Delete the result of a job for a client (DELJOB), also in the journal."""
    kept = node.results.get(job_id)
    if kept is not None:
        _forget(node, kept)
        journaling.delete_result(node, kept)


def forget_all(node: NodeState) -> None:
    """Drop all results."""
    for kept in list(node.results.values()):
        _forget(node, kept)


def load(node: NodeState, stored: StoredResult) -> None:
    """Load a result, or its deletion, from the journal."""
    if not stored.until:
        before = node.results.get(stored.id)
        if before is not None:
            _forget(node, before)
        return
    until = node.mono + stored.until - node.wall
    keep(node, stored.id, KeptResult(stored.id, stored.queue, stored.at, until, stored.value))


def take(node: NodeState, message: Result, job: Job | None) -> None:
    """Keep the result in a message of another node, if the job is here and memory is not short."""
    if job is None or job.is_dummy or pressure.level(node) == pressure.WANT:
        return
    until = node.mono + message.left
    queue = job.queue or b""
    keep(node, job.id, KeptResult(job.id, queue, message.at, until, message.value))


def say_acks(
    node: NodeState, ids: Iterable[NodeId], jobs: Sequence[JobId], holders: tuple[NodeId, ...]
) -> None:
    """Send SETACK for each of these jobs, which have the same holders, to these nodes; with the
    digest of the holders for nodes with DIGESTS."""
    if not holders:
        send.of_many(node, ids, SetAck(jobs[0], 0), jobs)
        return
    comparing: list[LinkId] = []
    counting: list[LinkId] = []
    find = node.cluster.nodes.get
    for id in ids:
        peer = find(id)
        if peer is not None and peer.link:
            (comparing if peer.capabilities & DIGESTS else counting).append(peer.link)
    count = len(holders)
    if comparing:
        send.broadcast_many(node, comparing, SetAck(jobs[0], count, digest_of(holders)), jobs)
    if counting:
        send.broadcast_many(node, counting, SetAck(jobs[0], count), jobs)


def say_ack(
    node: NodeState, ids: Iterable[NodeId], job_id: JobId, holders: tuple[NodeId, ...]
) -> None:
    """Send SETACK to these nodes; RESULT instead, if a result is kept here, to nodes with
    RESULTS."""
    kept = node.results.get(job_id) if node.results else None
    if kept is None or kept.until <= node.mono:
        # A result may have expired before its timer runs.
        say_acks(node, ids, (job_id,), holders)
        return
    found = [peer for id in ids if (peer := node.cluster.nodes.get(id)) is not None and peer.link]
    knowing = [peer.link for peer in found if peer.capabilities & RESULTS]
    others = [peer.link for peer in found if not peer.capabilities & RESULTS]
    left = kept.until - node.mono
    count, digest = len(holders), digest_of(holders) if holders else 0
    send.broadcast(node, knowing, Result(job_id, count, kept.at, left, kept.value, digest))
    send.broadcast(node, others, SetAck(job_id, count))


def say_ack_to_all(node: NodeState, job_id: JobId) -> None:
    """`say_ack` to every node, for a job whose holders are unknown."""
    nodes = node.cluster.nodes
    say_ack(node, [id for id, peer in nodes.items() if not peer.flags & HANDSHAKE], job_id, ())
