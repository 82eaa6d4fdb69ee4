"""The visits of a consumer: when it disconnects, and where it connects again."""

import random
from typing import Final

from disque_trio.sim.scenarios.plan import Consumer, Micros, Span

NEVER: Final[Micros] = 1 << 61


class Visits:
    """The visits of one consumer. A consumer that stays connected draws nothing."""

    def __init__(self, plan: Consumer, nodes: int, rng: random.Random) -> None:
        self._plan = plan
        self._nodes = nodes
        self._rng = rng
        self._is_here = False
        self._polls_left = 0
        self._ends: Micros = NEVER

    def ask(self, now: Micros) -> Micros:
        """Record a GETJOB; the first one begins a visit. Return the latest end of the visit."""
        if not self._is_here:
            self._is_here = True
            self._polls_left = self._between(self._plan.polls) or -1
            self._ends = now + (self._between(self._plan.visit) or NEVER)
        self._polls_left -= 1
        return self._ends

    def is_over(self, now: Micros) -> bool:
        """Does it disconnect as soon as it has no job in hand?"""
        return self._is_here and (self._polls_left == 0 or now >= self._ends)

    def leave(self) -> Micros:
        """Disconnect. Return for how long."""
        self._is_here = False
        return self._between(self._plan.away)

    def place(self, home: int) -> int:
        """Return the node of the next visit."""
        return self._rng.randint(1, self._nodes) if self._plan.roams else home

    def _between(self, span: Span) -> int:
        low, high = span
        return low if low == high else self._rng.randint(low, high)
