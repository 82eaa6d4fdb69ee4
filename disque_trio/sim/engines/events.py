"""The event heap: true time, and the planned events. It imports neither nodes nor links."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Final

import attrs

from disque_trio.sim.scenarios.plan import Micros

NEVER: Final[Micros] = 1 << 61


class Engine:
    """A heap of events, ordered by time, then by the order in which they were planned."""

    __slots__ = ("_heap", "_sequence", "now", "steps")

    def __init__(self, now: Micros = 0) -> None:
        self.now = now
        self.steps = 0
        """The number of processed events."""
        self._heap: list[tuple[Micros, int, Callable[[Any], None], Any]] = []
        self._sequence = 0

    def at(self, time: Micros, act: Callable[[Any], None], subject: Any) -> None:
        """Plan an event for this time, or for now if the time is past."""
        self._sequence += 1
        now = self.now
        heappush(self._heap, (time if time > now else now, self._sequence, act, subject))

    def later(self, delay: Micros, act: Callable[[Any], None], subject: Any) -> None:
        """Plan an event after a delay."""
        self._sequence += 1
        heappush(self._heap, (self.now + delay, self._sequence, act, subject))

    def sync(self) -> Micros:
        """Return the time: virtual time stands still between two events."""
        return self.now

    def read(self) -> Micros:
        """Return the time that a node reads: that of the present event."""
        return self.now

    def next_time(self) -> Micros:
        """Return the time of the next event; NEVER if there is none."""
        return self._heap[0][0] if self._heap else NEVER

    def step(self) -> None:
        """Process the next event."""
        self.now, _, act, subject = heappop(self._heap)
        self.steps += 1
        act(subject)

    def run(self, until: Micros) -> None:
        """Process all events up to this time, then advance the time to it."""
        heap, pop = self._heap, heappop
        steps = 0
        try:
            while heap and heap[0][0] <= until:
                self.now, _, act, subject = pop(heap)
                steps += 1
                act(subject)
        finally:
            self.steps += steps
        self.now = max(self.now, until)


@attrs.define(eq=False)
class Countdown:
    """Calls `over` after `left` calls of `one_less`."""

    left: int
    over: Callable[[], None]

    def one_less(self) -> None:
        """Count one call down."""
        self.left -= 1
        if not self.left:
            self.over()
