"""The event heap beside running tasks: events happen as Trio's clock or the real one advances.

Code that is not called by an event calls `sync` first: a node whose own timer has fired, or a
socket with new bytes.
"""

import heapq
from collections.abc import Callable
from typing import Any

import trio

from disque_trio.sim.engines.events import NEVER, Engine
from disque_trio.sim.scenarios.plan import Micros


class LiveEngine(Engine):
    """An engine whose `now` follows a clock. If the clock goes back, `now` stands still."""

    __slots__ = ("_alarm", "_clock", "_sleeps_until", "epoch")

    def __init__(self, clock: Callable[[], Micros], now: Micros) -> None:
        """`now` is the engine's time at the start."""
        super().__init__(now)
        self._clock = clock
        self.epoch = clock() - now
        """The clock's reading at time 0."""
        self._alarm = trio.Event()
        self._sleeps_until: Micros = NEVER

    def sync(self) -> Micros:
        """Read the clock."""
        self.now = max(self.now, self._clock() - self.epoch)
        return self.now

    def restart(self) -> None:
        """Set the time to 0."""
        self.epoch = self._clock()
        self.now = 0

    def read(self) -> Micros:
        """Read the clock, for a node that runs in a task."""
        return self.sync()

    def at(self, time: Micros, act: Callable[[Any], None], subject: Any) -> None:
        super().at(time, act, subject)
        if time < self._sleeps_until:
            self._alarm.set()

    def later(self, delay: Micros, act: Callable[[Any], None], subject: Any) -> None:
        self.at(self.now + delay, act, subject)

    def step(self) -> None:
        _, _, act, subject = heapq.heappop(self._heap)
        self.steps += 1
        act(subject)

    async def live(self, until: Micros) -> None:
        """Process events until this time."""
        while True:
            while self.next_time() <= self.sync():
                self.step()
            if self.now >= until:
                return
            self._alarm = trio.Event()
            self._sleeps_until = min(self.next_time(), until)
            with trio.move_on_after((self._sleeps_until - self.now) / 1_000_000):
                await self._alarm.wait()
            self._sleeps_until = NEVER
