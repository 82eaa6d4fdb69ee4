"""Replication of a new job: REPLJOB to other nodes, GOTJOB from them, one more node every 50 ms
(original 2.2, 6.2).

Owns `NodeState.drawn_at` and `drawn`, and `Job.confirmed` while a job waits for replicas; sets
`Job.made`, `number`, `expires`, `requeue_at` and `extensions` of one that has waited for its key;
adds to `Ordering.replacing` and `Repair.trailing`.
"""

from typing import Final

import attrs

from disque_trio.statemachine import (
    deadletters,
    journaling,
    key_index,
    key_search,
    lifecycle,
    pending_adds,
    results,
    send,
    stamps,
)
from disque_trio.statemachine.base import (
    ACKED,
    BCAST_QUEUED,
    DEAD,
    FOREVER,
    GROWN,
    LEAVING,
    WAIT_REPL,
    Failure,
    Millis,
    NodeId,
    Reply,
    Status,
)
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.copies import (
    add_holder,
    add_holders,
    adopt,
    candidates_for,
    could_hold,
    has_enough,
    is_orphan,
    is_over,
    keeps,
    named,
    readers,
    send_ack_back,
    send_state,
    snapshot,
    spread,
)
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.extensions import FOLLOWS, Extensions
from disque_trio.statemachine.job import DESYNC, LAST_STAMP, STAMPS, Job, PendingAdd, needs
from disque_trio.statemachine.messages import DelJob, Enqueue, GotJob, JobCopy, ReplJob
from disque_trio.statemachine.state import NodeState

RESEND_EVERY: Final[Millis] = 100
TRAILS_FOR: Final[Millis] = 1000
"""How long nodes may take to confirm copies after the reply to ADDJOB."""

NOT_ENOUGH_NODES: Final = b"NOREPL Not enough reachable nodes for the requested replication level"
TIMED_OUT: Final = b"NOREPL Timeout reached before replicating to the requested number of nodes"
OUT_OF_REACH: Final = b"NOREPL Nodes failed or left after the job was sent: too few for its copies"
JOB_REMOVED: Final = (
    b"NOREPL job removed (expired?) before the requested replication level was achieved"
)


def is_external(node: NodeState, replicas: int, *, is_async: bool, needs: int = 0) -> bool:
    """Must a new job be held by other nodes only (original 6.9, 6.10)?

    A leaving node keeps no copy. A node that is short of memory keeps none either, if enough others
    are reachable and the client waits for their confirmations, because they may be short of memory,
    too.
    """
    cluster = node.cluster
    if cluster.myself.flags & LEAVING:
        return True
    memory = node.memory
    if memory.held <= memory.soft or is_async:
        return False
    return replicas <= candidates_for(node, needs)


def add(
    node: NodeState, job: Job, *, blocking: Client | None, deadline: Millis, sync: int = 0
) -> None:
    """Add a new job.

    The client `blocking` waits for `sync` copies; None if no client waits (REPLICATE 1, or ASYNC).
    For a job without holders, of which this node keeps no copy, the client must wait.
    """
    external = not job.holders
    add_nodes(node, job, job.replicas if external else job.replicas - 1)
    if blocking is None:
        if job.replicas > 1:
            _send_to(node, job, job.holders, no_reply=True)
        lifecycle.begin(node, job)
        return
    _await_copies(node, job, external=external)
    pending_adds.begin(node, blocking, job, deadline, sync)
    _send_to(node, job, job.holders, no_reply=False)
    _achieved_if_enough(node, job)


def _await_copies(node: NodeState, job: Job, *, external: bool) -> None:
    lifecycle.register(node, job, Cause.ADD)
    job.confirmed = () if external else (node.cluster.myself.id,)


def follow(node: NodeState, job: Job, stamp: int, *, replaces: bool) -> None:
    """Hold back a new job until the earlier jobs with its key have ended (`key_ordering`). `stamp`
    is the greatest creation stamp among those."""
    job.made, job.number = divmod(min(stamp + 1, LAST_STAMP), STAMPS)
    job.extensions = attrs.evolve(job.extensions or Extensions(), follows=FOLLOWS)
    if replaces:
        ordering = node.keys.ordering
        ordering.replacing[job.id] = False


