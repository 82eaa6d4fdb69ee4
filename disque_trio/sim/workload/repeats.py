"""Connections of producers, and ADDJOBs that are repeated because a connection ended without a
reply."""

import heapq
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from disque_trio.sim.scenarios.plan import Add, Micros
from disque_trio.sim.workload.visits import NEVER

REST: Final[Micros] = 500_000
"""The wait before a repetition."""


@attrs.define(eq=False)
class Connection:
    """A connection of a producer."""

    node: int
    adds: deque[Add] = attrs.Factory(deque)
    """The adds without a reply, in order."""
    dues: deque[tuple[Micros, Micros]] = attrs.Factory(deque)
    """For each request without a reply, in order: when the agent gives up, and after how long."""

    def answered(self, now: Micros) -> None:
        """Remove the first request. The next one gets its full time from now: it may have waited
        for this reply."""
        self.adds.popleft()
        self.dues.popleft()
        if self.dues:
            due, wait = self.dues[0]
            self.dues[0] = max(due, now + wait), wait


@attrs.define
class Repeats:
    """The adds to repeat, each at the node after the one that did not reply."""

    nodes: int
    _due: list[tuple[Micros, int, Add]] = attrs.Factory(list)
    """A heap, by time and order."""
    _last: int = 0

    def __bool__(self) -> bool:
        return bool(self._due)

    def note(self, now: Micros, adds: Iterable[Add]) -> None:
        """Record adds that got no reply."""
        for add in adds:
            if add.again:
                node = add.node % self.nodes + 1
                self._last += 1
                again = attrs.evolve(add, node=node, again=add.again - 1, dies_after=None)
                heapq.heappush(self._due, (now + REST, self._last, again))

    def deadline(self) -> Micros:
        """Return when the next add is due."""
        return self._due[0][0] if self._due else NEVER

    def take(self, now: Micros) -> Iterator[Add]:
        """Yield the adds that are due."""
        while self._due and self._due[0][0] <= now:
            yield heapq.heappop(self._due)[2]
