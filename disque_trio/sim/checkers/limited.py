"""The judge's records of a queue with limits, and of each of its groups that has limits."""

import attrs

from disque_trio.sim.checkers.records import FOREVER, NEVER
from disque_trio.sim.checkers.sides import Side
from disque_trio.sim.scenarios.plan import Micros


@attrs.define(eq=False)
class Leased:
    """A lease of a job that a node has granted."""

    since: Micros
    until: Micros
    """The earliest end of the lease."""
    until_at_most: Micros
    prolonged_until: Micros = NEVER
    """The earliest end after WORKING renewed it."""
    is_certain: bool = True
    """No other node has informed this one of a later lease."""


@attrs.frozen
class OfGroup:
    """The limits of each group of a queue."""

    concurrency: int = 0
    rate: int = 0
    period: Micros = 0
    burst: int = 0

    @property
    def is_set(self) -> bool:
        """Does a group have any limit?"""
        return bool(self.concurrency or self.rate)


@attrs.define(eq=False)
class Limited:
    """A queue with limits, or a group of one, and their use."""

    ordered_at: Micros
    """When the limits were set, or when a node joined that did not have them."""
    concurrency: int = 0
    rate: int = 0
    period: Micros = 0
    burst: int = 0
    is_loose: bool = False
    """May each side of a partition use the whole limits? Then each side is judged by itself."""
    of_group: OfGroup = OfGroup()
    """The limits of each group."""
    groups: dict[int, "Limited"] = attrs.Factory(dict)
    """The use of the limits, by group."""
    known_at: Micros = FOREVER
    """The earliest time at which all nodes certainly have the limits."""
    levels: dict[Side, tuple[float, Micros, int]] = attrs.Factory(dict)
    """By side: the number of deliveries above `rate`, when it was computed, and the highest
    possible number of keepers since it was 0."""
    leases: dict[tuple[str, str], Leased] = attrs.Factory(dict)
    """By node and job: the leases."""
    retry: Micros = 0
    """The longest RETRY of the queue's jobs."""
    full_at: dict[Side, Micros] = attrs.Factory(dict)
    """By side: when it last had no free lease, as far as its nodes may know."""
    served_at: dict[str, Micros] = attrs.Factory(dict)
    """By node: when it last delivered a job."""
    served: dict[str, int] = attrs.Factory(dict)
    """By node: the number of deliveries."""
    demands: dict[Side, tuple[Micros, Micros, int]] = attrs.Factory(dict)
    """By side: since when only the rate has kept jobs from its clients, when that was first
    observed, and the number of deliveries of its nodes at that time."""

    @property
    def all(self) -> "list[Limited]":
        """Return the queue and its groups."""
        return [self, *self.groups.values()]

    def group(self, number: int) -> "Limited | None":
        """Return one of the groups; None for jobs without a group, or if groups have no limits."""
        limits = self.of_group
        if number < 0 or not limits.is_set:
            return None
        if number not in self.groups:
            own = limits.concurrency, limits.rate, limits.period, limits.burst
            found = self.groups[number] = Limited(self.ordered_at, *own, self.is_loose)
            found.known_at = self.known_at
        return self.groups[number]
