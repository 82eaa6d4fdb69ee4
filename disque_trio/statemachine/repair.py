"""Repair: jobs that have permanently lost holders get new copies (decision 19).

A holder is lost when it was forgotten, or has been failing for longer than `replica-repair-after`.
One of the remaining holders adds copies until the job has REPLICATE copies; if it does not, the
next holder in a fixed order takes over. The work is done in slices: each run checks a limited
number of jobs, and the number of unconfirmed copies is limited.

Owns `Repair`, `Stats.copies_repaired`, and `Job.confirmed` while an active, queued or dead job has
holders that have not confirmed a copy. Original nodes receive copies, but do not repair.
"""

from typing import Final

import attrs

from disque_trio.statemachine import journaling, postponing, replication, send
from disque_trio.statemachine.base import (
    ACTIVE,
    DEAD,
    DELAYED,
    FAIL,
    HANDSHAKE,
    LEAVING,
    NOADDR,
    PFAIL,
    QUEUED,
    JobId,
    Millis,
    NodeId,
)
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.copies import (
    add_holder,
    add_holders,
    is_orphan,
    readers,
    reads,
    sent_to,
    snapshot,
    spread,
)
from disque_trio.statemachine.job import LAST_STAMP, Job, rank
from disque_trio.statemachine.jobtable import Walk
from disque_trio.statemachine.messages import GotJob, JobCopy, ReplJob
from disque_trio.statemachine.state import NodeState, Repair

RUN_EVERY: Final[Millis] = 20
WINDOW: Final = 100
"""How many jobs may wait for confirmation at once."""
WINDOW_BYTES: Final = 4 << 20
"""A run sends no further copies while the bodies of unconfirmed ones have this size, in bytes."""
PATIENCE: Final[Millis] = 5000
"""After this time without GOTJOB, the next pass chooses another node."""
TAKE_OVER: Final[Millis] = 15_000
"""How long each holder in the order waits for the previous one."""
SILENCE: Final[Millis] = 60_000
"""How long a node that did not answer is chosen last, because it may be short of memory."""
AGAIN: Final[Millis] = 30_000
"""The pause between passes while jobs lack copies."""

_DOWN: Final = FAIL | NOADDR
_LIVE: Final = (ACTIVE, QUEUED, DEAD)


def watch(node: NodeState) -> None:
    """Once per second: find lost nodes, and begin a pass over the jobs if their holders may have
    changed."""
    repair = node.repair
    _note_failures(node)
    lost = _failed_for_long(node)
    members = tuple(id for id, peer in node.cluster.nodes.items() if not peer.flags & HANDSHAKE)
    targets = tuple(peer.id for peer in node.cluster.reachable if peer.is_connected)
    is_first = not repair.members
    if is_first or not _has_all(members, repair.members) or not _has_all(repair.lost, lost):
        repair.changed_at = repair.again = node.mono
        repair.has_changes = True
    elif not _has_all(repair.targets, targets):
        repair.again = node.mono
    repair.members = members
    repair.targets = targets
    repair.lost = lost
    is_due = (repair.has_changes or repair.lacking) and repair.again <= node.mono
    if (is_due or repair.down != tuple(repair.failing)) and repair.walk is None:
        _begin(node)


def _has_all(one: tuple[NodeId, ...], other: tuple[NodeId, ...]) -> bool:
    return all(id in one for id in other)


def _note_failures(node: NodeState) -> None:
    """Record since when each failing node has been failing, as seen by this node."""
    failing = node.repair.failing
    node.repair.failing = {
        id: failing.get(id, node.mono)
        for id, peer in node.cluster.nodes.items()
        if peer.flags & _DOWN
    }


def _failed_for_long(node: NodeState) -> tuple[NodeId, ...]:
    after = node.config.replica_repair_after_s * 1000
    if not after:
        return ()
    return tuple(id for id, since in node.repair.failing.items() if node.mono - since >= after)


def _begin(node: NodeState) -> None:
    """Begin a pass over the current jobs."""
    repair = node.repair
    repair.found = repair.found_lacking = repair.found_reported = 0
    repair.down = tuple(repair.failing)
    repair.has_changes = False
    if node.jobs:
        repair.walk = node.table.walk()
        node.timers.arm(repair, node.mono + RUN_EVERY)
    else:
        _end_pass(node)


def on_due(node: NodeState, repair: Repair) -> None:
    """One slice."""
    _forget_late(node)
    _look_at_trailing(node)
    if repair.walk is not None:
        _look(node, repair.walk)
        if repair.walk.is_over:
            _end_pass(node)
    if repair.awaited or repair.walk is not None:
        node.timers.arm(repair, node.mono + RUN_EVERY)
    elif repair.trailing:
        node.timers.arm(repair, next(iter(repair.trailing.values())))


