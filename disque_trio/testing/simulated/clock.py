"""The time of a scenario: events of the simulated cluster are processed while all tasks of the app
sleep.

A task that sleeps from event to event would cost a turn of Trio for each; most events concern only
nodes, and wake no task.
"""

import math
from collections.abc import Sequence
from typing import Final, Protocol

import trio

from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.trio.virtual_time import JumpClock
from disque_trio.sim.scenarios.plan import Micros

SECOND: Final[Micros] = 1_000_000


_LOOK_S: Final = 0.0005
"""How long the real thread sleeps before it checks again whether worker threads are running."""


class Limiter(Protocol):
    """A `CapacityLimiter` of Trio or of anyio."""

    @property
    def borrowed_tokens(self) -> float:
        """The number of running threads."""
        ...


class ScenarioEngine(Engine):
    """The event heap. Code that wakes a task in an event sets `has_woken`."""

    __slots__ = ("has_woken",)

    def __init__(self, now: Micros) -> None:
        super().__init__(now)
        self.has_woken = False

    def sync(self) -> Micros:
        """Advance the heap to the current time, before a task acts."""
        self.now = max(self.now, round(trio.current_time() * SECOND))
        return self.now


class ScenarioClock(JumpClock):
    """Advances to the next event, or to the next deadline of a task."""

    def __init__(self) -> None:
        super().__init__()
        self.engine: ScenarioEngine | None = None
        self.limiters: Sequence[Limiter] = ()
        """Limiters of threads: virtual time stops while a thread is running."""

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Process events up to the deadline, or until one has woken a task."""
        engine = self.engine
        if engine is None:
            return super().deadline_to_sleep_time(deadline)
        if any(each.borrowed_tokens for each in self.limiters):
            return _LOOK_S
        until = deadline if deadline == math.inf else round(deadline * SECOND)
        engine.has_woken = False
        while engine.next_time() <= until:
            engine.step()
            if engine.has_woken:
                self._now = max(self._now, engine.now / SECOND)
                return 0.0
        return super().deadline_to_sleep_time(deadline)
