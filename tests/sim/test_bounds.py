from typing import Any

import pytest

from disque_trio.sim.bounds import (
    absence,
    backlog,
    collection_bound,
    delivery_bound,
    drain_bound,
    reconnect_bound,
    retry_of,
)
from disque_trio.sim.scenarios.plan import Add, ClockPlan, Consumer, Fault, Plan

SECOND = 1_000_000


def add(**rest: Any) -> Add:
    return Add(at=0, node=1, producer="p1", queue="q", body="b", **rest)


def plan(*adds: Add, **rest: Any) -> Plan:
    return Plan(scenario="s", seed=1, nodes=3, adds=adds, **rest)


@pytest.mark.parametrize(
    ("options", "retry"),
    [
        ({"retry_s": 7}, 7),
        ({"retry_s": 0}, 0),
        ({}, 300),
        ({"ttl_s": 100}, 10),
        ({"ttl_s": 5}, 1),
    ],
)
def test_the_retry_of_a_job_is_given_or_follows_from_its_life(
    options: dict[str, int], retry: int
) -> None:
    assert retry_of(add(**options)) == retry * SECOND


def test_a_delivery_may_wait_for_the_slowest_job_and_for_discovery() -> None:
    quick = delivery_bound(plan(add(retry_s=1)))
    slow = delivery_bound(plan(add(retry_s=1), add(retry_s=9, delay_s=20)))

    assert quick > 31 * SECOND
    assert slow - quick == 28 * SECOND


def test_slow_clocks_stretch_the_waits() -> None:
    true = plan(add(retry_s=90))
    drifting = plan(add(retry_s=90), clocks=(ClockPlan(drift_ppm=-100_000),))
    fault = Fault(kind="clock-rate", amount=-100_000)
    slowed = plan(add(retry_s=90), faults=(fault,))

    assert delivery_bound(drifting) - delivery_bound(true) == 10 * SECOND
    assert delivery_bound(slowed) == delivery_bound(drifting)
    assert collection_bound(slowed) > collection_bound(true)


def test_a_backlog_takes_as_long_as_its_consumers_do() -> None:
    adds = [add() for _ in range(100)]
    two = tuple(
        Consumer(name=name, node=1, queues=("q",), work=(0, SECOND)) for name in ("c1", "c2")
    )

    assert backlog(plan(*adds)) == 0
    assert backlog(plan(*adds, consumers=two)) == 100 * (SECOND + 10_000) // 2


def test_the_node_timeout_counts_for_reconnecting() -> None:
    default = reconnect_bound(plan())
    short = reconnect_bound(plan(config=(("cluster-node-timeout", "1000"),)))

    assert default - short == 28 * SECOND


def test_a_drain_lasts_for_delivery_and_collection_unless_told() -> None:
    asked = plan(add())

    assert drain_bound(asked) == delivery_bound(asked) + collection_bound(asked)
    assert drain_bound(plan(add(), drain=5)) == 5


def test_a_worker_that_runs_the_engine_may_leave_its_node_alone_for_a_while() -> None:
    worker = Consumer(
        name="c1", node=1, queues=("q",), kind="engine", away=(0, SECOND), limit=2 * SECOND
    )

    # A rest of 30 s, silence of 5 s, a wait of 5 s, 3.5 s to stop.
    assert absence(worker) == 43_500_000 + 3 * SECOND
