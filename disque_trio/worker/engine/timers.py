"""When jobs need attention.

Most jobs end before any of their times comes, and the jobs of one reply have similar times. So jobs
share timers, which fire too early. Only for a job that is still there then, the exact time counts.
"""

import heapq
from collections import deque
from typing import Final, Generic, Protocol, TypeVar

import attrs

NEVER: Final = 1 << 61
GRAIN: Final = 1 << 17
"""Timers that are shared fire at multiples of this: so much too early at most. Microseconds."""


class Watched(Protocol):
    """What has a timer."""

    armed: int
    """When its timer fires, at `due` or before; NEVER for no timer."""

    @property
    def due(self) -> int:
        """When it needs attention."""
        ...


Item = TypeVar("Item", bound=Watched)


@attrs.define(eq=False)
class Timers(Generic[Item]):
    """Timers by time. An item whose `armed` is another time than that of a timer has left it."""

    count: int = 0
    """How many items timers have, those included that have left."""
    _items: dict[int, deque[Item]] = attrs.Factory(dict)
    _times: list[int] = attrs.Factory(list)
    """A heap."""

    def watch(self, item: Item) -> None:
        """See that a timer fires when it is due, or before."""
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
        """Those that are due. Each is to be watched again."""
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
        """Forget the items that have left."""
        for time, items in list(self._items.items()):
            left = deque(item for item in items if item.armed == time)
            self.count += len(left) - len(items)
            self._items[time] = left
