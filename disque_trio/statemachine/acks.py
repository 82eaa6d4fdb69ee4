"""Acknowledgements, and the collection of acknowledged jobs: SETACK, GOTACK, DELJOB (original 6.5),
and our ACKHOLDERS.

An acknowledged job stays as a record until every node that may hold a copy has confirmed the
acknowledgement; then this node sends DELJOB to all of them. Owns `Job.confirmed` and `gc_attempt`
while a job is acked.
"""

from collections.abc import Sequence
from typing import Final

from disque_trio.statemachine import (
    counts,
    journaling,
    key_index,
    lifecycle,
    pressure,
    replication,
    results,
    send,
    shortcuts,
)
from disque_trio.statemachine.base import (
    ACKED,
    ACTIVE,
    DELAYED,
    DELIVERED_HERE,
    GIVEN,
    HANDSHAKE,
    QUEUED,
    RESTORED,
    WAIT_REPL,
    JobId,
    Millis,
    NodeId,
)
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.copies import add_holder, add_holders, named
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import (
    MAX_GC_ATTEMPT,
    Job,
    digest_of,
    is_at_least_once,
    ttl_minutes,
)
from disque_trio.statemachine.messages import AckHolders, DelJob, GotAck, Result, SetAck
from disque_trio.statemachine.nodetable import is_banned
from disque_trio.statemachine.state import KeptResult, NodeState

_OURS_TO_END: Final = (ACTIVE, QUEUED)
_OF_WAITS: Final = DELAYED | RESTORED
MEETS_WITHIN: Final = 5
"""The number of attempts to collect a job, over half a minute, after which the node no longer waits
for nodes outside its table."""


def ack_all(node: NodeState, ids: Sequence[JobId]) -> int:
    """Acknowledge these jobs for a client: as `ack` for each, but jobs with the same holders share
    one SETACK. Returns the number of jobs for which `ack` would return True."""
    count, known, holding = 0, node.jobs, node.cluster.myself.holding
    name, run, leased = b"", 0, 0
    acked: dict[tuple[NodeId, ...], list[Job]] = {}
    for job_id in ids:
        job = known.get(job_id)
        if (
            job is None
            or job.state not in _OURS_TO_END
            or not (job.holders is holding or job.holders in acked or _has_others(node, job))
        ):
            count += ack(node, job_id)
            continue
        if job.queue is not name:
            # Jobs of one queue share the bytes of its name.
            if run:
                counts.acknowledged(node, name, run, leased)
            name, run, leased = job.queue or b"", 0, 0
        run += 1
        if job.flags & DELIVERED_HERE:
            leased += 1
        if job.flags & _OF_WAITS:
            counts.leave(node, job, job.flags & _OF_WAITS)
        if job.holders is holding:
            lifecycle.finish(node, job, Cause.ACKJOB)
        else:
            lifecycle.end(node, job, Cause.ACKJOB)
            _count_attempt(job)
            job.confirmed = holding
            acked.setdefault(job.holders, []).append(job)
            _record(node, job)
        count += 1
    counts.acknowledged(node, name, run, leased)
    if node.group_leases:
        counts.end_group_leases(node, ids)
    for holders, jobs in acked.items():
        shortcuts.begin_collections(node, jobs)
        of = [job.id for job in jobs]
        results.say_acks(node, holders, of, holders)
    return count


def _has_others(node: NodeState, job: Job) -> bool:
    """Is another holder in the node table?"""
    mine, nodes = node.cluster.myself.id, node.cluster.nodes
    return any(id != mine and id in nodes for id in job.holders)


def ack(node: NodeState, job_id: JobId, cause: Cause = Cause.ACKJOB) -> bool:
    """Acknowledge a job, because a client asks for it or its queue is purged. Returns True if the
    job was known here and not acknowledged yet."""
    job = node.jobs.get(job_id)
    if job is None:
        _remember_unknown(node, job_id)
        return False
    was_pending = job.state != ACKED
    if was_pending:
        counts.acknowledged(node, job.queue or b"", 1, cause=cause)
    if was_pending and job.state != WAIT_REPL and lifecycle.is_ours_alone(node, job):
        counts.leave(node, job, job.flags)
        lifecycle.finish(node, job, cause)
        return True
    if was_pending and not _settle(node, job, cause):
        return True
    _count_attempt(job)
    try_collect(node, job)
    if was_pending:
        _record(node, job)
    return was_pending


