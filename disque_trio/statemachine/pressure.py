"""Memory pressure: the measures of a node when memory is short (original 6.10, docs/memory.md).

Above 75 % of `maxmemory`, it places new jobs at other nodes and accepts no more copies. Above 95 %,
before each command it evicts jobs as far as the delivery guarantee allows; if that is not enough,
it refuses new jobs. The percentages are of `maxmemory` less the memory of the process itself. The
resident size has limits, too: percentages of `maxmemory` that are higher, because the accounted
memory is the primary limit (`resident_size`). If the system refuses more memory, the level is 2.

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
"""Above this, bodies are spilled if `spill-directory` is set, so that the node stays below level 1
while the disk has room."""
SOFT_RESIDENT_PERCENT: Final = 104
HARD_RESIDENT_PERCENT: Final = 108
SPILL_RESIDENT_PERCENT: Final = 100
"""The percentages of `maxmemory` for the resident size."""
MOST_RESIDENT_PERCENT: Final = 125
"""The maximum of the resident size. The range above `HARD_RESIDENT_PERCENT` is for memory that is
allocated between two measurements, such as requests and replies."""
MAX_EVICTIONS: Final = 256
"""The maximum number of jobs that one attempt evicts, which takes well under a millisecond."""
BACKLOG_BYTES: Final = 16 << 20
"""The size of jobs and queues above which they count as a backlog."""
BACKLOG_SHARE: Final = 8
"""A backlog has drained when less than 1/8 of it is left."""
LEAST_ROOM: Final = 4 << 20
"""The minimum memory beside the process, in bytes. A smaller rest causes a warning."""
SAFE_PERCENT: Final = 75
"""The recommended `maxmemory`, as a percentage of the memory that the system allows: `maxmemory`
limits accounted bytes, and the resident size is up to a quarter larger (docs/memory.md)."""
REVIEW_EVERY: Final[Millis] = 100
QUEUES_PER_REVIEW: Final = 1000
DUMMY_SHARE: Final = 10
"""Dummy acks may use a tenth of `maxmemory`: their ids are from clients, which can send any
number."""
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
    """The level: 0 is enough memory, 1 pressure, 2 shortage. The original's level 3 has no further
    effect."""
    memory = node.memory
    return (memory.held > memory.soft) + (memory.held > memory.hard)


_SHARE_OF_ENDED: Final = 50
"""Records of ended jobs use up to 1/50 of `maxmemory`."""


def used(node: NodeState) -> int:
    """The memory in use, in bytes, of the process itself and all records."""
    memory = node.memory
    return node.facts.process_bytes + memory.held + memory.rest + node.endings.weight


def weighed(node: NodeState) -> int:
    """As `used`, with the current value of the part that `review` computes."""
    return node.facts.process_bytes + node.memory.held + _rest(node) + node.endings.weight


def _rest(node: NodeState) -> int:
    """The size of records that are not accounted at each change, in bytes."""
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
    """Compute the memory that is not accounted at each change, and update the limits."""
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
    # Records of ended jobs only use memory that live jobs leave below all levels, so they never
    # raise the level. Not all freed memory is returned to the system, so they are also limited to a
    # share.
    room = min(memory.soft, memory.spill_above) - memory.held
    node.endings.fit(min(room, node.config.maxmemory // _SHARE_OF_ENDED))
    memory.review_at = node.mono + REVIEW_EVERY
    memory.peak = max(memory.peak, used(node))
    if memory.held > memory.soft and not memory.slot:
        node.timers.arm(memory, node.mono + REVIEW_EVERY)


def refuse_memory(node: NodeState, *, is_so: bool) -> None:
    """Set whether the system refuses more memory; while it does, the level is 2."""
    node.memory.is_refused = is_so
    review(node)


def limited_by(node: NodeState) -> str:
    """The current limit of memory: `account`, `resident-size` or `system`."""
    if node.memory.is_refused:
        return "system"
    return "resident-size" if is_resident_bound(node) else "account"


def refusal(node: NodeState) -> Failure:
    """The error for a command that needs memory."""
    return REFUSED if node.memory.is_refused else OOM


def _room(node: NodeState, percent: int) -> int:
    """How much more than the process may be accounted before the resident size reaches this
    percentage of `maxmemory`, in bytes."""
    beyond = node.facts.process_bytes + node.memory.surplus
    return node.config.maxmemory // 100 * percent - beyond


def is_resident_bound(node: NodeState) -> bool:
    """Does the resident size limit memory more than the account does?"""
    percent = (node.config.maxmemory - node.facts.process_bytes) // 100
    return _room(node, HARD_RESIDENT_PERCENT) < percent * HARD_PERCENT


def on_review(node: NodeState, memory: Memory) -> None:
    """The timer while memory is short: drop unused queues, and review."""
    _drop_idle_queues(node, memory)
    review(node)


def _drop_idle_queues(node: NodeState, memory: Memory) -> None:
    """Check the next `QUEUES_PER_REVIEW` queues, in rounds."""
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
    """Evict jobs as far as the delivery guarantee allows. Returns whether enough memory is free
    then."""
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
    """The next job to evict: the oldest dummy ack, or else the oldest evictable job. Other nodes
    have had the most time to receive its acknowledgement."""
    memory = node.memory
    if node.config.maxmemory_policy == "noeviction":
        return None
    for candidates in (memory.dummies, memory.evictable):
        if candidates:
            return next(iter(candidates.values()))
    return None


def evict(node: NodeState, job: Job) -> None:
    """Evict a job that is acknowledged, or at-most-once and delivered."""
    node.memory.evicted += 1
    lifecycle.unregister(node, job, Cause.EVICTED)


def bound_dummies(node: NodeState) -> None:
    """Evict the oldest dummy acks if there are too many."""
    dummies = node.memory.dummies
    most = max(node.config.maxmemory // DUMMY_SHARE // DUMMY_BYTES, 1)
    while len(dummies) > most:
        evict(node, next(iter(dummies.values())))
