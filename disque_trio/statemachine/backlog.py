"""The jobs of one queue that wait for the end of their RETRY after a restart: how many, and when
the first is due.

They are counted by the second in which they are due. A restart gives all jobs with the same RETRY
the same time, within half a second, so this takes a few numbers for any number of jobs.
"""

import heapq

from disque_trio.statemachine.base import Millis

_SECOND = 1000


class Backlog:
    """Counts by second. Each job leaves with the time with which it came."""

    __slots__ = ("_by_second", "_order", "number")

    def __init__(self) -> None:
        self.number = 0
        """How many jobs wait."""
        self._by_second: dict[int, int] = {}
        self._order: list[int] = []
        """A heap of the seconds, with some that have no jobs any more."""

    def add(self, due: Millis) -> None:
        """One more is due then."""
        second = due // _SECOND
        counted = self._by_second.get(second, 0)
        if not counted:
            heapq.heappush(self._order, second)
        self._by_second[second] = counted + 1
        self.number += 1

    def remove(self, due: Millis) -> None:
        """One that was due then does not wait any more."""
        second = due // _SECOND
        left = self._by_second[second] - 1
        if left:
            self._by_second[second] = left
        else:
            del self._by_second[second]
        self.number -= 1

    def first_due(self) -> Millis:
        """When the first is due, to the second. There must be one."""
        order = self._order
        while order[0] not in self._by_second:
            heapq.heappop(order)
        return order[0] * _SECOND