def ack_with_result(node: NodeState, job_id: JobId, value: bytes, keep: Millis) -> bool:
    """As `ack`, with a result that is kept for `keep` ms. If the job is already acknowledged here,
    the result is dropped."""
    job = node.jobs.get(job_id)
    if job is None or job.state != ACKED:
        queue = (job.queue if job is not None else None) or b""
        until = node.mono + keep
        results.keep(node, job_id, KeptResult(job_id, queue, node.wall, until, value))
    return ack(node, job_id)


def _record(node: NodeState, job: Job) -> None:
    """Record the acknowledgement in the journal, unless the job is already collected."""
    if node.is_recording and job.id in node.jobs:
        journaling.hold(node, job)


def _settle(node: NodeState, job: Job, cause: Cause) -> bool:
    """Acknowledge the job. Returns False if its ADDJOB was waiting for replicas and this node is no
    holder; then the job is dropped here and the holders receive SETACK.

    An acknowledgement proves that another node has the job, so an ADDJOB that still waits for
    replicas succeeds (original 6.5 for SETACK; original, defect 26 for ACKJOB).
    """
    if job.state == WAIT_REPL and not replication.achieved_by_ack(node, job):
        return False
    counts.leave(node, job, job.flags)
    lifecycle.end(node, job, cause)
    lifecycle.schedule_collection(node, job)
    job.confirmed = None
    return True


def _remember_unknown(node: NodeState, job_id: JobId) -> None:
    """Create a dummy ack: a record that keeps the acknowledgement of an unknown job for its holders
    (original 2.4, 6.5)."""
    cluster = node.cluster
    if len(cluster.nodes) == 1 or not is_at_least_once(job_id):
        return
    if cluster.is_leaving:
        # A leaving node keeps no record, but sends SETACK to all nodes once.
        results.say_ack_to_all(node, job_id)
        return
    job = Job(
        id=job_id,
        queue=None,
        body=None,
        replicas=0,
        made=0,
        number=0,
        expires=node.mono + ttl_minutes(job_id) * 60_000,
        delay=0,
        retry=0,
        holders=(),
        state=ACKED,
        gc_at=lifecycle.next_collection(node, 0),
    )
    lifecycle.register(node, job, Cause.DUMMY)
    _count_attempt(job)
    try_collect(node, job)
    _record(node, job)
    pressure.bound_dummies(node)


def _count_attempt(job: Job) -> None:
    """Count an attempt for a client or by the timer. Attempts for other nodes do not count: many
    may occur at once, which would shorten the wait for unknown nodes (docs/differences.md)."""
    job.gc_attempt = min(job.gc_attempt + 1, MAX_GC_ATTEMPT)


def try_collect(node: NodeState, job: Job) -> None:
    """Send SETACK to the nodes that have not confirmed yet. If there are none, collect the job,
    unless an unknown node may hold it."""
    if job.confirmed is None:
        job.confirmed = node.cluster.myself.holding
    missing = unconfirmed(node, job)
    if missing:
        results.say_ack(node, missing, job.id, job.holders)
    elif not _awaits_unknown_nodes(node, job):
        collect(node, job)


def _awaits_unknown_nodes(node: NodeState, job: Job) -> bool:
    """May a node that is not in the table yet hold the job? For a dummy ack, this is the node that
    created the job, or any node in handshake; for other jobs, a holder.

    Gossip adds missing nodes within seconds, so the first `MEETS_WITHIN` attempts wait for it,
    unless this node is alone. A node that is still missing then has been forgotten by the whole
    cluster.
    """
    if job.gc_attempt >= MEETS_WITHIN or len(job.holders) == len(job.confirmed or ()):
        return False
    nodes = node.cluster.nodes
    if len(nodes) == 1:
        return False
    if job.is_dummy:
        origin = job.id[2:10]
        is_meeting = any(peer.flags & HANDSHAKE for peer in nodes.values())
        return is_meeting or not any(id[:8] == origin for id in nodes)
    return any(id not in nodes and not is_banned(node, id) for id in job.holders)


