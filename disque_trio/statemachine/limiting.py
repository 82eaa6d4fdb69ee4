"""Limits of queues: their distribution, and this node's permitted deliveries (decisions 136, 161).

A new setting is sent to all nodes, and again to a node whose PONG has another digest. The keeper of
the queue grants deliveries (`keeping`). With limits of groups, each group in use has a `Limit` and
a keeper of its own; unused groups have neither.

Owns `NodeState.limits`, `limits_digest`, `group_limits`, `placeless` and `short`, `Queue.limit`,
and of `Limit` the setting and the fields about this node; sets `Outbox.nodes_changed`, because
nodes.conf has the settings.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Final
from zlib import crc32

import attrs

from disque_trio.statemachine import lifecycle, send
from disque_trio.statemachine.base import (
    FAIL,
    LEAVING,
    LIMITS,
    PAUSE_OUT,
    PFAIL,
    CommandError,
    Millis,
    NodeId,
)
from disque_trio.statemachine.cluster import UNREACHABLE, Peer
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.limit import MOST_LIMITS, Limit, Setting
from disque_trio.statemachine.messages import QueueLimit
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.state import NodeState

SLOTS_VALID: Final[Millis] = 2000
"""How long new leases may use a grant, from the report that it answers."""
TOKENS_VALID: Final[Millis] = 1000
"""How long tokens of a rate are valid, from the report that the grant answers."""
PROMISE: Final[Millis] = 2500
"""How long a node's part of a limit is assigned to its keeper, from the assigning report."""
ANSWER: Final[Millis] = 250
"""How long a group waits for the answer of its keeper."""
ASKED_AHEAD: Final = 8
"""How many groups of a queue may wait for an answer even if few clients wait."""
WANTED: Final[Millis] = 1000
"""How long the jobs of a group count as wanted after a client without a wait could have received
one."""
MOST_WANTED: Final = 10_000
"""The maximum number of jobs that a node requests at once."""
_KEPT_FOR: Final[Millis] = 86_400_000
"""How long the removal of a queue's limits is kept."""


# Settings.


def set_limits(node: NodeState, name: bytes, setting: Setting) -> None:
    """Set or remove the limits of a queue for the whole cluster. Raises CommandError if there are
    too many."""
    known = node.limits.get(name)
    if known is None:
        if not setting.is_set:
            return
        if len(node.limits) >= MOST_LIMITS:
            raise CommandError(b"ERR %d queues have limits, which is the most" % MOST_LIMITS)
    epoch = node.wall if known is None else max(node.wall, known.setting.epoch + 1)
    apply(node, name, attrs.evolve(setting, epoch=epoch))
    message = _message(name, node.limits[name].setting)
    peers = node.cluster.nodes.values()
    send.broadcast(
        node, [each.link for each in peers if each.link and each.capabilities & LIMITS], message
    )


def apply(node: NodeState, name: bytes, setting: Setting) -> None:
    """Apply a setting, unless there is a later one. Clients that it permits are served."""
    limit = node.limits.get(name)
    if limit is None:
        if len(node.limits) >= MOST_LIMITS:
            return
        limit = node.limits[name] = Limit(name, setting)
    elif setting.is_after(limit.setting):
        limit.setting = setting
    else:
        return
    limit.known_at = node.mono
    node.limits_digest = None
    node.out.nodes_changed = True
    queue = node.queues.get(name)
    _apply_to_groups(node, limit, queue)
    if queue is not None:
        queue.limit = limit
        if queue.waiting:
            lifecycle.mark_ready(node, queue)


def _apply_to_groups(node: NodeState, of_queue: Limit, queue: Queue | None) -> None:
    setting = of_queue.setting
    for limit in list(node.group_limits.values()):
        if limit.name == of_queue.name:
            limit.setting = setting.of_group
            if not setting.is_of_groups:
                forget_group(node, limit)
    if queue is not None:
        queue.unpark_all()


def restore(node: NodeState, settings: Iterable[tuple[bytes, Setting]]) -> None:
    """Apply the settings of nodes.conf, except limits that were removed long ago."""
    for name, setting in settings:
        if setting.is_set or setting.epoch > node.wall - _KEPT_FOR:
            apply(node, name, setting)
    if node.cluster.size > 1:
        # The assignments of the previous process are unknown.
        for limit in node.limits.values():
            limit.promised_until = limit.known_at = node.mono + PROMISE


