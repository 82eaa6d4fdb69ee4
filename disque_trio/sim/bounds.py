"""The bounds after the heal within which liveness properties must hold (docs/guarantees.md,
"Liveness").

They are computed from the constants of the node and the slowest settings of the plan.
"""

from typing import Final

from disque_trio.sim.model.network import DIAL_WAITS, STALL
from disque_trio.sim.scenarios.plan import Add, Consumer, Micros, Plan
from disque_trio.sim.scenarios.vocabulary import DELAYING
from disque_trio.sim.workload.actions import RECONNECT
from disque_trio.sim.workload.engine_workers import ABORT, DRAIN
from disque_trio.statemachine.federation import MAX_BROADCAST_DELAY
from disque_trio.statemachine.job import DESYNC, MAX_GC_WAIT
from disque_trio.statemachine.joboptions import (
    DEFAULT_TTL_S,
    MAX_BACKOFF,
    MAX_DEFAULT_RETRY_S,
)
from disque_trio.worker.engine.connecting import LONGEST_REST, PATIENCE
from disque_trio.worker.engine.fetching import WAIT

_SECOND: Final = 1_000_000
_TICK: Final[Micros] = 100_000
_ROUND_TRIPS: Final[Micros] = 2 * _SECOND
"""Two round trips, with a margin for the additions of a plan; after the heal nothing is slow."""


def delivery_bound(plan: Plan) -> Micros:
    """B: the time after the heal by which every job that must be delivered is delivered (L1,
    L2)."""
    delay = int(max((add.delay_s or 0 for add in plan.adds), default=0) * _SECOND)
    retry = max((min(retry_of(add), ttl_of(add)) for add in plan.adds), default=0)
    poll = max(map(absence, plan.consumers), default=0)
    delay += longest_wait(plan)
    waits = _stretched(plan, delay + retry) + DESYNC * 1000 + _TICK + poll
    discovery = MAX_BROADCAST_DELAY * 1000
    drain = sum(backlog_of_limits(plan, each.queue) for each in plan.limits)
    return waits + discovery + reconnect_bound(plan) + _ROUND_TRIPS + backlog(plan) + drain


def longest_wait(plan: Plan) -> Micros:
    """Return the longest wait of a job after a NACK or RELEASE."""
    delays = [
        consumer.delay_ms[1] * 1000
        for consumer in plan.consumers
        if any(way in DELAYING for way, _ in consumer.mix)
    ]
    most = MAX_BACKOFF // 1000
    backoffs = [
        max(add.max_backoff_s or most, add.backoff_s) * _SECOND * 6 // 5
        for add in plan.adds
        if add.backoff_s is not None
    ]
    return max([0, *delays, *backoffs])


def absence(consumer: Consumer) -> Micros:
    """Return how long after the heal a consumer may not request the next job of the queue: while it
    waits in a GETJOB at another node, or is disconnected."""
    if consumer.kind == "engine":
        return LONGEST_REST + PATIENCE + WAIT + DRAIN + ABORT + consumer.away[1] + consumer.limit
    polls = 2 if consumer.roams else 1
    poll = consumer.poll_ms * 1000 or RECONNECT
    return polls * poll + (1 + consumer.roams) * consumer.away[1]


def reconnect_bound(plan: Plan) -> Micros:
    """Return the time until all links are up again (L6). A heartbeat starts the dial, a dial may be
    in the middle of its last wait, and a node may not have detected a dead link yet."""
    timeout = next(
        (int(value) for name, value in plan.config if name == "cluster-node-timeout"), 15_000
    )
    return STALL + sum(DIAL_WAITS) + 2 * timeout * 1000 + _ROUND_TRIPS


def collection_bound(plan: Plan) -> Micros:
    """G: the time after the last ack by which no node has a record of any job (L3)."""
    return _stretched(plan, MAX_GC_WAIT * 1000 + DESYNC * 1000 + _TICK) + _ROUND_TRIPS


def backlog(plan: Plan) -> Micros:
    """Return how long the consumers need for all jobs if none was processed before."""
    by_queue: dict[str, int] = {}
    for add in plan.adds:
        by_queue[add.queue] = by_queue.get(add.queue, 0) + 1
    longest = 0
    for queue, jobs in by_queue.items():
        spans = [consumer.work[1] for consumer in plan.consumers if queue in consumer.queues]
        if spans:
            longest = max(longest, jobs * (max(spans) + _TICK // 10) // len(spans))
    return longest


def backlog_of_limits(plan: Plan, queue: str) -> Micros:
    """Return the additional time that the limits of the queue cost: for all jobs one after another,
    and before that for the leases of lost nodes, which count until they expire. The estimate
    assumes that lost nodes leave a third of the limits to the other nodes."""
    adds = [add for add in plan.adds if add.queue == queue]
    work = max([each.work[1] for each in plan.consumers if queue in each.queues], default=0)
    longest = 0
    for limit in plan.limits:
        if limit.queue == queue and adds:
            slots = [each for each in (limit.concurrency, limit.group_concurrency) if each]
            turns = -(-len(adds) // min(slots)) * (work + _SECOND) if slots else 0
            pace = len(adds) * limit.per_s * _SECOND // limit.rate if limit.rate else 0
            if limit.group_rate:
                group_pace = len(adds) * limit.group_per_s * _SECOND // limit.group_rate
                pace = max(pace, group_pace)
            settling = max(map(retry_of, adds)) + 5 * _SECOND
            longest = max(longest, settling + 3 * (turns + pace))
    return longest


def drain_bound(plan: Plan) -> Micros:
    """Return the longest time for which a run continues after the heal, unless the plan sets it."""
    return plan.drain or delivery_bound(plan) + collection_bound(plan)


def ttl_of(add: Add) -> Micros:
    """Return the job's TTL, explicit or by default. A RETRY longer than that never ends."""
    return (DEFAULT_TTL_S if add.ttl_s is None else add.ttl_s) * _SECOND


def retry_of(add: Add) -> Micros:
    """Return the job's RETRY, explicit or by default."""
    if add.retry_s is not None:
        return add.retry_s * _SECOND
    ttl = DEFAULT_TTL_S if add.ttl_s is None else add.ttl_s
    return min(max(ttl // 10, 1), MAX_DEFAULT_RETRY_S) * _SECOND


def _stretched(plan: Plan, duration: Micros) -> Micros:
    """Return the duration as the slowest clock measures it."""
    drifts = [clock.drift_ppm for clock in plan.clocks]
    drifts += [fault.amount for fault in plan.faults if fault.kind == "clock-rate"]
    slowest = min(0, *drifts) if drifts else 0
    return duration * _SECOND // (_SECOND + slowest)
