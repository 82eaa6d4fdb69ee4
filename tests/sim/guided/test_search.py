"""The search."""

import pytest

from disque_trio.sim.guided.search import FRESH, WAYS, Candidate, Search
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load

SWARM = load("scenarios/swarm.toml")


def pretended(candidate: Candidate) -> list[str]:
    """A signature that depends on the plan."""
    plan = candidate.plan
    return [f"{each.kind} {each.at // 1_000_000 % 7}" for each in plan.faults]


def searched(batches: int, seed: int = 3) -> tuple[Search, list[Candidate]]:
    search, ran = Search({"swarm": SWARM}, seed), list[Candidate]()
    for number in range(batches):
        for candidate in search.candidates(8 * number, 8):
            search.tell(candidate, pretended(candidate), steps=100)
            ran.append(candidate)
    return search, ran


def test_it_begins_with_seeds_of_the_scenario() -> None:
    _, ran = searched(1)

    assert [each.plan for each in ran] == [expand(SWARM, 3 * FRESH + n) for n in range(8)]


def test_every_way_of_making_plans_has_its_turns() -> None:
    _, ran = searched(12)

    assert {each.way for each in ran} == set(WAYS)


def test_only_a_plan_that_shows_something_new_is_kept() -> None:
    search = Search({"swarm": SWARM}, 0)
    one, other, third = search.candidates(0, 3)

    assert search.tell(one, ["a", "b"], 10) == ("a", "b")
    assert search.tell(other, ["b"], 10) == ()
    assert search.tell(third, ["b", "c"], 10) == ("c",)
    assert [each.number for each in search.kept] == [0, 2]
    assert search.counts == {"a": 1, "b": 2, "c": 1}


def test_the_same_outcomes_give_the_same_search() -> None:
    (one, ran), (other, ran_too) = searched(6), searched(6)

    assert ran == ran_too
    assert one == other


def test_a_search_goes_on_from_what_it_has_kept() -> None:
    whole, ran = searched(6)
    half, _ = searched(4)
    again = Search({"swarm": SWARM}, 3)
    for each in half.kept:
        again.keep(each)
    again.rates = dict(half.rates)
    for number in (4, 5):
        for candidate in again.candidates(8 * number, 8):
            assert candidate == ran[candidate.number]
            again.tell(candidate, pretended(candidate), steps=100)

    assert again == whole


@pytest.mark.slow
def test_a_way_that_shows_more_for_its_cost_is_taken_more_often() -> None:
    search = Search({"swarm": SWARM}, 1)
    taken: list[str] = []
    for number in range(40):
        for candidate in search.candidates(8 * number, 8):
            new = [str(candidate.number)] if candidate.way == "changed" else ["seen"]
            search.tell(candidate, new, steps=100)
            taken.append(candidate.way)

    assert taken[100:].count("changed") > 0.8 * len(taken[100:])


def test_plans_of_an_earlier_search_are_run_first() -> None:
    plans = [("swarm", expand(SWARM, seed)) for seed in (900, 901)]
    search = Search({"swarm": SWARM}, 0, plans)

    assert [each.plan for each in search.candidates(0, 3)[:2]] == [plan for _, plan in plans]