def unconfirmed(node: NodeState, job: Job) -> list[bytes]:
    """The nodes that have not confirmed yet: holders of the job or, for a dummy ack, all nodes.

    Excludes nodes that are not in the table, because they have no address: they have been forgotten
    (original, defects 16 and 33) or are not known yet.
    """
    nodes = node.cluster.nodes
    confirmed = job.confirmed or ()
    if job.is_dummy:
        members = [id for id, peer in nodes.items() if not peer.flags & HANDSHAKE]
        return [id for id in members if id not in confirmed]
    return [id for id in job.holders if id not in confirmed and id in nodes]


def ask_again(node: NodeState, job: Job, ids: Sequence[NodeId]) -> None:
    """Send SETACK to those of `ids` that have not confirmed yet, outside the timer's attempts."""
    confirmed = job.confirmed or ()
    missing = [id for id in ids if id not in confirmed and (job.is_dummy or id in job.holders)]
    if missing:
        job.confirmed = confirmed or node.cluster.myself.holding
        results.say_ack(node, missing, job.id, job.holders)


def collect(node: NodeState, job: Job) -> None:
    """Drop the job after every holder has confirmed, and send DELJOB to them."""
    if _misses_holders(node, job):
        results.say_ack_to_all(node, job.id)
    elif not job.is_dummy:
        send.to_holders(node, job, DelJob(job.id))
    lifecycle.unregister(node, job, Cause.COLLECTED)


def _misses_holders(node: NodeState, job: Job) -> bool:
    """May other nodes have had the job, with no other holder in the node table?

    Then the holders cannot be addressed, so the caller sends one message to all nodes.
    """
    if job.is_dummy or lifecycle.is_ours_alone(node, job):
        return False
    mine, nodes = node.cluster.myself.id, node.cluster.nodes
    return not [id for id in job.holders if id != mine and id in nodes]


def on_due(node: NodeState, job: Job) -> None:
    """The timer of an acked job is due: try to collect it, and schedule the next attempt after a
    longer wait."""
    _count_attempt(job)
    try_collect(node, job)
    if job.id in node.jobs:
        lifecycle.schedule_collection(node, job)


def on_setack(node: NodeState, sender: Peer, message: SetAck) -> None:
    """Handle SETACK: another node acknowledges the job. The sender collects the job if it has every
    holder in this node's list. Otherwise this node sends it ACKHOLDERS if it compares digests, or
    else collects the job itself."""
    job = node.jobs.get(message.id)
    was_pending = job is not None and job.state != ACKED
    if job is not None and was_pending:
        counts.acked(node, Cause.SETACK, 1)
        if is_last_but_one(node, sender, job, message):
            # As if DELJOB had followed.
            counts.leave(node, job, job.flags)
            lifecycle.finish(node, job, Cause.SETACK, Cause.DELJOB)
            send.to_node(node, sender, GotAck(job.id, known=False))
            return
        if not _settle(node, job, Cause.SETACK):
            return
    if job is None:
        node.tombstones.bury(message.id)
    is_sender_s_task = job is None or knows_as_much(message, job)
    if is_sender_s_task or message.holders == 0:
        answer_setack(node, sender, message.id, job)
    if job is None:
        return
    if not is_sender_s_task:
        if message.digest:
            send.to_node(node, sender, AckHolders(job.id, job.holders))
        else:
            try_collect(node, job)
    if was_pending:
        _record(node, job)


def on_result(node: NodeState, sender: Peer, message: Result) -> None:
    """Handle RESULT: keep the result, then proceed as for SETACK."""
    results.take(node, message, node.jobs.get(message.id))
    on_setack(node, sender, SetAck(message.id, message.holders, message.digest))


def knows_as_much(message: SetAck, job: Job) -> bool:
    """Does the sender have every holder in this node's list? An original node sends only the number
    of its holders; that must be at least the number here."""
    if message.digest and job.holders:
        return message.digest == digest_of(job.holders)
    return len(job.holders) <= message.holders


