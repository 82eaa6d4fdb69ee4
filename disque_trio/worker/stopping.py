"""Counts the signals that stop a worker: a supervisor may send one stop as several signals."""

import signal
from collections.abc import Callable
from typing import Final

import attrs

STOPPING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
SAME_S: Final = 0.5
"""Stop signals within this many seconds of a counted one are not counted. A supervisor that signals
both a process and its process group sends two within milliseconds; so does a terminal that is
closed."""


@attrs.define(eq=False)
class Stops:
    """Counts requests to stop. `clock` is in seconds and never decreases."""

    clock: Callable[[], float]
    count: int = attrs.field(init=False, default=0)
    _last: float = attrs.field(init=False, default=0.0)

    def is_new(self) -> bool:
        """Count a signal. Returns False if it repeats the last counted one."""
        now = self.clock()
        if self.count and now - self._last < SAME_S:
            return False
        self.count, self._last = self.count + 1, now
        return True
