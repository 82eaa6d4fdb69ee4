"""The jobs of one queue that are held back until a time of their own: how many, and when the first
is due. One for those that wait for the end of their RETRY after a restart, and one for delayed
ones.

They are counted by the second in which they are due, so that any number of jobs of a second takes
one entry. A restart gives all jobs with the same RETRY the same time, within half a second.
"""

import heapq
from typing import Final

from disque_trio.statemachine.base import Millis

_SECOND = 1000
_FEW: Final = 64
"""So many seconds without jobs may stay in the heap beside as many as have some."""


class Backlog:
    """Counts by second. Each job leaves with the time with which it came."""

    __slots__ = ("_by_second", "_order", "number")

    def __init__(self) -> None:
        self.number = 0
        """How many jobs wait."""
        self._by_second: dict[int, int] = {}
        self._order: list[int] = []
        """A heap of the seconds, with some that have no jobs any more."""

    def add(self, due: Millis) -> bool:
        """One more is due then. Is it the only one of that second?"""
        second = due // _SECOND
        counted = self._by_second.get(second, 0)
        if not counted:
            heapq.heappush(self._order, second)
        self._by_second[second] = counted + 1
        self.number += 1
        return not counted

    def remove(self, due: Millis) -> bool:
        """One that was due then does not wait any more. Was it the last of that second?"""
        second = due // _SECOND
        self.number -= 1
        left = self._by_second[second] - 1
        if left:
            self._by_second[second] = left
            return False
        del self._by_second[second]
        self._tidy()
        return True

    def _tidy(self) -> None:
        """Let the first second be one that has jobs, and few of the others have none."""
        order, by_second = self._order, self._by_second
        if len(order) > 2 * len(by_second) + _FEW:
            self._order = sorted(by_second)
            return
        while order and order[0] not in by_second:
            heapq.heappop(order)

    def first_due(self) -> Millis:
        """When the first is due, to the second. There must be one."""
        return self._order[0] * _SECOND
