"""Intervals of time during which there was a fault."""

from collections.abc import Sequence

import attrs

from disque_trio.sim.scenarios.plan import Micros


@attrs.define(eq=False)
class Interval:
    """A fault from `start` to `end`, or one that still lasts."""

    start: Micros
    end: Micros | None = None
    is_unknown: bool = attrs.field(default=False, kw_only=True)
    """Two nodes had not learned of each other; nothing else was wrong."""
    is_slow: bool = attrs.field(default=False, kw_only=True)
    """Something was slow, not stopped."""
    lag: Micros = attrs.field(default=0, kw_only=True)
    """The additional delay of messages sent, or of batches begun, in the interval."""

    def meets(self, since: Micros, until: Micros) -> bool:
        """Does the interval overlap these times?"""
        return self.start <= until and (self.end is None or self.end >= since)


def meets_any(intervals: Sequence[Interval], since: Micros, until: Micros) -> bool:
    """Does any interval overlap these times? The last one is the most likely."""
    return any(interval.meets(since, until) for interval in reversed(intervals))


def begin_without(intervals: Sequence[Interval], period: Micros, until: Micros) -> Micros:
    """Return when the last `period` before `until` began, if these intervals do not count."""
    since = until - period
    begun = until
    spans = [(until if each.end is None else each.end, each.start) for each in intervals]
    for end, start in sorted(spans, reverse=True):
        if start < begun and end > since:
            since -= min(end, begun) - start
            begun = start
    return since


@attrs.define(eq=False)
class Partition(Interval):
    """An interval during which at least one link was cut."""

    alive: int = 0
    """The number of unfinished jobs at its start."""
    duplicates: int = 0
