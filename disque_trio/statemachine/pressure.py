"""Memory pressure: what a node stops doing when memory runs short (original 6.10, docs/memory.md).

Above 75 % of `maxmemory` it leaves new jobs to other nodes and takes no more copies; above 95 % it
evicts before each command what the guarantee allows, and if that is not enough refuses new jobs.
The percentages are of `maxmemory` less the memory of the process itself. The resident size has
bounds, too: percentages of `maxmemory`, above it, since the account comes first (`resident_size`).

If the system refuses the process more memory, it is at the second level.

Owns `Memory.rest`, `soft`, `hard`, `spill_above`, `high_water`, `peak`, `evicted`, `idle`,
`review_at` and `is_refused`, and sets the first `spillable`.
"""

from typing import Final

from disque_trio.statemachine import lifecycle
from disque_trio.statemachine.base import Failure, Millis
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.memory import (
    CLIENT_BYTES,
    COUNT_BYTES,
    DUMMY_BYTES,
    GROUP_LIMIT_BYTES,
    PURGE_BYTES,
    RESEND_BYTES,
    SCAN_BYTES,
    SEARCH_BYTES,
    SECOND_BYTES,
    SLOT_BYTES,
    SPILLABLE_BYTES,
    TOMBSTONE_BYTES,
    TRACKED_DELIVERY_BYTES,
    WAITS_BYTES,
    Memory,
)
from disque_trio.statemachine.state import NodeState

SOFT_PERCENT: Final = 75
HARD_PERCENT: Final = 95
SPILL_PERCENT: Final = 65
"""Bodies are spilled above this, if there is a directory for them, so that the node stays below the
levels as long as the disk takes them."""
SOFT_RESIDENT_PERCENT: Final = 104
HARD_RESIDENT_PERCENT: Final = 108
SPILL_RESIDENT_PERCENT: Final = 100
"""The same for the resident size."""
MOST_RESIDENT_PERCENT: Final = 125
"""What the resident size stays below. From `HARD_RESIDENT_PERCENT` on there is room for what comes
and goes between two measurements, such as requests and replies."""
MAX_EVICTIONS: Final = 256
"""Jobs that one attempt evicts at most: well under a millisecond's work."""
BACKLOG_BYTES: Final = 16 << 20
"""So many bytes of jobs and queues are a backlog."""
BACKLOG_SHARE: Final = 8
"""A backlog has drained when less than this part of it is left."""
LEAST_ROOM: Final = 4 << 20
"""Bytes beside the process. A limit that leaves less is warned of."""
SAFE_PERCENT: Final = 75
"""Of what the system allows to the process: `maxmemory` bounds accounted bytes, and the resident
size is up to a quarter larger (docs/memory.md)."""
REVIEW_EVERY: Final[Millis] = 100
QUEUES_PER_REVIEW: Final = 1000
DUMMY_SHARE: Final = 10
"""Dummy acks may fill a tenth of `maxmemory`: their ids come from clients, as many as they like."""
IDLE_LIMITS: Final[tuple[Millis, ...]] = (lifecycle.QUEUE_IDLE_LIMIT, 10_000, 2000)
"""How long an empty queue is kept, by level (original 6.11)."""

WANT: Final = 2

OUT_OF_MEMORY: Final = b"OOM command not allowed when used memory > 'maxmemory'."
OOM: Final = Failure(OUT_OF_MEMORY)
REFUSED: Final = Failure(
    b"OOM command not allowed while the system refuses the process more memory (ulimit -v, or the"
    b" machine's limit): lower maxmemory, or raise that limit"
)


def level(node: NodeState) -> int:
    """0 is enough memory, 1 pressure, 2 shortage. The original's level 3 changes nothing."""
    memory = node.memory
    return (memory.held > memory.soft) + (memory.held > memory.hard)


_SHARE_OF_ENDED: Final = 50
"""Jobs that have ended take up to one part of so many of `maxmemory`."""


def used(node: NodeState) -> int:
    """Bytes in use, of the process itself and of everything it holds."""
    memory = node.memory
    return node.facts.process_bytes + memory.held + memory.rest + node.endings.weight


def weighed(node: NodeState) -> int:
    """The same, with all that `review` computes as it is now."""
    return node.facts.process_bytes + node.memory.held + _rest(node) + node.endings.weight


def _rest(node: NodeState) -> int:
    """Bytes of what is not kept up to date at each change."""
    traffic = node.facts.traffic
    scans = sum(map(len, node.scans.values())) if node.scans else 0
    return (
        len(node.timers) * SLOT_BYTES
        + len(node.clients) * CLIENT_BYTES
        + len(node.tombstones) * TOMBSTONE_BYTES
        + scans * SCAN_BYTES
        + len(node.resend.ids) * RESEND_BYTES
        + sum(map(len, node.purging.jobs.values())) * PURGE_BYTES
        + len(node.tracked) * TRACKED_DELIVERY_BYTES
        + len(node.keys.searches) * SEARCH_BYTES
        + (len(node.leased) + len(node.group_leases) + len(node.placeless)) * COUNT_BYTES
        + len(node.group_limits) * GROUP_LIMIT_BYTES
        + (len(node.delayed) + len(node.restored)) * WAITS_BYTES
        + node.due_seconds * SECOND_BYTES
        + len(node.memory.spillable or ()) * SPILLABLE_BYTES
        + traffic.unread
        + traffic.unsent
        + traffic.kept
        + traffic.delayed
        + traffic.journal
    )


