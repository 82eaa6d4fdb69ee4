"""Jobs that wait after a NACK or RELEASE before they are requeued (docs/bus.md, "NACK with a
delay").

The node of the NACK enqueues the job when the wait ends. It sends POSTPONED to the other holders,
which enqueue the job a moment later if that node has not. If a holder without this wait announces a
requeue, holders that have it answer with POSTPONED. A holder that does not support POSTPONED
receives QUEUED, which counts the NACK, and WORKING, which removes the job from its queue for a
whole RETRY; and WORKING again whenever it announces the next requeue.

RELEASE with a delay is announced in the same way, and counted separately (decision 102): the
message has the count, and a holder with a lower count adopts it.
"""

from collections.abc import Iterable
from typing import Final

import attrs

from disque_trio.statemachine import journaling, lifecycle, reasons, send, trace, tracked_deliveries
from disque_trio.statemachine.base import (
    ACTIVE,
    BCAST_QUEUED,
    BCAST_WILLQUEUE,
    DELAYED,
    LEASED,
    LONG_WAITS,
    LONGEST_PERIOD_S,
    ORIGINAL_PERIOD_S,
    POSTPONED,
    POSTPONES,
    QUEUED,
    QUEUED_ONCE,
    SNOOZES,
    TAKEN,
    LinkId,
    Millis,
    NodeId,
)
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.extensions import MAX_SNOOZES, Extensions
from disque_trio.statemachine.job import ANNOUNCE_AHEAD, DESYNC, Job, rank
from disque_trio.statemachine.memory import put_extensions
from disque_trio.statemachine.messages import JobCopy, Postponed, Queued, Working
from disque_trio.statemachine.state import NodeState

MARGIN: Final = ANNOUNCE_AHEAD + DESYNC
"""The shortest time that the other holders wait after the node of the NACK."""
_SPREAD: Final = 2 * DESYNC
_CLEARED: Final = reasons.OF_PERIOD | DELAYED
_SET: Final = POSTPONED | QUEUED_ONCE | BCAST_QUEUED | BCAST_WILLQUEUE
_DOUBLINGS: Final = 40
"""Beyond this number of NACKs, every back-off has its maximum."""
_LONGEST: Final[Millis] = LONGEST_PERIOD_S * 1000
"""Only a damaged copy has a longer back-off."""
SHORT: Final[Millis] = ORIGINAL_PERIOD_S * 1000
"""A longer wait needs LONG_WAITS of all holders."""
_LONGEST_REPORTED: Final[Millis] = 0xFFFF_FFFF
"""The part of a longer wait that is announced later to a node without LONG_WAITS: it asks again at
the end of the part, and receives the rest."""


