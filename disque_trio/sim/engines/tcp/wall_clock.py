"""The wall clock, counted from a chosen moment."""

import time

from disque_trio.sim.scenarios.plan import Micros


class WallClock:
    """Microseconds. The wall clock, because the nodes' traces have it."""

    epoch: Micros = 0
    """What the wall clock shows at time 0."""

    def now(self) -> Micros:
        """The time."""
        return _wall() - self.epoch

    def set(self, now: Micros) -> None:
        """Set the time."""
        self.epoch = _wall() - now


def _wall() -> Micros:
    return time.time_ns() // 1000