def review(node: NodeState) -> None:
    """Compute what is not kept up to date at each change, and set the limits anew."""
    memory = node.memory
    memory.high_water = max(memory.high_water, memory.held)
    if memory.high_water > BACKLOG_BYTES and memory.held < memory.high_water // BACKLOG_SHARE:
        # A backlog has drained: free the memory that tables and timers still keep for it.
        memory.high_water = memory.held
        node.timers.drop_stale()
        node.table.shrink()
    memory.rest = _rest(node)
    # The original divides first, too.
    percent = (node.config.maxmemory - node.facts.process_bytes) // 100
    memory.soft = min(percent * SOFT_PERCENT, _room(node, SOFT_RESIDENT_PERCENT)) - memory.rest
    memory.hard = min(percent * HARD_PERCENT, _room(node, HARD_RESIDENT_PERCENT)) - memory.rest
    if node.config.spill_directory:
        if memory.spillable is None:
            memory.spillable = {}
        room = min(percent * SPILL_PERCENT, _room(node, SPILL_RESIDENT_PERCENT))
        memory.spill_above = room - memory.rest
    if memory.is_refused:
        memory.soft = memory.hard = -1
    # Jobs that have ended take what those that have not leave below all levels, so they change
    # nothing for these. What they had is not all given back to the system, hence the share.
    room = min(memory.soft, memory.spill_above) - memory.held
    node.endings.fit(min(room, node.config.maxmemory // _SHARE_OF_ENDED))
    memory.review_at = node.mono + REVIEW_EVERY
    memory.peak = max(memory.peak, used(node))
    if memory.held > memory.soft and not memory.slot:
        node.timers.arm(memory, node.mono + REVIEW_EVERY)


def refuse_memory(node: NodeState, *, is_so: bool) -> None:
    """Be at level 2 while the system refuses the process more memory."""
    node.memory.is_refused = is_so
    review(node)


def limited_by(node: NodeState) -> str:
    """What limits what may be added: the account, the resident size, or the system."""
    if node.memory.is_refused:
        return "system"
    return "resident-size" if is_resident_bound(node) else "account"


def refusal(node: NodeState) -> Failure:
    """Why a command that needs memory is refused."""
    return REFUSED if node.memory.is_refused else OOM


def _room(node: NodeState, percent: int) -> int:
    """How much may be accounted beside the process before the resident size is this percentage of
    `maxmemory`."""
    beyond = node.facts.process_bytes + node.memory.surplus
    return node.config.maxmemory // 100 * percent - beyond


def is_resident_bound(node: NodeState) -> bool:
    """Is it the resident size, and not the account, that limits what may be added?"""
    percent = (node.config.maxmemory - node.facts.process_bytes) // 100
    return _room(node, HARD_RESIDENT_PERCENT) < percent * HARD_PERCENT


def on_review(node: NodeState, memory: Memory) -> None:
    """While memory is short: review it, and drop unused queues."""
    _drop_idle_queues(node, memory)
    review(node)


def _drop_idle_queues(node: NodeState, memory: Memory) -> None:
    """A thousand queues at a time, round after round."""
    if not memory.idle:
        memory.idle = list(node.queues)
    limit = IDLE_LIMITS[level(node)]
    names = memory.idle[-QUEUES_PER_REVIEW:]
    del memory.idle[-QUEUES_PER_REVIEW:]
    for name in names:
        queue = node.queues.get(name)
        if queue is not None:
            lifecycle.drop_queue_if_idle(node, queue, limit)


def relieve(node: NodeState) -> bool:
    """Evict what the guarantee allows. True if enough is free then."""
    memory = node.memory
    for _ in range(MAX_EVICTIONS):
        if memory.held <= memory.hard:
            return True
        job = _next_victim(node)
        if job is None:
            return False
        evict(node, job)
    return memory.held <= memory.hard


def _next_victim(node: NodeState) -> Job | None:
    """Dummy acks first; always the oldest, which other nodes have had the most time to learn of."""
    memory = node.memory
    if node.config.maxmemory_policy == "noeviction":
        return None
    for candidates in (memory.dummies, memory.evictable):
        if candidates:
            return next(iter(candidates.values()))
    return None


def evict(node: NodeState, job: Job) -> None:
    """Forget a job that is acknowledged, or at-most-once and delivered."""
    node.memory.evicted += 1
    lifecycle.unregister(node, job, Cause.EVICTED)


def bound_dummies(node: NodeState) -> None:
    """Evict the oldest dummy acks if there are too many."""
    dummies = node.memory.dummies
    most = max(node.config.maxmemory // DUMMY_SHARE // DUMMY_BYTES, 1)
    while len(dummies) > most:
        evict(node, next(iter(dummies.values())))
