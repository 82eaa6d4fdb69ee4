"""Changed plans are plans that every engine can play."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from disque_trio.sim.guided import operators
from disque_trio.sim.guided.operators import OPERATORS, Source, changed, cut, overlaid
from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios import fault_kinds, plan_file
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.fault_check import impossible
from disque_trio.sim.scenarios.file import load
from disque_trio.sim.scenarios.plan import Plan

SWARM = load("scenarios/everything.toml")
PLANS = [expand(SWARM, seed) for seed in range(12)]


def source(seed: int, donor: Plan) -> Source:
    return Source(stream(seed, "test"), donor, has_drawn_journals="off" in SWARM.cluster.aof)


def check(plan: Plan) -> None:
    assert plan_file.parse(plan_file.dump(plan)) == plan
    assert not list(impossible(plan))
    assert len(plan.adds) <= operators.MOST_ADDS
    assert len(plan.faults) <= operators.MOST_FAULTS
    bodies = [add.body for add in plan.adds]
    assert len(set(bodies)) == len(bodies)
    names = [consumer.name for consumer in plan.consumers]
    assert len(set(names)) == len(names)
    for add in plan.adds:
        assert 1 <= add.node <= plan.nodes
        assert (add.replicate or 1) <= plan.nodes
        assert (add.sync or 1) <= (add.replicate or plan.nodes)
    has_journal = dict(plan.config).get("appendonly") == "yes"
    walls = [each for each in plan.faults if fault_kinds.BY_NAME[each.kind].part == "wall clock"]
    assert not (has_journal and walls)


@pytest.mark.sample(20)
@pytest.mark.parametrize("seed", range(60))
def test_a_changed_plan_can_be_written_and_played(seed: int) -> None:
    plan = PLANS[seed % len(PLANS)]
    for turn in range(4):
        plan, how = changed(plan, source(seed * 10 + turn, PLANS[(seed + turn) % len(PLANS)]))
        assert how
        check(plan)


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(20))
def test_so_can_one_over_which_another_is_laid(seed: int) -> None:
    plan, donor = PLANS[seed % len(PLANS)], PLANS[(seed * 5 + 1) % len(PLANS)]
    both = overlaid(plan, source(seed, donor))

    check(both)
    assert {each.kind for each in both.faults} - {each.kind for each in plan.faults} <= {
        each.kind for each in donor.faults
    }


@pytest.mark.parametrize("operator", dict.fromkeys(OPERATORS))
def test_each_operator_changes_some_plan(operator: Callable[[Plan, Source], Plan]) -> None:
    assert any(
        operator(plan, source(seed, donor)) != plan
        for seed, (plan, donor) in enumerate(pairwise(PLANS))
    )


def test_the_same_stream_makes_the_same_change() -> None:
    one, other = (changed(PLANS[0], source(5, PLANS[1])) for _ in range(2))

    assert one == other


def test_the_first_part_of_a_plan_has_nothing_that_comes_later() -> None:
    plan = cut(PLANS[0], 0.5)

    assert plan.chaos == PLANS[0].chaos // 2
    assert plan.adds == tuple(add for add in PLANS[0].adds if add.at < plan.chaos)
    assert all(fault.when or fault.at + fault.hold < plan.chaos for fault in plan.faults)
    check(plan)
