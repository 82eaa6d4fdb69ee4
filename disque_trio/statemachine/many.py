"""The same message about many jobs, in one pass: WORKING, SETACK, GOTACK and DELJOB.

Each function has the effects of its single message, for one job after another: read that one first
(`requeue.on_working`, `acks.on_setack`, and so on). Values that are the same for all jobs are
computed once: the sender, the other holders, the answer. The jobs share one random offset of their
times. Unusual jobs, such as one that is acknowledged already, are passed to the handler of the
single message.

Writes `Job.flags`, as `lifecycle` does, and `Job.confirmed` of acknowledged jobs, as `acks` does.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs

from disque_trio.statemachine import acks, counts, journaling, lifecycle, requeue, send, shortcuts
from disque_trio.statemachine.base import (
    ACKED,
    ACTIVE,
    BCAST_QUEUED,
    POSTPONED,
    QUEUED,
    QUEUED_ONCE,
    RETURNING,
    TAKEN,
    JobId,
    NodeId,
)
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.counts import COUNTED
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import DelJob, GotAck, JobMessage, SetAck, Working
from disque_trio.statemachine.state import NodeState

_TAKEN_ONCE: Final = TAKEN | QUEUED_ONCE | BCAST_QUEUED


def on_working(node: NodeState, sender: Peer, _message: Working, ids: Sequence[JobId]) -> None:
    """WORKING: the sender has delivered these jobs."""
    find, deliverer = node.jobs.get, sender.id
    postponed: list[Job] = []
    for id in ids:
        job = find(id)
        if (
            job is not None
            and job.state == ACTIVE
            and job.retry
            and not job.flags & (POSTPONED | RETURNING)
            and deliverer in job.holders
            and job.extensions is None
        ):
            if job.flags & COUNTED:
                counts.leave(node, job, job.flags)
            job.flags = job.flags & ~COUNTED | _TAKEN_ONCE
            postponed.append(job)
        else:
            requeue.on_working(node, sender, Working(id))
    shortcuts.restart_retries(node, postponed)


def on_setack(node: NodeState, sender: Peer, message: SetAck, ids: Sequence[JobId]) -> None:
    """SETACK: the sender has acknowledged these jobs. It collects the jobs for which it has every
    holder in this node's lists."""
    find = node.jobs.get
    known: list[JobId] = []
    unknown: list[JobId] = []
    acked: list[Job] = []
    for id in ids:
        job = find(id)
        if job is None:
            node.tombstones.bury(id)
            unknown.append(id)
        elif job.state not in (ACTIVE, QUEUED) or not acks.knows_as_much(message, job):
            acks.on_setack(node, sender, SetAck(id, message.holders, message.digest))
        elif acks.is_last_but_one(node, sender, job, message):
            counts.acked(node, Cause.SETACK, 1)
            counts.leave(node, job, job.flags)
            lifecycle.finish(node, job, Cause.SETACK, Cause.DELJOB)
            unknown.append(id)
        else:
            counts.leave(node, job, job.flags)
            lifecycle.end(node, job, Cause.SETACK)
            job.confirmed = None
            acked.append(job)
            known.append(id)
            if node.is_recording:
                journaling.hold(node, job)
    counts.acked(node, Cause.SETACK, len(acked))
    shortcuts.begin_collections(node, acked)
    for answered, is_known in ((known, True), (unknown, False)):
        if answered:
            send.of_many(node, (sender.id,), GotAck(answered[0], is_known), answered)


@attrs.define(eq=False)
class _Confirmation:
    """The effect of a GOTACK on jobs with the same holders and the same confirmations."""

    holders: tuple[NodeId, ...]
    before: tuple[NodeId, ...] | None
    after: tuple[NodeId, ...] | None
    """The holders that have confirmed afterwards; None if the handler of the single message must
    decide."""
    is_over: bool
    """All holders have confirmed."""


def on_gotack(node: NodeState, sender: Peer, message: GotAck, ids: Sequence[JobId]) -> None:
    """GOTACK: the sender confirms these acknowledgements."""
    find = node.jobs.get
    step: _Confirmation | None = None
    over: list[JobId] = []
    ended: list[tuple[_Confirmation, list[JobId]]] = []
    for id in ids:
        job = find(id)
        if job is None or job.state != ACKED:
            continue
        if step is None or job.holders is not step.holders or job.confirmed is not step.before:
            step = _confirmation(node, sender, message, job)
            over = []
            ended.append((step, over))
        if step.after is None or job.is_dummy:
            acks.on_gotack(node, sender, GotAck(id, message.known))
            continue
        job.confirmed = step.after
        if step.is_over:
            over.append(id)
            lifecycle.unregister(node, job, Cause.COLLECTED)
    for step, over in ended:
        if over and not _has_no_copy(message, step.holders):
            send.of_many(node, step.holders, DelJob(over[0]), over)


def _confirmation(node: NodeState, sender: Peer, message: GotAck, job: Job) -> _Confirmation:
    holders, before = job.holders, job.confirmed
    after, is_over = None, False
    if before is not None and sender.id in holders and sender.id not in before:
        after = (*before, sender.id)
        left = [id for id in holders if id not in after]
        is_over = not left or _has_no_copy(message, holders)
        if not is_over and not any(id in node.cluster.nodes for id in left):
            # The other holders are not in the node table (yet).
            after = None
    return _Confirmation(holders, before, after, is_over)


def _has_no_copy(message: GotAck, holders: tuple[NodeId, ...]) -> bool:
    """Has the only other holder no copy to delete?"""
    return not message.known and len(holders) == 2


def on_deljob(node: NodeState, sender: Peer, _message: DelJob, ids: Sequence[JobId]) -> None:
    """DELJOB: drop these jobs."""
    find = node.jobs.get
    for id in ids:
        job = find(id)
        if job is not None and job.state == ACKED:
            node.tombstones.bury(id)
            lifecycle.unregister(node, job, Cause.DELJOB)
        else:
            acks.on_deljob(node, sender, DelJob(id))


ON_MANY: Final[dict[type[JobMessage], Callable[[NodeState, Peer, Any, Sequence[JobId]], None]]] = {
    Working: on_working,
    SetAck: on_setack,
    GotAck: on_gotack,
    DelJob: on_deljob,
}