def _look_at_trailing(node: NodeState) -> None:
    """Place the missing copies of new jobs at other nodes. If there are no candidates, a later pass
    tries again."""
    repair = node.repair
    while repair.trailing:
        job_id, until = next(iter(repair.trailing.items()))
        if until > node.mono:
            break
        del repair.trailing[job_id]
        job = node.jobs.get(job_id)
        if job is None or job.state not in _LIVE or job_id in repair.awaited:
            continue
        holders = job.holders if job.confirmed is None else job.confirmed
        holding = tuple(id for id in holders if _is_live(node, id))
        if len(holding) < job.replicas:
            for holder in _asked(job) if job.confirmed is not None else ():
                repair.silent[holder] = node.mono + SILENCE
            repair.under += 1
            repair.lacking += 1
            repair.reported += 1
            _ask(node, job, holding)


def _end_pass(node: NodeState) -> None:
    repair = node.repair
    repair.walk = None
    repair.under, repair.lacking = repair.found, repair.found_lacking
    repair.reported = repair.found_reported
    if not repair.has_changes:
        repair.again = node.mono + AGAIN


def _forget_late(node: NodeState) -> None:
    """Stop waiting for nodes that have not answered in time: the next pass chooses others."""
    repair = node.repair
    late = [id for id, until in repair.awaited.items() if until <= node.mono]
    for id in late:
        _await_no_more(repair, id)
        job = node.jobs.get(id)
        if job is not None and _is_in_repair(job):
            for holder in _asked(job):
                repair.silent[holder] = node.mono + SILENCE
            repair.again = node.mono


def _await_no_more(repair: Repair, job_id: JobId) -> None:
    del repair.awaited[job_id]
    repair.listed.pop(job_id, None)


def _is_in_repair(job: Job) -> bool:
    return job.state in _LIVE and job.confirmed is not None


def _asked(job: Job) -> list[NodeId]:
    """The nodes that were asked for a copy and have not answered."""
    return [id for id in job.holders if id not in (job.confirmed or ())]


def _look(node: NodeState, walk: Walk) -> None:
    """Check the next jobs of the pass, until enough copies are under way."""
    repair = node.repair
    live: dict[tuple[NodeId, ...], tuple[tuple[NodeId, ...], int]] = {}
    room = WINDOW_BYTES - sum(
        len(node.jobs[id].body or b"") for id in repair.awaited if id in node.jobs
    )
    for _ in range(node.knobs.repair_looks):
        if walk.is_over or len(repair.awaited) >= WINDOW or room <= 0:
            break
        job = next(walk)
        if job.state not in _LIVE or not job.retry:
            # An at-most-once job has one holder: a copy of it would never be enqueued.
            continue
        holders = _counted(node, job)
        if holders not in live:
            some = tuple(id for id in holders if _is_live(node, id))
            live[holders] = some, sum([id not in repair.failing for id in some])
        holding, present = live[holders]
        if present < job.replicas:
            repair.found_lacking += 1
            repair.found_reported += _reports(node, job, holding)
        if len(holding) < job.replicas:
            repair.found += 1
            room -= _mend(node, job, holding)


def _counted(node: NodeState, job: Job) -> tuple[NodeId, ...]:
    """The holders that count: those that have confirmed a copy. If there is no such list, all
    holders; but only this node if the job's creator is lost."""
    if job.confirmed is not None:
        return job.confirmed
    return node.cluster.myself.holding if is_orphan(node, job.id, job.holders) else job.holders


def _is_live(node: NodeState, id: NodeId) -> bool:
    return id in node.cluster.nodes and id not in node.repair.lost


def _reports(node: NodeState, job: Job, holding: tuple[NodeId, ...]) -> bool:
    """Does this node report the job as under-replicated? Only the first live holder of ours does,
    so that the sum over the nodes counts each job once."""
    nodes, me = node.cluster.nodes, node.cluster.myself.id
    there = [
        nodes[id]
        for id in holding
        if id == me or (id not in node.repair.failing and nodes[id].is_ours)
    ]
    return not there or min(there, key=lambda each: _place(each, job)).id == me


def _mend(node: NodeState, job: Job, holding: tuple[NodeId, ...]) -> int:
    """`_ask`, if it is this node's turn."""
    repair = node.repair
    if job.id in repair.awaited or job.id in repair.trailing or not _is_my_turn(node, job, holding):
        return 0
    return _ask(node, job, holding)


def _ask(node: NodeState, job: Job, holding: tuple[NodeId, ...]) -> int:
    """Send REPLJOB to new holders for the missing copies. Returns the size of the body, or 0 if
    none was sent."""
    chosen = _choose(node, job, holding, job.replicas - len(holding))
    if not chosen:
        return 0
    others = tuple(id for id in job.holders if id not in chosen)
    if is_orphan(node, job.id, job.holders):
        node.repair.listed[job.id] = job.holders
    job.confirmed = holding
    add_holders(job, chosen)
    journaling.hold(node, job)
    node.repair.awaited[job.id] = node.mono + PATIENCE
    # The copy has the rest of the delay, because its holder counts from its arrival. The creation
    # stamp is advanced by the elapsed part, so that the sum is unchanged, which a restart uses. The
    # stamp is bounded, because a peer may have sent any.
    left = _rest_of_delay(node, job)
    passed = job.delay_s - left
    stamp = min(job.ctime + passed * 1_000_000_000, LAST_STAMP)
    copy = attrs.evolve(snapshot(node, job), state=ACTIVE, delay=left, ctime=stamp)
    _send(node, chosen, copy)
    # The other holders need the new list: the node of an ACKJOB sends SETACK to all holders in its
    # list.
    _send(node, readers(node, others, job), copy, no_reply=True)
    if postponing.rest(node, job):
        postponing.announce(node, job, chosen)
    return len(copy.body)


