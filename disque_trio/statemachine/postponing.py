"""Jobs that wait after a NACK or RELEASE before they are queued again (docs/bus.md, "NACK with a
delay").

The node of the NACK queues the job when the wait is over. The other holders hear of it (POSTPONED),
and queue the job a moment later if that node has not. Whoever knows of the wait answers those that
do not: they have not heard of it, and are about to queue the job. A holder that does not know the
message is sent what it does know: QUEUED, which counts the NACK, and WORKING, which takes the job
out of its queue for a whole RETRY; WORKING again, whenever it announces the next requeue.

RELEASE with a delay is told in the same way, and counted apart (decision 102): the message has the
count, so that of two holders the one that has heard less takes over what the other knows.
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
"""How much longer than the node of the NACK the other holders wait at least."""
_SPREAD: Final = 2 * DESYNC
_CLEARED: Final = reasons.OF_PERIOD | DELAYED
_SET: Final = POSTPONED | QUEUED_ONCE | BCAST_QUEUED | BCAST_WILLQUEUE
_DOUBLINGS: Final = 40
"""Beyond this, every back-off is as long as it may be."""
_LONGEST: Final[Millis] = LONGEST_PERIOD_S * 1000
"""Only a damaged copy has a longer back-off."""
SHORT: Final[Millis] = ORIGINAL_PERIOD_S * 1000
"""A longer wait needs LONG_WAITS of all holders."""
_LONGEST_REPORTED: Final[Millis] = 0xFFFF_FFFF
"""What a node without it is told of a longer one that it hears of later: it asks at the end of
that, and is told the rest."""


def backoff(node: NodeState, job: Job) -> Millis:
    """How long a NACK without DELAY is to wait: twice as long as the one before, within a fifth of
    that either way, and half of what is left of the job's life at most."""
    extensions = job.extensions
    if extensions is None or not extensions.backoff or not job.retry:
        return 0
    wait = min(extensions.backoff << min(job.nacks, _DOUBLINGS), extensions.max_backoff)
    spread = wait * 2 // 5
    wait += int(node.rng.random() * (spread + 1)) - spread // 2
    return min(wait, (job.expires - node.mono) // 2, _LONGEST)


def postpone(node: NodeState, job: Job, wait: Millis, cause: Cause) -> None:
    """A client gives the job back, by NACK or RELEASE: queue it when the wait is over."""
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
    """So often the job was snoozed, as far as one of its holders knows."""
    if snoozes > job.snoozes:
        known = job.extensions or Extensions()
        put_extensions(node.memory, job, attrs.evolve(known, snoozes=snoozes))


def _hold_back(node: NodeState, job: Job, wait: Millis) -> None:
    reasons.clear(node, job, _CLEARED)
    tracked_deliveries.give_up(node, job)
    lifecycle.mark(job, _SET)
    lifecycle.requeue_in(node, job, wait)


def is_postponed(job: Job) -> bool:
    """Does it wait after a NACK or RELEASE?"""
    return bool(job.flags & POSTPONED)


def is_backing_off(job: Job) -> bool:
    """The same of a job that has not ended since."""
    return job.state == ACTIVE and is_postponed(job)


def rest(node: NodeState, job: Job) -> Millis:
    """How long nobody is to queue the job yet; 0 if it is not postponed, or no longer."""
    if not job.flags & POSTPONED:
        return 0
    until = job.requeue_at if job.flags & DELAYED else job.requeue_at - _margin(node, job)
    return max(until - node.mono, 0)


def _margin(node: NodeState, job: Job) -> Millis:
    """Each holder has its own, so that they do not wake together."""
    return MARGIN + rank(node.cluster.myself.id, job.id) % _SPREAD


def announce(
    node: NodeState, job: Job, ids: Iterable[NodeId], cause: Cause = Cause.POSTPONED
) -> None:
    """Tell these nodes how long the job waits: anew, or why it does (NACK, RELEASE)."""
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
    """A holder that cannot count a wait of more than `SHORT`, as far as is known here; None if
    there is none. One without POSTPONES counts none: it asks again after each RETRY."""
    for id in job.holders:
        peer = node.cluster.nodes.get(id)
        if peer is None or not peer.link or not peer.capabilities & POSTPONES:
            continue
        if not peer.capabilities & LONG_WAITS:
            return id
    return None


def obey(node: NodeState, job: Job, message: Postponed) -> None:
    """Another node says how long the job waits."""
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
        # Two clients have given it back, on two sides of a cut: the longer wait holds.
        return
    _hold_back(node, job, message.wait + _margin(node, job))
    trace.trouble(node, job, job.state)
    trace.postpone(node, job, Cause.POSTPONED, message.wait)
    journaling.hold(node, job)


def _is_news(node: NodeState, job: Job, message: Postponed) -> bool:
    """A wait that is repeated is no news to a node whose worker has the job. If another node's
    worker has it, that may be older or newer than the NACK: then the longer wait holds. A node that
    has it queued, or waits, knows of this wait, unless it counts fewer NACKs or snoozes, or the
    wait ends much later than its own."""
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
    """Both wrap at 16 bits."""
    return 0 < (one - other) & 0xFFFF < 0x8000


def stands(node: NodeState, job: Job) -> bool:
    """Does the wait stand although another node says that a worker has it? That may be older than
    the NACK; and before the job is queued, all holders are warned, and can say so again."""
    return rest(node, job) > ANNOUNCE_AHEAD


def is_known_to(job: Job, copy: JobCopy) -> bool:
    """Does the node that sends this copy know of the NACKs and snoozes that are known here?"""
    return not _is_more(job.nacks, copy.nacks) and copy.snoozes >= job.snoozes