def digest(node: NodeState) -> bytes:
    """A digest of all settings, which each PONG has; empty if there are none."""
    if node.limits_digest is None:
        sum = 0
        for name, limit in sorted(node.limits.items()):
            sum = crc32(b"%b %d %r" % (name, len(name), attrs.astuple(limit.setting)), sum)
        node.limits_digest = b"%08x" % sum if node.limits else b""
    return node.limits_digest


def compare(node: NodeState, peer: Peer, digest_there: bytes) -> None:
    """Send our settings to `peer` if its digest differs."""
    if peer.capabilities & LIMITS and digest_there != digest(node):
        for name, limit in node.limits.items():
            send.to_node(node, peer, _message(name, limit.setting))


def _message(name: bytes, setting: Setting) -> QueueLimit:
    return QueueLimit(name, *attrs.astuple(setting))


def on_queuelimit(node: NodeState, _sender: Peer, message: QueueLimit) -> None:
    """Handle QUEUELIMIT: the setting of a queue at another node."""
    rate = message.rate, message.period, message.burst
    group_rate = message.group_rate, message.group_period, message.group_burst
    of_group = message.group_concurrency, *group_rate
    setting = Setting(message.epoch, message.concurrency, *rate, bool(message.loose), *of_group)
    if (setting.period or not setting.rate) and (setting.group_period or not setting.group_rate):
        apply(node, message.queue, setting)


# Groups.


def of_group(node: NodeState, name: bytes, group: bytes) -> Limit | None:
    """The limit of a group, created if it comes into use; or of the queue, if `group` is empty.
    None if there is none, or if too many groups are in use."""
    of_queue = node.limits.get(name)
    if of_queue is None or not group:
        return of_queue if of_queue is not None and of_queue.setting.is_of_queue else None
    limit = node.group_limits.get((name, group))
    has_place = len(node.group_limits) < node.knobs.groups_in_use
    if limit is None and has_place and of_queue.setting.is_of_groups:
        limit = node.group_limits[name, group] = Limit(name, of_queue.setting.of_group, group)
        # Greater than the number of any report before the record was dropped.
        limit.number = node.mono & 0x7FFF_FFFF
        limit.promised_until = of_queue.known_at
    return limit


def forget_group(node: NodeState, limit: Limit) -> None:
    """Drop the record of an unused group."""
    node.timers.disarm(limit)
    answered(node, limit)
    del node.group_limits[limit.name, limit.group]
    unpark(node, limit)
    while node.placeless:
        name, group = next(iter(node.placeless))
        del node.placeless[name, group]
        if _unpark(node, name, group):
            break


def await_place(node: NodeState, name: bytes, group: bytes) -> None:
    """Have a group wait until the record of another one is dropped, because there are too many in
    use."""
    node.placeless[name, group] = None


def unpark(node: NodeState, limit: Limit) -> None:
    """Give the group turns again."""
    _unpark(node, limit.name, limit.group)


def _unpark(node: NodeState, name: bytes, group: bytes) -> bool:
    queue = node.queues.get(name)
    if queue is None or not queue.unpark(group):
        return False
    if queue.waiting:
        lifecycle.mark_ready(node, queue)
    return True


def want(node: NodeState, limit: Limit) -> None:
    """Note that a client could receive a job of this group."""
    limit.wanted_until = node.mono + WANTED


def may_ask(node: NodeState, queue: Queue, of_queue: Limit) -> bool:
    """May one more group of the queue send a request to its keeper? If all did so at once, the
    answers would arrive too late to be valid, and unused grants would expire."""
    awaited = of_queue.awaited
    most = min(node.knobs.groups_asked, max(ASKED_AHEAD, 2 * len(queue.waiting)))
    if len(awaited) >= most:
        for group in [group for group, until in awaited.items() if until <= node.mono]:
            del awaited[group]
    return len(awaited) < most


def await_answer(node: NodeState, of_queue: Limit, group: bytes) -> None:
    """Note that the group has sent a request to its keeper."""
    of_queue.awaited[group] = node.mono + ANSWER


