"""What the judge knows of a queue with limits, and of each of its groups that has limits."""

import attrs

from disque_trio.sim.checkers.records import FOREVER, NEVER
from disque_trio.sim.checkers.sides import Side
from disque_trio.sim.scenarios.plan import Micros


@attrs.define(eq=False)
class Leased:
    """A node has given a lease of a job."""

    since: Micros
    until: Micros
    """It lasts until then at least."""
    until_at_most: Micros
    prolonged_until: Micros = NEVER
    """Likewise, by WORKING."""
    is_certain: bool = True
    """The node has heard of no other that has the job."""


@attrs.frozen
class OfGroup:
    """The limits of each group of a queue."""

    concurrency: int = 0
    rate: int = 0
    period: Micros = 0
    burst: int = 0

    @property
    def is_set(self) -> bool:
        """Is there one?"""
        return bool(self.concurrency or self.rate)


@attrs.define(eq=False)
class Limited:
    """A queue with limits, or a group of one, and their use."""

    ordered_at: Micros
    """When they were set, or a node came that did not know them."""
    concurrency: int = 0
    rate: int = 0
    period: Micros = 0
    burst: int = 0
    is_loose: bool = False
    """May each side of a partition use the whole? Then each is judged by itself."""
    of_group: OfGroup = OfGroup()
    """Those of each of its groups."""
    groups: dict[int, "Limited"] = attrs.Factory(dict)
    """Their use."""
    known_at: Micros = FOREVER
    """Since when all nodes know them, as far as is sure."""
    levels: dict[Side, tuple[float, Micros, int]] = attrs.Factory(dict)
    """How many jobs more than `rate` allows were delivered on a side in any time until when, and by
    how many keepers at most."""
    leases: dict[tuple[str, str], Leased] = attrs.Factory(dict)
    """By node and job."""
    retry: Micros = 0
    """The longest RETRY of its jobs."""
    full_at: dict[Side, Micros] = attrs.Factory(dict)
    """When there was last no free lease, as far as the nodes of the side may know."""
    served_at: dict[str, Micros] = attrs.Factory(dict)
    """When each node last delivered a job."""
    served: dict[str, int] = attrs.Factory(dict)
    """How many jobs it delivered."""
    demands: dict[Side, tuple[Micros, Micros, int]] = attrs.Factory(dict)
    """Since when nothing but the rate has kept the clients of a side from jobs; when that was first
    seen, and how many jobs its nodes had delivered then."""

    @property
    def all(self) -> "list[Limited]":
        """The queue and its groups."""
        return [self, *self.groups.values()]

    def group(self, number: int) -> "Limited | None":
        """One of its groups; None for jobs without one, or if groups have no limits."""
        limits = self.of_group
        if number < 0 or not limits.is_set:
            return None
        if number not in self.groups:
            own = limits.concurrency, limits.rate, limits.period, limits.burst
            found = self.groups[number] = Limited(self.ordered_at, *own, self.is_loose)
            found.known_at = self.known_at
        return self.groups[number]
