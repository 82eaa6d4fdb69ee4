"""Nodes of earlier versions, drawn for each life."""

import json
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from disque_trio.cli.sim.execution import execute
from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.engines.trio.run import simulate as simulate_in_tasks
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.sim.scenarios.plan import Fault, Plan
from disque_trio.sim.scenarios.plan_file import PlanError, dump, parse
from disque_trio.sim.scenarios.ranges import fixed
from disque_trio.sim.scenarios.versions import NEWEST, ORIGINAL, VERSIONS
from disque_trio.statemachine.base import MEETS
from disque_trio.statemachine.machine import Machine
from tests.conformance.versions import NUMBERS, samples
from tests.sim.checkers.test_pauses import gives, paused
from tests.sim.mutants.plans.conditions import SCENARIOS, SECOND, careless

EVERYTHING = load(SCENARIOS / "everything.toml")
MIXED = attrs.evolve(EVERYTHING, cluster=attrs.evolve(EVERYTHING.cluster, mixed=fixed(1)))
VARIED = (("original",), ("0", "4"), ("4", "2", "original"))


def test_they_are_the_original_and_each_recorded_format_with_new_capabilities() -> None:
    recorded: dict[str, int] = {ORIGINAL: 0}
    for folder in sorted(samples()):
        capabilities = json.loads((folder / NUMBERS).read_text())["all capabilities"]
        if capabilities not in recorded.values():
            recorded[folder.name] = capabilities

    assert recorded == VERSIONS


def test_a_seed_draws_two_of_them_and_always_the_same() -> None:
    plans = [expand(MIXED, seed) for seed in range(60)]

    assert [plan.versions for plan in plans] == [expand(MIXED, seed).versions for seed in range(60)]
    drawn = [{each for lives in plan.versions for each in lives} for plan in plans]
    assert all(1 <= len(each) <= 2 for each in drawn)
    assert set().union(*drawn) == set(VERSIONS)
    assert {len(lives) for plan in plans for lives in plan.versions} == {1, 2, 3}
    assert all(len(plan.versions) == plan.nodes for plan in plans)


def test_the_original_has_no_journal_of_ours() -> None:
    plans = [expand(MIXED, seed) for seed in range(60)]
    with_journal = [plan for plan in plans if ("appendonly", "yes") in plan.config]

    assert with_journal
    assert not any(ORIGINAL in lives for plan in with_journal for lives in plan.versions)


def test_some_seeds_of_the_one_swarm_have_them() -> None:
    found = [bool(expand(EVERYTHING, seed).versions) for seed in range(100)]

    assert 5 <= sum(found) <= 50


def test_a_plan_s_file_keeps_them_and_knows_no_others() -> None:
    plan = attrs.evolve(careless(1), versions=VARIED)

    assert parse(dump(plan)) == plan
    with pytest.raises(PlanError, match=r"versions\[0\]: no version 9; known are original, 0"):
        parse(dump(attrs.evolve(plan, versions=(("9",),))))


@pytest.mark.pure
@pytest.mark.parametrize("engine", [simulate, simulate_in_tasks])
def test_each_life_is_of_its_version_and_all_later_ones_of_the_last(
    engine: Callable[..., Any],
) -> None:
    seen: dict[bytes, list[int]] = {}

    def make(*args: Any) -> Machine:
        machine = Machine(*args)
        lives = seen.setdefault(machine.state.cluster.myself.id, [])
        lives.append(machine.state.capabilities)
        return machine

    crashes = tuple(
        Fault(kind="crash", at=at * SECOND, hold=SECOND, nodes=(1, 2, 3)) for at in (3, 6, 9)
    )
    plan = attrs.evolve(careless(1), versions=VARIED, faults=crashes)
    engine(plan, machine_factory=make)

    assert sorted(seen.values()) == sorted(
        [
            [0, 0, 0, 0],
            [255, NEWEST, NEWEST, NEWEST],
            [NEWEST, 2047, 0, 0],
            [NEWEST],
            [NEWEST],
        ]
    )


@pytest.mark.parametrize("engine", ["heap", "trio"])
def test_nodes_of_all_versions_work_together(engine: str) -> None:
    plan: Plan = attrs.evolve(careless(3), versions=(*VARIED, ("1",), ("2",)))

    assert execute(plan, engine=engine).result.findings == ()


def test_what_all_of_a_plan_have_is_what_the_judge_asks_for() -> None:
    assert careless(1).shared_capabilities == NEWEST
    assert attrs.evolve(careless(1), versions=(("1", "2"), ("3",))).shared_capabilities == 511
    assert not attrs.evolve(careless(1), versions=VARIED).shared_capabilities & MEETS


@pytest.mark.parametrize(("versions", "found"), [((), True), ((("3", "0"),), True)])
def test_what_they_have_is_judged(versions: tuple[tuple[str, ...], ...], *, found: bool) -> None:
    trace = paused("out")
    gives(trace, 5)
    trace.plan = attrs.evolve(trace.plan, versions=versions)

    verdict = trace.verdict(end=60)

    assert bool(verdict.violations) == found
    assert verdict.not_judged.get("S6") is None


def test_what_one_has_not_is_not_judged_and_the_verdict_says_so() -> None:
    trace = paused("out")
    gives(trace, 5)
    trace.plan = attrs.evolve(trace.plan, versions=(("3", "original"),))

    verdict = trace.verdict(end=60)

    assert not verdict.violations
    assert verdict.not_judged["S6"] == "not promised with nodes of earlier versions"
