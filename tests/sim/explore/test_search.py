"""Explorations are complete, find what is wrong, and leave out nothing by their reductions."""

from typing import Any, Final

import attrs
import pytest

from disque_trio.sim.explore import scope
from disque_trio.sim.explore.search import Outcome, Reduction, Search
from tests.sim.explore.exploring import mutated, small

SMALL: Final[dict[str, dict[str, Any]]] = {
    "collection": {"late": 1},
    "collection-of-three": {},
    "followers": {},
    "forget": {},
    "giving-back": {},
    "limits": {"horizon_s": 1},
    "moving": {"states": 1500},
    "moving-copies": {},
    "once": {"most_faults": 1},
    "redrive": {},
    "repair": {"states": 12, "most_faults": 1},
    "replacing": {},
    "requeue": {},
    "succession": {},
    "unique": {},
    "unique-of-three": {"states": 1500},
}
"""Bounds with which the scopes take a second or two, but for those that are slow."""
SLOW: Final = ("limits", "once", "repair")

CAUGHT: Final = {
    "ignoring-setack": ("collection", "keeps its acknowledgement"),
    "ignoring-gotack": ("collection", "keeps its acknowledgement"),
    "cleaned-up-after-success": ("collection", "one is lost"),
    "holders-listed-twice": ("collection", "AssertionError"),
    "limits-not-heeded": ("limits", "2 deliveries, where there may be 1"),
}
"""What shows in which scope, without faults."""


def test_every_shipped_scope_is_explored_here() -> None:
    assert list(SMALL) == scope.shipped()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in SMALL]
)
def test_nothing_is_violated_in_a_small_part_of_a_scope(name: str) -> None:
    outcome = Search(small(name, **SMALL[name])).run()

    assert outcome.violation is None
    assert outcome.is_complete or "states" in SMALL[name]
    assert outcome.settled or not outcome.is_complete


@pytest.mark.sample(4)
@pytest.mark.parametrize("mutant", CAUGHT)
def test_a_known_mistake_is_found(mutant: str) -> None:
    name, what = CAUGHT[mutant]

    outcome = mutated(mutant, small(name))

    assert outcome.violation is not None
    assert what in outcome.violation.what
    assert not outcome.is_complete


def _explored(**reduction: bool) -> tuple[Outcome, set[tuple[int, ...]]]:
    search = Search(small("once"), reduction=Reduction(**reduction))
    settled: set[tuple[int, ...]] = set()
    judge = search.fairness.fault_of

    def watched(world: Any) -> str:
        settled.add(tuple(local.forms[0][0] for local in world.nodes))
        return judge(world)

    search.fairness.fault_of = watched  # type: ignore[method-assign]
    return search.run(), settled


def test_reductions_visit_less_and_settle_in_as_many_ways() -> None:
    whole, all_settled = _explored(sleep=False, persistent=False)
    reduced, settled = _explored()

    assert reduced.steps < whole.steps
    assert reduced.worlds <= whole.worlds
    assert len(settled) == len(all_settled)


THREE: Final = """
about = "A job goes to two other nodes."
nodes = 3
late = 0
exchangeable = ["b", "c"]
[[clients]]
node = "a"
does = ["ADDJOB q one 0 REPLICATE 3 RETRY 9"]
"""


def test_nodes_that_differ_in_their_names_only_are_visited_once() -> None:
    found = scope.parse(THREE, "three")

    folded = Search(found).run()
    whole = Search(attrs.evolve(found, exchangeable=())).run()

    assert folded.is_complete
    assert whole.is_complete
    assert folded.worlds < whole.worlds


@pytest.mark.parametrize(
    ("bound", "said"), [({"states": 5}, "5 states"), ({"depth": 3}, "depth 3")]
)
def test_an_exploration_says_at_which_bound_it_stopped(bound: dict[str, Any], said: str) -> None:
    outcome = Search(small("collection", **bound)).run()

    assert outcome.stopped == said
    assert not outcome.is_complete


def test_an_exploration_stops_when_its_time_is_over() -> None:
    ticks = iter(range(0, 100_000, 700))

    outcome = Search(small("collection"), clock=lambda: float(next(ticks))).run()

    assert outcome.stopped == "600 seconds"


def test_two_explorations_are_equal() -> None:
    first, second = [Search(small("requeue")).run() for _ in range(2)]

    assert attrs.evolve(first, seconds=0.0) == attrs.evolve(second, seconds=0.0)
