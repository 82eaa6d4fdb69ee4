"""Time of a scenario: events of the simulated cluster happen while all tasks of the app sleep.

A task that sleeps from event to event would cost a turn of Trio for each; most events concern nodes
only, and wake no task.
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
"""How long the real thread sleeps before it looks again whether threads are out."""


class Limiter(Protocol):
    """A `CapacityLimiter` of Trio or of anyio."""

    @property
    def borrowed_tokens(self) -> float:
        """How many threads are out."""
        ...


class ScenarioEngine(Engine):
    """The heap. Who wakes a task in an event says so."""

    __slots__ = ("has_woken",)

    def __init__(self, now: Micros) -> None:
        super().__init__(now)
        self.has_woken = False

    def sync(self) -> Micros:
        """A task does something now."""
        self.now = max(self.now, round(trio.current_time() * SECOND))
        return self.now


class ScenarioClock(JumpClock):
    """Goes on to the next event, or to the next deadline of a task."""

    def __init__(self) -> None:
        super().__init__()
        self.engine: ScenarioEngine | None = None
        self.limiters: Sequence[Limiter] = ()
        """Of threads: while one is out, time stands still."""

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
