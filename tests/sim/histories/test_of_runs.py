"""Simulated runs are judged by what their clients saw: intact nodes pass, mistakes are noticed."""

import attrs
import pytest

from disque_trio.sim.histories.of_runs import RunHistory
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.sim.scenarios.plan import ClockPlan
from tests.sim.histories.played import HERE, judged, played
from tests.sim.mutants import plans
from tests.sim.mutants.mutant import all_mutants
from tests.sim.mutants.plans.conditions import SCENARIOS
from tests.sim.mutants.swapping import applied

pytestmark = pytest.mark.pure


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["small", "calm", "lone"])
def test_the_clients_of_intact_nodes_see_nothing_wrong(name: str, seed: int) -> None:
    is_right, verdict = played(name, seed)

    assert is_right
    assert verdict.violations == []
    assert verdict.deliveries


@pytest.mark.sample(10)
@pytest.mark.parametrize(
    ("name", "plan", "property"),
    [
        ("copies-cut-short", "calm", "H1"),
        ("ids-told-wrong", "calm", "H2"),
        ("once-queued-again", "calm", "H3"),
        ("given-and-kept", "calm", "H3"),
        ("delivered-and-done", "calm", "H4"),
        ("without-delay", "calm", "H6"),
        ("asking-nobody", "calm", "H7"),
        ("maxlen-lets-one-more-in", "lone", "H8"),
        ("youngest-first", "lone", "H9"),
        ("priorities-ignored", "lone", "H9"),
    ],
)
def test_a_mistake_of_a_node_is_noticed_by_its_clients_alone(
    name: str, plan: str, property: str
) -> None:
    with applied(all_mutants()[name]):
        _, verdict = played(plan, 0)

    assert property in {each.property for each in verdict.violations}


@pytest.mark.slow
def test_a_node_that_is_killed_and_removed_explains_one_lost_replica() -> None:
    # The judge of histories had taken that for two losses, and requests to the node that is gone
    # for deliveries whose replies were lost.
    plan = plans.called("zones")(0)
    with applied(all_mutants()["dying-with-a-zone"]):
        is_right, verdict = judged(plan)

    assert not is_right
    assert {each.property for each in verdict.violations} == {"H4"}
    assert judged(plan)[1].violations == []


@pytest.mark.slow
def test_a_ttl_that_has_grown_while_a_job_was_passed_on_is_within_its_bound() -> None:
    # Rows are judged by the clock of each holder, and do not show it.
    is_right, verdict = judged(expand(load(str(SCENARIOS / "careless-clients.toml")), 2))

    assert is_right
    assert verdict.violations == []


def test_a_delay_is_measured_by_the_clock_of_the_creator_in_the_file_of_the_original() -> None:
    plan = expand(load(str(HERE / "calm.toml")), 0)
    clocks = (ClockPlan(wall_offset_ms=3_600_000),) * 3
    written: list[list[bytes]] = []
    for config in ((), (("aof-format", "disque"),)):
        written.append([])
        changed = attrs.evolve(plan, clocks=clocks, config=(*plan.config, *config))
        RunHistory(changed, written[-1].append)

    assert [sum(b'"fault":"clock"' in line for line in lines) for lines in written] == [0, 1]


@pytest.mark.slow
def test_clocks_that_differ_and_drift_leave_a_run_calm() -> None:
    # As long as they did not, hardly anything was judged of the one swarm.
    plan = expand(load(str(HERE / "calm.toml")), 0)
    plan = attrs.evolve(plan, clocks=(ClockPlan(drift_ppm=500, wall_offset_ms=3_600_000),) * 3)
    with applied(all_mutants()["asking-nobody"]):
        _, verdict = judged(plan)

    assert verdict.faults == 0
    assert "H7" in {each.property for each in verdict.violations}
    assert judged(plan)[1].violations == []