def answered(node: NodeState, limit: Limit) -> None:
    """The keeper has answered, or the wait has ended: the next group may send a request."""
    of_queue = node.limits.get(limit.name)
    if of_queue is None or of_queue.awaited.pop(limit.group, None) is None:
        return
    queue = node.queues.get(limit.name)
    if queue is not None and queue.waiting and has_jobs(node, queue):
        lifecycle.mark_ready(node, queue)


def doubt(node: NodeState, limit: Limit) -> None:
    """Note that another node claims to be the keeper, if this is the limit of a group."""
    if limit.group:
        limit.known_at = node.mono


def has_jobs(node: NodeState, queue: Queue) -> bool:
    """Are there jobs here that this node may deliver, or send to other nodes?"""
    return bool(queue.length) and (
        queue.limit is None or not queue.limit.setting.is_of_groups or queue.oldest() is not None
    )


def leased(node: NodeState, limit: Limit) -> int:
    """The number of leases that run here."""
    return limit.leases if limit.group else node.leased.get(limit.name, 0)


# The keeper.


def keeper(node: NodeState, limit: Limit, also: NodeId = b"") -> NodeId:
    """The keeper of the limits: the reachable node with the greatest hash. A node that has polled
    this one recently counts as reachable, as does `also`."""
    cluster = node.cluster
    ids = [
        peer.id
        for peer in cluster.nodes.values()
        if peer.is_connected and peer.capabilities & LIMITS and not peer.flags & UNREACHABLE
    ]
    promised_to = limit.promised_to if node.mono < limit.promised_until else b""
    for id in (promised_to, also):
        peer = cluster.nodes.get(id)
        if peer is not None and not peer.flags & LEAVING:
            ids.append(id)
    myself = cluster.myself.id
    if not cluster.is_leaving or not ids:
        ids.append(myself)
    if ids.count(myself) == len(ids):  # a shortcut, because every delivery calls this
        return myself
    hashed = b"%b\0%b" % (limit.name, limit.group) if limit.group else limit.name
    return max(ids, key=lambda id: _rank(hashed, id))


@lru_cache(maxsize=1 << 13)
def _rank(name: bytes, id: NodeId) -> tuple[bytes, NodeId]:
    return blake2b(name, key=id, digest_size=8).digest(), id


def vote(node: NodeState, limit: Limit, id: NodeId) -> bool:
    """Assign this node's part of the limits to that keeper, if possible. Only one keeper has it at
    a time, and none that ranks below a reachable node."""
    if limit.promised_to != id and node.mono < limit.promised_until:
        return False
    if keeper(node, limit, id) != id:
        return False
    limit.promised_to = id
    limit.promised_until = node.mono + PROMISE
    return True


# Deliveries here.


def allowed(node: NodeState, limit: Limit) -> int:
    """How many jobs of the queue or group may be delivered here now."""
    setting = limit.setting
    most = MOST_WANTED
    if setting.concurrency:
        slots = limit.slots if node.mono < limit.slots_until else 0
        most = slots - leased(node, limit)
    if setting.rate:
        most = min(most, limit.tokens if node.mono < limit.tokens_until else 0)
    return max(most, 0)


def wanted(node: NodeState, limit: Limit) -> int:
    """How many more jobs could be delivered here than the limits allow."""
    return max(_deliverable(node, limit) - allowed(node, limit), 0)


def _deliverable(node: NodeState, limit: Limit) -> int:
    queue = node.queues.get(limit.name)
    if queue is None or queue.paused & PAUSE_OUT:
        return 0
    if limit.group:
        clients = max(len(queue.waiting), int(node.mono < limit.wanted_until))
        return min(queue.count_of(limit.group), clients, MOST_WANTED)
    jobs = queue.in_turn() if limit.setting.is_of_groups else queue.length
    return min(jobs, max(len(queue.waiting), limit.missed), MOST_WANTED)


def lacks_tokens(node: NodeState, limit: Limit) -> bool:
    """Are there free leases here, some of which have ended since the last report, but no tokens?
    The keeper grants no tokens for leases that it counts as running."""
    if not (limit.setting.rate and limit.setting.concurrency):
        return False
    leases = leased(node, limit)
    has_slots = node.mono < limit.slots_until and limit.slots > leases
    return has_slots and leases < limit.reported_leases and not allowed(node, limit)


