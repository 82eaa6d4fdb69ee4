"""The search: which plan is run next, and which plans are kept.

The same candidates with the same outcomes, reported in the same order, give the same search. So a
search can be continued from the plans that it has kept.
"""

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from disque_trio.sim.guided import operators
from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.sim.scenarios.scenario import Scenario

FRESH: Final = 1_000_000
"""A search with seed N draws the scenario's seeds from N times this number on."""
_FIRST: Final = 8
"""The number of plans from seeds of each scenario before any plan is changed."""
_LENGTH: Final = (0.3, 0.7)
"""The share of a seed's chaos in a short seed: later parts cost most, because jobs have
accumulated."""
_KEEPS: Final = 0.97
"""The factor by which the past of a way loses weight with each further run."""
_LEAST: Final = 0.1
"""Each way is drawn with at least this share of the best way's rate."""


WAYS: Final = ("seed", "short seed", "changed", "overlaid")
"""How plans are made: from a seed of the scenario, from its first part, from a kept plan with a few
operators, or from a kept plan together with the events of another one."""


@attrs.frozen
class Candidate:
    """A plan to run."""

    number: int
    scenario: str
    plan: Plan
    way: str
    """One of `WAYS`; empty for a plan of an earlier search."""
    how: str
    """A description of its origin."""


@attrs.frozen
class Kept:
    """A plan that has added to the signatures."""

    number: int
    scenario: str
    plan: Plan
    signature: tuple[str, ...]
    steps: int
    """Its cost: the number of events of its run."""


@attrs.define
class Search:
    """One search over some scenarios, which take turns."""

    scenarios: Mapping[str, Scenario]
    seed: int
    first: Sequence[tuple[str, Plan]] = ()
    """Plans of an earlier search, with their scenarios; they run before any others."""
    kept: list[Kept] = attrs.field(factory=list, init=False)
    counts: Counter[str] = attrs.field(factory=Counter, init=False)
    """By element of signatures: the number of kept plans with it."""

    rates: dict[str, tuple[float, float]] = attrs.field(factory=dict, init=False)
    """By way: the number of new elements in its recent runs, and their cost."""

    def candidates(self, start: int, count: int) -> list[Candidate]:
        """Return the next candidates. They depend on the outcomes reported so far, and on their
        numbers."""
        weights = self._weights()
        return [self._candidate(number, weights) for number in range(start, start + count)]

    def tell(self, candidate: Candidate, signature: Iterable[str], steps: int) -> tuple[str, ...]:
        """Report the outcome of a run. Return the new elements; if there are any, the plan is
        kept."""
        elements, cost = tuple(signature), max(steps, 1)
        new = tuple(each for each in elements if each not in self.counts)
        if candidate.way:
            found, spent = self.rates.get(candidate.way, (0.0, 0.0))
            self.rates[candidate.way] = (_KEEPS * found + len(new), _KEEPS * spent + cost)
        if new:
            self.keep(Kept(candidate.number, candidate.scenario, candidate.plan, elements, cost))
        return new

    def keep(self, kept: Kept) -> None:
        """Keep a plan, or one of an earlier search."""
        self.kept.append(kept)
        self.counts.update(kept.signature)

    def _candidate(self, number: int, weights: list[float]) -> Candidate:
        if number < len(self.first):
            scenario, plan = self.first[number]
            return Candidate(number, scenario, plan, "", "kept before")
        names = list(self.scenarios)
        turn = number - len(self.first)
        name = names[turn % len(names)]
        rng = stream(self.seed, "guided", number)
        own = [at for at, each in enumerate(self.kept) if each.scenario == name]
        fresh = expand(self.scenarios[name], self.seed * FRESH + number)
        way = self._way(rng) if own and turn >= _FIRST * len(names) else WAYS[0]
        if way == "seed":
            return Candidate(number, name, fresh, way, f"seed {fresh.seed}")
        if way == "short seed":
            plan = operators.cut(fresh, rng.uniform(*_LENGTH))
            return Candidate(number, name, plan, way, f"the first part of seed {fresh.seed}")
        (parent,) = rng.choices(own, [weights[at] for at in own])
        kept = self.kept[parent]
        donor = fresh
        if rng.random() < 0.5:
            donor = attrs.evolve(self.kept[rng.choice(own)].plan, seed=fresh.seed)
        source = operators.Source(rng, donor, "off" in self.scenarios[name].cluster.aof)
        if way == "overlaid":
            plan = operators.overlaid(kept.plan, source)
            return Candidate(number, name, plan, way, f"plan {kept.number}, and another over it")
        plan, how = operators.changed(kept.plan, source)
        return Candidate(number, name, plan, way, f"plan {kept.number}: {', '.join(how)}")

    def _way(self, rng: random.Random) -> str:
        """Draw a way by its recent new elements per cost."""
        found = {way: self.rates.get(way, (0.0, 0.0)) for way in WAYS}
        known = {way: new / cost for way, (new, cost) in found.items() if cost}
        best = max(known.values(), default=0.0) or 1.0
        share = [max(known.get(way, best) / best, _LEAST) for way in WAYS]
        return rng.choices(WAYS, [each * each for each in share])[0]

    def _weights(self) -> list[float]:
        """Return, by kept plan, the rarity of its elements per cost."""
        return [
            sum(1 / self.counts[each] for each in kept.signature) / kept.steps for kept in self.kept
        ]
