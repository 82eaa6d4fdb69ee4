"""Timers of jobs.

Most jobs end before any of their times is reached, and the jobs of one reply have similar times. So
jobs share timers that fire too early; the exact time is computed only for jobs that still exist
then.
"""

import heapq
from collections import deque
from typing import Final, Generic, Protocol, TypeVar

import attrs

NEVER: Final = 1 << 61
GRAIN: Final = 1 << 17
"""Shared timers fire at multiples of this, so they are early by at most this, in microseconds."""


class Watched(Protocol):
    """An item with a timer."""

    armed: int
    """When its timer fires, at `due` or before; NEVER for no timer."""

    @property
    def due(self) -> int:
        """When it needs attention."""
        ...


Item = TypeVar("Item", bound=Watched)


@attrs.define(eq=False)
class Timers(Generic[Item]):
    """Timers by time. An item has left a timer if its `armed` differs from the timer's time."""

    count: int = 0
    """The number of items in timers, including those that have left."""
    _items: dict[int, deque[Item]] = attrs.Factory(dict)
    _times: list[int] = attrs.Factory(list)
    """A heap."""

    def watch(self, item: Item) -> None:
        """Ensure that a timer fires when the item is due, or before."""
        due = item.due
        if due < item.armed:
            self._arm(item, due - due % GRAIN)

    def _arm(self, item: Item, time: int) -> None:
        item.armed = time
        items = self._items.get(time)
        if items is None:
            items = self._items[time] = deque()
            heapq.heappush(self._times, time)
        items.append(item)
        self.count += 1

    def deadline(self) -> int:
        """When the next timer fires."""
        while self._times:
            time = self._times[0]
            items = self._items[time]
            while items and items[0].armed != time:
                items.popleft()
                self.count -= 1
            if items:
                return time
            del self._items[heapq.heappop(self._times)]
        return NEVER

    def take(self, now: int) -> list[Item]:
        """The items that are due. Watch each of them again."""
        found: list[Item] = []
        while self._times and self._times[0] <= now:
            time = heapq.heappop(self._times)
            items = self._items.pop(time)
            self.count -= len(items)
            for item in items:
                if item.armed != time:
                    continue
                item.armed = NEVER
                if item.due <= now:
                    found.append(item)
                elif item.due < NEVER:
                    self._arm(item, item.due)
        return found

    def clear(self) -> None:
        """Remove the items that have left."""
        for time, items in list(self._items.items()):
            left = deque(item for item in items if item.armed == time)
            self.count += len(left) - len(items)
            self._items[time] = left