def add_claimed(node: NodeState, job: Job, waited: Millis, *, is_async: bool) -> None:
    """Add a new job whose ADDJOB has waited for its key for `waited` ms (`key_claim`)."""
    external = not job.holders
    # The job's times count from now.
    job.made, job.number = max(stamps.next_stamp(node), (job.made, job.number))
    job.expires = node.timers.shared(job.expires + waited)
    job.requeue_at += waited
    if not external and (is_async or job.replicas == 1):
        _answer(node, job)
        add(node, job, blocking=None, deadline=0)
        key_index.await_turn(node, job)
        return
    add_nodes(node, job, job.replicas if external else job.replicas - 1)
    _await_copies(node, job, external=external)
    pending_adds.await_copies(node, job)
    _send_to(node, job, job.holders, no_reply=False)
    _achieved_if_enough(node, job)


def add_nodes(node: NodeState, job: Job, count: int) -> int:
    """Add up to `count` reachable nodes to the job's holders. Returns how many were added."""
    if count <= 0:
        return 0
    peers, holders, wanted = node.cluster.reachable, job.holders, needs(job)
    candidates = [p.id for p in peers if p.link and p.id not in holders and keeps(p, wanted)]
    if len(candidates) > count:
        candidates = _drawn(node, job, candidates, count)
    add_holders(job, tuple(candidates))
    return len(candidates)


def _drawn(node: NodeState, job: Job, candidates: list[NodeId], count: int) -> list[NodeId]:
    """Choose `count` candidates at random; if nodes share zones or addresses, spread the job over
    these.

    Jobs of the same millisecond use the same order: a few nodes receive many jobs at once, instead
    of each node a few, which would wake each of them (docs/performance.md).
    """
    draw = node.rng.random
    if node.cluster.is_crowded:
        # A shuffle: with a rotation, the first node of each address would receive more jobs than
        # the others.
        return spread(node, job.holders, sorted(candidates, key=lambda _: draw()), count)
    if node.drawn_at != node.mono:
        node.drawn_at = node.mono
        node.drawn = draw()
    first = int(node.drawn * len(candidates))
    return (candidates[first:] + candidates[:first])[:count]


def _send_to(node: NodeState, job: Job, ids: tuple[bytes, ...], *, no_reply: bool) -> None:
    if ids := readers(node, ids, job):
        send.to_ids(node, ids, ReplJob((snapshot(node, job),), no_reply=no_reply))


def on_client_due(node: NodeState, client: Client) -> None:
    """The timer of a client that waits for replicas: an ADDJOB has timed out, or its job is sent to
    one more node."""
    for pending in list(client.pending_adds):
        if (job := pending.job) is None:
            continue
        is_late = bool(pending.deadline and node.mono >= pending.deadline)
        is_due = is_late or node.mono >= pending.widen_at
        has_copies = node.keys.ordering.replacing.get(job.id, False)
        is_waiting = job.state == WAIT_REPL and not has_copies
        if is_due and is_waiting and len(job.confirmed or ()) >= pending.sync:
            achieved(node, job)  # the time for copies in other zones is over
        elif is_late:
            if has_copies:
                pending_adds.settle(node, job, Status(job.id))
                continue
            late = Failure(TIMED_OUT) if job.id in node.jobs else key_search.timed_out(node, job)
            give_up(node, job, late)
        elif is_due and not _keep_after_all(node, job):
            if could_hold(node, job) < pending.sync:
                give_up(node, job, Failure(OUT_OF_REACH))
            else:
                _widen(node, pending, job)
    pending_adds.rearm(node, client)


def _keep_after_all(node: NodeState, job: Job) -> bool:
    """Hold a copy of a job that was to be held by other nodes only, because they have not confirmed
    it in time: they may be short of memory, too, or unreachable. Returns whether this copy
    completes the required number.

    The same applies to a node that is no longer leaving. The others may have enqueued or
    acknowledged the job by then, without a message to this node, which is not in their lists of
    holders. So it waits for a whole period, and sends WILLQUEUE before it enqueues the job.
    """
    mine = node.cluster.myself.id
    if mine in job.holders or node.cluster.is_leaving:
        return False
    if _may_be_queued_elsewhere(node, job):
        lifecycle.mark(job, BCAST_QUEUED)
        lifecycle.restart_retry(node, job)
    add_holder(job, mine)
    job.confirmed = (*(job.confirmed or ()), mine)
    is_enough = len(job.confirmed) >= node.adding[job.id].sync
    if is_enough:
        # The holders have each other in their lists, but not this node.
        _send_to(node, job, job.holders, no_reply=True)
        achieved(node, job)
    return is_enough


