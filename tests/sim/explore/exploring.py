"""Small explorations, for tests: seconds at most."""

from typing import Any

import attrs

from disque_trio.sim.explore import scope
from disque_trio.sim.explore.scope import Scope
from disque_trio.sim.explore.search import Outcome, Search
from tests.sim.mutants.mutant import all_mutants
from tests.sim.mutants.swapping import applied


def small(name: str, **bounds: Any) -> Scope:
    """A shipped scope, without faults and late timers unless the bounds say so."""
    return attrs.evolve(scope.load(name), **{"late": 0, "most_faults": 0, **bounds})


def mutated(mutant: str, found: Scope) -> Outcome:
    """The scope with a known mistake in the node."""
    with applied(all_mutants()[mutant]):
        return Search(found).run()