def waits(node: NodeState, queue: Queue) -> bool:
    """Do clients wait only because of the limits, although there are jobs here?"""
    limit = queue.limit
    if limit is None or not limit.setting.is_set or queue.paused & PAUSE_OUT:
        return False
    if not queue.length or not queue.waiting:
        return False
    return not allowed(node, limit) or not has_jobs(node, queue)


def limited(node: NodeState) -> list[Limit]:
    """The queues that have limits."""
    return [each for each in node.limits.values() if each.setting.is_set]


def unlimited_nodes(node: NodeState) -> list[NodeId]:
    """Linked nodes that do not support limits, and deliver without them. Excludes failed nodes,
    whose capabilities are unknown until they are linked again."""
    others = (each for each in node.cluster.nodes.values() if each is not node.cluster.myself)
    return [
        each.id
        for each in others
        if each.link and not each.flags & (PFAIL | FAIL) and not each.capabilities & LIMITS
    ]


def keeps(queue: Queue) -> bool:
    """Do clients here wait for the queue's jobs until the limits allow, so that the jobs must stay
    here?"""
    return queue.limit is not None and queue.limit.setting.is_set and bool(queue.waiting)


def miss(node: NodeState, limit: Limit, count: int) -> None:
    """Note that `count` more jobs could have been delivered."""
    limit.missed = max(limit.missed, count)
    node.short[limit.name] = limit


def forget_short(node: NodeState, limit: Limit) -> None:
    """Note that no client waits for the limits of the queue any longer."""
    del node.short[limit.name]


def spend(limit: Limit, jobs: Sequence[Job]) -> None:
    """Spend tokens for delivered jobs."""
    limit.tokens = max(limit.tokens - len(jobs), 0)
    for job in jobs:
        limit.retry = max(limit.retry, job.retry)


def learn_retry(node: NodeState, limit: Limit, retry: Millis) -> None:
    """Note the RETRY of another node's jobs."""
    limit.retry = max(limit.retry, retry)
    of_queue = node.limits.get(limit.name)
    if of_queue is not None:
        of_queue.retry = max(of_queue.retry, retry)


def used(node: NodeState, limit: Limit) -> int:
    """The number of leases here that count towards the limits."""
    return leased(node, limit) if limit.setting.concurrency else 0


def report(node: NodeState, limit: Limit) -> tuple[int, int, int]:
    """Make a report: the leases that this node uses, may use, and wants. Until a new grant, it uses
    no more than it reports."""
    has_slots = limit.setting.concurrency
    here, more = used(node, limit), wanted(node, limit)
    if has_slots and limit.setting.rate:
        here += allowed(node, limit)  # each token becomes a lease
    kept = limit.slots if has_slots and node.mono < limit.slots_until else 0
    limit.slots = min(kept, here + _deliverable(node, limit))
    limit.number += 1
    limit.asked_before, limit.is_answered = limit.asked_at, False
    limit.asked_at, limit.asked, limit.missed = node.mono, more, 0
    limit.reported_leases = here
    limit.reported = max(limit.slots, here)
    return here, limit.reported, more


def granted(node: NodeState, limit: Limit, slots: int, tokens: int) -> None:
    """Apply the keeper's answer to the last report."""
    if tokens or slots > limit.slots:
        limit.asked = 0
    limit.is_answered = True
    limit.slots, limit.slots_until = slots, limit.asked_at + SLOTS_VALID
    take_tokens(node, limit, tokens, limit.asked_at)


def take_tokens(node: NodeState, limit: Limit, tokens: int, asked_at: Millis) -> None:
    """Add tokens that the keeper grants for the report of `asked_at`, and serve waiting clients."""
    if node.mono >= limit.tokens_until:
        limit.tokens = 0
    if tokens and node.mono < asked_at + TOKENS_VALID:
        limit.tokens += tokens
        limit.tokens_until = max(limit.tokens_until, asked_at + TOKENS_VALID)
    if not allowed(node, limit):
        return
    if limit.group:
        unpark(node, limit)
        return
    queue = node.queues.get(limit.name)
    if queue is not None and queue.waiting and queue.length:
        lifecycle.mark_ready(node, queue)