def is_last_but_one(node: NodeState, sender: Peer, job: Job, message: SetAck) -> bool:
    """Are the sender and this node the only holders, and do both have this list?

    Then this node drops the job at once: no third node needs the acknowledgement, the sender keeps
    its own record, and the job's id stays as a tombstone. The sender needs no DELJOB either,
    because GOTACK reports the job as unknown here. Excludes original senders.
    """
    holders = job.holders
    return (
        len(holders) == message.holders == 2
        and sender.id in holders
        and knows_as_much(message, job)
        and sender.capabilities != 0
        and job.state != WAIT_REPL
        and node.cluster.myself.id in holders
    )


def answer_setack(node: NodeState, sender: Peer, job_id: JobId, job: Job | None) -> None:
    """Send GOTACK. It reports a dummy ack as unknown, because two dummy acks would otherwise
    dismiss each other while the real holder is away (docs/differences.md, "Two dummy acks for one
    job")."""
    send.to_node(node, sender, GotAck(job_id, known=job is not None and not job.is_dummy))


def on_gotack(node: NodeState, sender: Peer, message: GotAck) -> None:
    """Handle GOTACK: the sender confirms the acknowledgement."""
    job = node.jobs.get(message.id)
    if job is None or job.state != ACKED:
        return
    if job.is_dummy and message.known:
        lifecycle.unregister(node, job, Cause.DISMISSED)
        return
    if message.known:
        add_holder(job, sender.id)
    if job.confirmed is None:
        return
    if not message.known and len(job.holders) == 2 and sender.id in job.holders:
        # The sender has no copy to delete, and there is no third holder.
        lifecycle.unregister(node, job, Cause.COLLECTED)
        return
    if (job.is_dummy or sender.id in job.holders) and sender.id not in job.confirmed:
        job.confirmed += (sender.id,)
    if not unconfirmed(node, job) and not _awaits_unknown_nodes(node, job):
        collect(node, job)


def on_ackholders(node: NodeState, sender: Peer, message: AckHolders) -> None:
    """Handle ACKHOLDERS: GOTACK with a different list of holders. Sends SETACK to the holders that
    are new here."""
    job = node.jobs.get(message.id)
    if job is None or job.state != ACKED:
        return
    known = job.holders
    if not job.is_dummy:
        add_holders(job, named(node, message.holders))
    on_gotack(node, sender, GotAck(job.id, known=True))
    if job.id in node.jobs:
        ask_again(node, job, [id for id in job.holders if id not in known])


def on_deljob(node: NodeState, sender: Peer, message: DelJob) -> None:
    """Handle DELJOB: drop the job in any state.

    If the job was not acknowledged here, the sender has not asked the holders. If this node has
    sent the job to a node that the sender may not know (GIVEN), it sends SETACK to the other
    holders.
    """
    job = node.jobs.get(message.id)
    node.tombstones.bury(message.id, is_acked=job is not None and job.state == ACKED)
    if job is not None:
        if job.state != ACKED and job.flags & GIVEN:
            others = [id for id in job.holders if id != sender.id]
            send.to_ids(node, others, SetAck(job.id, 0))
        if job.state != ACKED and sender.id[:8] != job.id[2:10]:
            # A FASTACK, so its key is kept. A DELJOB from the node that added the job may follow a
            # failed ADDJOB, which keeps no key.
            key_index.end(node, job)
        replication.drop(node, job, Cause.DELJOB)


def fast_ack(node: NodeState, job_id: JobId) -> bool:
    """FASTACK: drop the job here, and send DELJOB to the other holders. Returns True if it was
    known here."""
    job = node.jobs.get(job_id)
    if job is None:
        node.tombstones.bury(job_id)
        send.to_all(node, DelJob(job_id))
        return False
    if job.state != ACKED:
        counts.acknowledged(node, job.queue or b"", 1, cause=Cause.FASTACK)
    if not lifecycle.is_ours_alone(node, job):
        node.tombstones.bury(job_id)
    if _misses_holders(node, job):
        send.to_all(node, DelJob(job_id))
    else:
        send.to_holders(node, job, DelJob(job_id))
    replication.drop(node, job, Cause.FASTACK)
    return True
