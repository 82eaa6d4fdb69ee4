"""How many jobs of one queue wait for a time of their own, and when the first is due. A queue has
one backlog for delayed jobs, and one for jobs that wait for the end of their RETRY after a restart.

Jobs are counted per second in which they are due, so all jobs of a second share one entry. After a
restart, all jobs with the same RETRY are due within the same half second.
"""

import heapq
from typing import Final

from disque_trio.statemachine.base import Millis

_SECOND = 1000
_FEW: Final = 64
"""The heap is rebuilt when empty seconds outnumber those with jobs by more than this."""


class Backlog:
    """Counts by second. A job is removed with the same time with which it was added."""

    __slots__ = ("_by_second", "_order", "number")

    def __init__(self) -> None:
        self.number = 0
        """The number of waiting jobs."""
        self._by_second: dict[int, int] = {}
        self._order: list[int] = []
        """A heap of the seconds; some no longer have jobs."""

    def add(self, due: Millis) -> bool:
        """Count a job that is due at `due`. Returns whether it is the only one of that second."""
        second = due // _SECOND
        counted = self._by_second.get(second, 0)
        if not counted:
            heapq.heappush(self._order, second)
        self._by_second[second] = counted + 1
        self.number += 1
        return not counted

    def remove(self, due: Millis) -> bool:
        """Remove a job that was due at `due`. Returns whether it was the last one of that
        second."""
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
        """Ensure that the first second in the heap has jobs, and limit the number of empty ones."""
        order, by_second = self._order, self._by_second
        if len(order) > 2 * len(by_second) + _FEW:
            self._order = sorted(by_second)
            return
        while order and order[0] not in by_second:
            heapq.heappop(order)

    def first_due(self) -> Millis:
        """When the first job is due, rounded down to the second. The backlog must not be empty."""
        return self._order[0] * _SECOND