def _send(
    node: NodeState, ids: tuple[NodeId, ...], copy: JobCopy, *, no_reply: bool = False
) -> None:
    if copy.extensions is None or copy.extensions.needs:
        send.to_ids(node, ids, ReplJob((copy,), no_reply))
        return
    for id in ids:
        peer = node.cluster.nodes.get(id)
        if peer is not None:
            send.to_node(node, peer, ReplJob((sent_to(peer, copy),), no_reply))


def _is_my_turn(node: NodeState, job: Job, holding: tuple[NodeId, ...]) -> bool:
    """Is it this node's turn to repair the job? Live holders have an order that each can compute;
    each waits for those before it. With `replica-repair-after 0`, only the node that added the job
    adds copies, namely those that SYNC did not await.
    """
    if not node.config.replica_repair_after_s:
        is_mine = job.id[2:10] == node.cluster.myself.id[:8]
        return is_mine and len(_counted(node, job)) < job.replicas
    nodes = node.cluster.nodes
    mine = _place(node.cluster.myself, job)
    if job.confirmed is None:
        holding = tuple([id for id in job.holders if _is_live(node, id)])
    before = [
        id
        for id in holding
        if not nodes[id].flags & (PFAIL | FAIL | NOADDR) and _place(nodes[id], job) < mine
    ]
    return node.mono >= node.repair.changed_at + len(before) * TAKE_OVER


def _place(holder: Peer, job: Job) -> tuple[bool, int]:
    """The holder's place in the order; leaving nodes are last."""
    return bool(holder.flags & LEAVING), rank(holder.id, job.id)


def _choose(
    node: NodeState, job: Job, holding: tuple[NodeId, ...], count: int
) -> tuple[NodeId, ...]:
    """Choose new holders: preferably nodes that have answered recent requests, then nodes that may
    have a copy already (`recovery`), then nodes in other zones and at other addresses.

    Otherwise in the order of `rank`, so that two nodes that act at the same time choose the same
    ones.
    """
    silent = node.repair.silent
    nodes = node.cluster.nodes
    # The link to a target may have ended since.
    targets = [
        peer
        for id in node.repair.targets
        if id not in holding and (peer := nodes.get(id)) is not None and peer.is_connected
    ]
    fit = [peer.id for peer in targets if reads(peer, job)]
    fit.sort(
        key=lambda id: (silent.get(id, 0) > node.mono, id not in job.holders, rank(id, job.id))
    )
    if node.cluster.is_crowded:
        willing = [id for id in fit if silent.get(id, 0) <= node.mono]
        unwilling = [id for id in fit if id not in willing]
        fit = spread(node, holding, willing, count) + unwilling
    return tuple(fit[:count])


def _rest_of_delay(node: NodeState, job: Job) -> int:
    """The rest of the delay in seconds, rounded up. Excludes the additional retry period of a
    holder that does not enqueue the job first."""
    wait = job.requeue_at - node.mono
    if not job.flags & DELAYED:
        wait -= job.retry
    return -(-min(job.delay, max(wait, 0)) // 1000)


def on_gotjob(node: NodeState, sender: Peer, message: GotJob) -> None:
    """Handle GOTJOB: a node holds a copy, of a job that is repaired here or of a new one."""
    if message.id in node.repair.awaited:
        _confirm(node, sender, message.id)
    else:
        replication.take_confirmation(node, sender, message)


def _confirm(node: NodeState, sender: Peer, job_id: JobId) -> None:
    repair = node.repair
    job = node.jobs.get(job_id)
    if job is None or not _is_in_repair(job):
        _await_no_more(repair, job_id)
        return
    repair.silent.pop(sender.id, None)
    add_holder(job, sender.id)
    confirmed = job.confirmed or ()
    if sender.id not in confirmed:
        job.confirmed = confirmed = (*confirmed, sender.id)
        # A holder that was in the list nearly always had its copy already.
        node.stats.copies_repaired += sender.id not in repair.listed.get(job_id, ())
    if sum(_is_live(node, id) for id in confirmed) < job.replicas:
        return
    _await_no_more(repair, job_id)
    repair.under = max(repair.under - 1, 0)
    repair.lacking = max(repair.lacking - 1, 0)
    repair.reported = max(repair.reported - 1, 0)
    repair.found = max(repair.found - 1, 0)
    repair.found_lacking = max(repair.found_lacking - 1, 0)
    repair.found_reported = max(repair.found_reported - 1, 0)
    if not (any(_is_live(node, id) for id in _asked(job)) or is_orphan(node, job.id, job.holders)):
        job.confirmed = None