def _may_be_queued_elsewhere(node: NodeState, job: Job) -> bool:
    """May a holder have enqueued the job, because its first period is over?"""
    period = job.retry if job.delay else 0
    return bool(job.retry) and node.mono >= job.requeue_at + period - DESYNC


def _widen(node: NodeState, pending: PendingAdd, job: Job) -> None:
    """Send the job to one more node, and the new list of holders to all. If there is no other node,
    resend the job."""
    confirmed = job.confirmed or ()
    waiting_for = tuple(id for id in job.holders if id not in confirmed)
    if add_nodes(node, job, 1):
        pending_adds.widen_in(node, pending, node.knobs.widen_every)
        _send_to(node, job, (*waiting_for, job.holders[-1]), no_reply=False)
        _send_to(node, job, confirmed, no_reply=True)
    else:
        pending_adds.widen_in(node, pending, RESEND_EVERY)
        _send_to(node, job, waiting_for, no_reply=False)


def achieved(node: NodeState, job: Job) -> None:
    """The job has enough copies: reply to the client, and have a holder enqueue the job.

    A node that keeps no copy sends no ENQUEUE if a holder may have enqueued the job already,
    because the receiver may not have received QUEUED.
    """
    confirmed = job.confirmed or ()
    _answer(node, job)
    # A node that has not confirmed may refuse copies: `repair` must not count it.
    job.confirmed = confirmed if len(confirmed) < len(job.holders) else None
    if job.extensions is not None:
        key_index.mark_dirty(node, job)
        key_index.await_turn(node, job)
    if node.cluster.myself.id in job.holders:
        if len(confirmed) < job.replicas:
            # The other copies follow in the background (decision 111). `repair` chooses other nodes
            # if these do not confirm in time.
            repair = node.repair
            repair.trailing[job.id] = node.mono + TRAILS_FOR
            if not repair.due:
                node.timers.arm(repair, node.mono + TRAILS_FOR)
        deadletters.begin(node, job)
        return
    lifecycle.unregister(node, job, Cause.HANDED_OVER)
    others = tuple(id for id in confirmed if id in node.cluster.nodes)
    if others and not job.flags & BCAST_QUEUED and not _may_be_queued_elsewhere(node, job):
        # One holder must enqueue it, now or after the rest of its delay.
        chosen = others[int(node.rng.random() * len(others))]
        left = -(-min(job.delay, max(job.requeue_at - node.mono, 0)) // 1000)
        send.to_ids(node, (chosen,), Enqueue(job.id, left))


def _answer(node: NodeState, job: Job) -> None:
    """Reply to the ADDJOB of a job that has its copies. If it replaces another job, end that one
    first, and reply afterwards."""
    ordering = node.keys.ordering
    if job.id in ordering.replacing:
        ordering.replacing[job.id] = True
        pending_adds.widen_in(node, node.adding[job.id], FOREVER)
        key_index.await_end(node, job)
    else:
        pending_adds.settle(node, job, Status(job.id))


def achieved_by_ack(node: NodeState, job: Job) -> bool:
    """A job that waits for replicas here was acknowledged, so the ADDJOB succeeds. Returns whether
    this node holds the job. A node that keeps no copy sends SETACK to the holders, and drops the
    job."""
    pending_adds.settle(node, job, Status(job.id))
    _replace_nothing(node, job)
    job.confirmed = None
    if node.cluster.myself.id in job.holders:
        return True
    results.say_ack(node, job.holders, job.id, job.holders)
    node.tombstones.bury(job.id)
    lifecycle.unregister(node, job, Cause.HANDED_OVER)
    return False


def give_up(node: NodeState, job: Job, reply: Reply) -> None:
    """Fail an ADDJOB with `reply`, and remove its job, here and at linked holders."""
    pending_adds.settle(node, job, reply)
    _replace_nothing(node, job)
    _take_back(node, job)


def _replace_nothing(node: NodeState, job: Job) -> None:
    node.keys.ordering.replacing.pop(job.id, None)


def abandon(node: NodeState, client: Client) -> None:
    """Remove the jobs for whose replicas a disconnected client was waiting."""
    for job in pending_adds.abandon(node, client):
        if node.keys.ordering.replacing.get(job.id):
            # The job stays, because the one that it replaces may have ended.
            key_index.mark_dirty(node, job)
        else:
            _replace_nothing(node, job)
            _take_back(node, job)


def _take_back(node: NodeState, job: Job) -> None:
    """Delete the job, here and at linked holders. A job with a key leaves a tombstone: its id must
    not be returned, even if a holder does not receive this DELJOB."""
    if job.id not in node.jobs:
        key_index.mark_dirty(node, job)
        return
    send.to_holders(node, job, DelJob(job.id))
    if job.extensions is not None:
        node.tombstones.bury(job.id, is_acked=False)
    lifecycle.unregister(node, job, Cause.ADD_FAILED)


def drop(node: NodeState, job: Job, cause: Cause) -> None:
    """Drop a job here. If a client still waits for its replicas, its ADDJOB fails."""
    if job.state == WAIT_REPL:
        give_up(node, job, Failure(JOB_REMOVED))
    else:
        lifecycle.unregister(node, job, cause)


def on_repljob(node: NodeState, sender: Peer, message: ReplJob) -> None:
    """Handle REPLJOB: hold a copy and answer GOTJOB, unless this node is leaving or the queue is
    paused in input.

    A node that has a copy already adds the holders in any case. If the job is acknowledged here,
    this node sends SETACK to the sender, which still has the job, and to the new holders. A node
    that is short of memory accepts no new copy (original 6.10).
    """
    if len(message.copies) != 1:
        return
    copy = message.copies[0]
    job = node.jobs.get(copy.id)
    if job is not None and job.state == ACKED:
        send_ack_back(node, sender, job, copy.holders)
        return
    if job is not None:
        _join_holders(node, job, copy)
        deadletters.on_copy(node, sender, job, copy)
    elif is_over(node, sender, copy.id):
        return
    if node.cluster.is_leaving or lifecycle.is_paused_in(node, copy.queue):
        return
    if job is None:
        if node.memory.held > node.memory.soft:
            return
        if copy.extensions is not None and not node.keeps_extensions:
            return
        job = adopt(node, copy)
        lifecycle.mark(job, BCAST_QUEUED)
        lifecycle.register(node, job, Cause.REPLJOB)
        journaling.hold(node, job)
    _leave_to_repair(node, sender, job)
    if not message.no_reply and copy.id in node.jobs:
        send.to_node(node, sender, GotJob(copy.id))


def _join_holders(node: NodeState, job: Job, copy: JobCopy) -> None:
    """Add the holders in the copy. If the copy lacks one of this node's list, two holders have
    repaired the job, and their lists must be exchanged (`holder_exchange`)."""
    if job.retry and any(id not in copy.holders for id in job.holders):
        lifecycle.mark(job, GROWN)
    add_holders(job, named(node, copy.holders))


def _leave_to_repair(node: NodeState, sender: Peer, job: Job) -> None:
    """If the creator is lost, a copy from another node means that it repairs the job, and has the
    other holders confirm theirs (decision 127). So all holders except the creator count as
    confirmed here."""
    if sender.id.startswith(job.id[2:10]):
        return  # the creator itself, as nearly always
    if job.confirmed is None and is_orphan(node, job.id, job.holders):
        job.confirmed = tuple([id for id in job.holders if id[:8] != job.id[2:10]])


def _confirm_late(node: NodeState, job: Job, holder: NodeId) -> None:
    """A node confirms a copy after the reply to ADDJOB. If the job is dead, send JOBSTATE again,
    because it may have arrived before the copy."""
    if holder in job.holders and holder not in (job.confirmed or ()):
        if job.state == DEAD:
            send_state(node, job, (holder,))
        confirmed = (*(job.confirmed or ()), holder)
        job.confirmed = confirmed if len(confirmed) < len(job.holders) else None


def take_confirmation(node: NodeState, sender: Peer, message: GotJob) -> None:
    """Handle GOTJOB for a new job: one more node holds a copy."""
    job = node.jobs.get(message.id)
    if job is None or job.state != WAIT_REPL:
        if job is not None and job.confirmed is not None and job.state != ACKED:
            _confirm_late(node, job, sender.id)
        return
    add_holder(job, sender.id)
    confirmed = job.confirmed or ()
    if sender.id not in confirmed:
        job.confirmed = (*confirmed, sender.id)
    _achieved_if_enough(node, job)


def _achieved_if_enough(node: NodeState, job: Job) -> None:
    if has_enough(node, job, node.adding[job.id].sync):
        achieved(node, job)
