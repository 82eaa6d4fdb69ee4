"""A node that is lost for good once all faults have ended (`calm_loss` of `[end]`)."""

from typing import Any

import pytest

from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.plan import Plan
from tests.sim.scenarios.test_expand import SECOND, Reader, scenario_of

__all__ = ["scenario_of"]

FAULTS = """
[cluster]
nodes = 5
config = { maxmemory = "60kb" }
[link]
latency = { fast = "1ms..5ms", slow = "50ms..2s", p_slow = 0.01 }
bandwidth = "100 kB"
[[producer]]
at = "all"
rate = 1
job = { queue = "a" }
[[fault]]
kind = "partition"
every = "5s..20s"
[[fault]]
kind = "crash"
every = "5s..20s"
hold = "1s..30s"
[end]
chaos = "60s"
"""


def with_loss(scenario_of: Reader, text: str = FAULTS, seed: int = 1) -> Plan:
    return expand(scenario_of(text + "calm_loss = 1\n"), seed)


def test_one_more_node_is_lost_when_all_else_is_over(scenario_of: Reader) -> None:
    plan = with_loss(scenario_of)

    *others, loss = plan.faults
    assert (loss.kind, loss.hold, len(loss.nodes)) == ("remove", 0, 1)
    assert others
    assert all(0 < fault.hold <= 60 * SECOND - fault.at for fault in others)
    assert loss.at == 100 * SECOND
    assert plan.chaos == (100 + 150 + 5 * 15) * SECOND


def test_nothing_excuses_that_its_copies_are_not_replaced(scenario_of: Reader) -> None:
    plan = with_loss(scenario_of)

    assert dict(plan.config) == {"maxmemory": "1gb", "replica-repair-after": "2"}
    assert plan.link.latency.p_slow == plan.link.bytes_per_second == 0


def test_jobs_that_nobody_takes_show_it(scenario_of: Reader) -> None:
    plan = with_loss(scenario_of)

    stock = [add for add in plan.adds if add.queue == "stock"]
    assert len(stock) == 12
    assert all(60 * SECOND < add.at < 100 * SECOND for add in stock)
    assert {add.replicate for add in stock} == {2, 3}
    assert list(plan.adds) == sorted(plan.adds, key=lambda add: add.at)


def test_the_faults_and_adds_before_are_those_of_the_plan_without(scenario_of: Reader) -> None:
    plan, without = with_loss(scenario_of), expand(scenario_of(FAULTS), 1)

    assert [(fault.kind, fault.at) for fault in plan.faults[:-1]] == [
        (fault.kind, fault.at) for fault in without.faults
    ]
    assert plan.adds[:-12] == without.adds


@pytest.mark.parametrize(
    "few",
    ["[cluster]\nnodes = 2\n[end]\n",
     "[cluster]\nnodes = 4\n[[fault]]\nkind = 'remove'\nat = '5s'\nvictims = 2\n[end]\n"],
)  # fmt: skip
def test_it_does_not_happen_where_too_few_nodes_would_be_left(
    scenario_of: Reader, few: str
) -> None:
    assert with_loss(scenario_of, few).chaos == 60 * SECOND


def test_a_share_of_the_seeds_has_it(scenario_of: Reader) -> None:
    scenario: Any = scenario_of(FAULTS + "calm_loss = 0.2\n")

    found = [seed for seed in range(100) if expand(scenario, seed).chaos > 60 * SECOND]

    assert 10 < len(found) < 30
