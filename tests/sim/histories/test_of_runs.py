"""Simulated runs are judged by what their clients saw: intact nodes pass, mistakes are noticed."""

import pytest

from tests.sim.histories.played import played
from tests.sim.mutants.mutant import all_mutants
from tests.sim.mutants.swapping import applied

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["small", "calm", "lone"])
def test_the_clients_of_intact_nodes_see_nothing_wrong(name: str, seed: int) -> None:
    is_right, verdict = played(name, seed)

    assert is_right
    assert verdict.violations == []
    assert verdict.deliveries


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
