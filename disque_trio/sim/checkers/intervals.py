"""Times during which something was wrong."""

from collections.abc import Sequence

import attrs

from disque_trio.sim.scenarios.plan import Micros


@attrs.define(eq=False)
class Interval:
    """Something lasted from `start` to `end`, or still lasts."""

    start: Micros
    end: Micros | None = None
    is_unknown: bool = attrs.field(default=False, kw_only=True)
    """Two nodes did not know each other; nothing else was wrong."""
    lag: Micros = attrs.field(default=0, kw_only=True)
    """By how much more what is sent in it is late."""

    def meets(self, since: Micros, until: Micros) -> bool:
        """Was any of it between these times?"""
        return self.start <= until and (self.end is None or self.end >= since)


def meets_any(intervals: Sequence[Interval], since: Micros, until: Micros) -> bool:
    """Was any of these between the two times? The last is the most likely."""
    return any(interval.meets(since, until) for interval in reversed(intervals))


@attrs.define(eq=False)
class Partition(Interval):
    """A time during which some link or other was cut without a break."""

    alive: int = 0
    """Unfinished jobs at its start."""
    duplicates: int = 0
