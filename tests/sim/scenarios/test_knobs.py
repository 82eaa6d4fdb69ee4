"""Constants of nodes that a seed makes small."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from disque_trio.cli.sim.execution import execute
from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.engines.trio.run import simulate as simulate_in_tasks
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.sim.scenarios.knobs import knob_values
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.sim.scenarios.plan_file import dump, parse
from disque_trio.statemachine.knobs import DEFAULTS, KNOBS, Knobs
from disque_trio.statemachine.machine import Machine
from tests.sim.mutants.plans.conditions import SCENARIOS, careless

EVERYTHING = str(SCENARIOS / "everything.toml")
SMALLEST = tuple((knob.name, knob.least) for knob in KNOBS)
PACKAGE = Path(__file__).parents[3] / "disque_trio"


def test_a_seed_draws_some_and_always_the_same() -> None:
    cluster = load(EVERYTHING).cluster
    drawn = [knob_values(cluster, seed) for seed in range(40)]

    assert drawn == [knob_values(cluster, seed) for seed in range(40)]
    assert expand(load(EVERYTHING), 3).knobs == drawn[3]
    assert {name for knobs in drawn for name, _ in knobs} == {knob.name for knob in KNOBS}
    least = {knob.name: knob.least for knob in KNOBS}
    assert all(least[name] <= value for knobs in drawn for name, value in knobs)
    assert len(set(drawn)) > 30


def test_a_plan_s_file_keeps_them() -> None:
    plan = attrs.evolve(careless(1), knobs=SMALLEST)

    assert parse(dump(plan)) == plan


@pytest.mark.sample(2)
@pytest.mark.pure
@pytest.mark.parametrize("engine", [simulate, simulate_in_tasks])
def test_nodes_have_those_of_the_plan(engine: Callable[..., Any]) -> None:
    seen: list[Knobs] = []

    def make(*args: Any) -> Machine:
        machine = Machine(*args)
        seen.append(machine.state.knobs)
        return machine

    engine(attrs.evolve(careless(1), knobs=(("due_per_tick", 7),)), machine_factory=make)

    assert {knobs.due_per_tick for knobs in seen} == {7}
    assert {knobs.demands for knobs in seen} == {DEFAULTS.demands}


@pytest.mark.parametrize("engine", ["heap", "trio"])
def test_a_cluster_works_with_the_smallest_of_all(engine: str) -> None:
    plan: Plan = attrs.evolve(careless(3), knobs=SMALLEST)

    assert execute(plan, engine=engine).result.findings == ()


@pytest.mark.parametrize("name", [knob.name for knob in KNOBS])
def test_each_is_used(name: str) -> None:
    places = [
        path
        for path in PACKAGE.glob("*/**/*.py")
        if path.name != "knobs.py" and f"knobs.{name}" in path.read_text()
    ]

    assert places