def backoff(node: NodeState, job: Job) -> Millis:
    """How long a job waits after a NACK without DELAY: twice as long as after the previous one,
    plus or minus a fifth, and at most half of the job's remaining life. 0 without BACKOFF."""
    extensions = job.extensions
    if extensions is None or not extensions.backoff or not job.retry:
        return 0
    wait = min(extensions.backoff << min(job.nacks, _DOUBLINGS), extensions.max_backoff)
    spread = wait * 2 // 5
    wait += int(node.rng.random() * (spread + 1)) - spread // 2
    return min(wait, (job.expires - node.mono) // 2, _LONGEST)


def postpone(node: NodeState, job: Job, wait: Millis, cause: Cause) -> None:
    """A client returns the job, by NACK or RELEASE: enqueue it when the wait ends."""
    if cause is Cause.NACK:
        lifecycle.count_delivery(job, nack=True, redelivery=False)
    else:
        learn(node, job, min(job.snoozes + 1, MAX_SNOOZES))
    _hold_back(node, job, wait)
    reasons.await_delay(node, job)
    trace.trouble(node, job, job.state)
    trace.postpone(node, job, cause, wait)
    announce(node, job, job.holders, cause)
    journaling.hold(node, job)


def learn(node: NodeState, job: Job, snoozes: int) -> None:
    """Adopt a holder's number of snoozes, if it is greater."""
    if snoozes > job.snoozes:
        known = job.extensions or Extensions()
        put_extensions(node.memory, job, attrs.evolve(known, snoozes=snoozes))


def _hold_back(node: NodeState, job: Job, wait: Millis) -> None:
    reasons.clear(node, job, _CLEARED)
    tracked_deliveries.give_up(node, job)
    lifecycle.mark(job, _SET)
    lifecycle.requeue_in(node, job, wait)


def is_postponed(job: Job) -> bool:
    """Does the job wait after a NACK or RELEASE?"""
    return bool(job.flags & POSTPONED)


def is_backing_off(job: Job) -> bool:
    """As `is_postponed`, for a job that is still active."""
    return job.state == ACTIVE and is_postponed(job)


def rest(node: NodeState, job: Job) -> Millis:
    """How long no node may enqueue the job; 0 if it is not postponed, or no longer."""
    if not job.flags & POSTPONED:
        return 0
    until = job.requeue_at if job.flags & DELAYED else job.requeue_at - _margin(node, job)
    return max(until - node.mono, 0)


def _margin(node: NodeState, job: Job) -> Millis:
    """How much longer than the node of the NACK this holder waits. It differs between holders, so
    that they do not requeue the job at the same time."""
    return MARGIN + rank(node.cluster.myself.id, job.id) % _SPREAD


def announce(
    node: NodeState, job: Job, ids: Iterable[NodeId], cause: Cause = Cause.POSTPONED
) -> None:
    """Send these nodes how long the job waits: as a repetition, or with the reason (NACK,
    RELEASE)."""
    wait, nacks = rest(node, job), job.nacks
    groups: dict[tuple[bool, bool], list[LinkId]] = {}
    others: list[LinkId] = []
    for id in ids:
        peer = node.cluster.nodes.get(id)
        if peer is None or not peer.link:
            continue
        known = peer.capabilities
        if not known & POSTPONES:
            others.append(peer.link)
            continue
        counts = bool(known & SNOOZES) or not job.snoozes
        is_whole = bool(known & LONG_WAITS) or wait <= _LONGEST_REPORTED
        groups.setdefault((is_whole, counts), []).append(peer.link)
    is_nack = cause is Cause.NACK
    for (is_whole, counts), links in sorted(groups.items(), reverse=True):
        reported_wait = wait if is_whole else _LONGEST_REPORTED
        snoozes, is_snooze = (job.snoozes, cause is Cause.RELEASE) if counts else (0, False)
        message = Postponed(job.id, reported_wait, nacks, is_nack, snoozes, is_snooze)
        send.broadcast(node, links, message)
    if is_nack:
        send.broadcast(node, others, Queued(job.id, nack=True))
    send.broadcast(node, others, Working(job.id))


def unable(node: NodeState, job: Job) -> NodeId | None:
    """A linked holder that does not support a wait of more than `SHORT`; None if there is none.
    Ignores holders without POSTPONES, which announce a requeue after each RETRY instead."""
    for id in job.holders:
        peer = node.cluster.nodes.get(id)
        if peer is None or not peer.link or not peer.capabilities & POSTPONES:
            continue
        if not peer.capabilities & LONG_WAITS:
            return id
    return None


def obey(node: NodeState, job: Job, message: Postponed) -> None:
    """Handle POSTPONED: another node reports how long the job waits."""
    if not job.retry:
        return
    is_news = _is_news(node, job, message)
    learn(node, job, message.snoozes)
    if not is_news:
        return
    lifecycle.dequeue(node, job, Cause.POSTPONED)
    if message.is_new:
        lifecycle.count_delivery(job, nack=True, redelivery=False)
    if rest(node, job) > message.wait:
        # Two clients have returned it, on two sides of a partition: the longer wait applies.
        return
    _hold_back(node, job, message.wait + _margin(node, job))
    trace.trouble(node, job, job.state)
    trace.postpone(node, job, Cause.POSTPONED, message.wait)
    journaling.hold(node, job)


def _is_news(node: NodeState, job: Job, message: Postponed) -> bool:
    """Does the message change anything here? A repeated wait has no effect on a job that is leased
    here. If another node has delivered it, that delivery may be older or newer than the NACK: then
    the longer wait applies. If the job is queued or postponed here, this node has had the wait
    already, unless it counts fewer NACKs or snoozes, or the wait ends much later than its own."""
    if message.is_new or message.is_snooze:
        return True
    if job.flags & LEASED:
        return False
    if job.flags & TAKEN:
        return node.mono + message.wait + _margin(node, job) > job.requeue_at
    if job.state != QUEUED and not job.flags & POSTPONED:
        return True
    if _is_more(message.nacks, job.nacks) or message.snoozes > job.snoozes:
        return True
    return message.wait > rest(node, job) + MARGIN


def _is_more(one: int, other: int) -> bool:
    """Is `one` greater than `other`? Both wrap at 16 bits."""
    return 0 < (one - other) & 0xFFFF < 0x8000


def stands(node: NodeState, job: Job) -> bool:
    """Does the wait continue although another node reports a delivery (WORKING)? The report may be
    older than the NACK. If it is newer, that node can repeat it, because WILLQUEUE precedes the
    requeue."""
    return rest(node, job) > ANNOUNCE_AHEAD


def is_known_to(job: Job, copy: JobCopy) -> bool:
    """Does the sender of this copy count all NACKs and snoozes that this node counts?"""
    return not _is_more(job.nacks, copy.nacks) and copy.snoozes >= job.snoozes
