"""Times during which something was wrong."""

import attrs

from disque_trio.sim.scenarios.plan import Micros


@attrs.define(eq=False)
class Spell:
    """Something lasted from `start` to `end`, or still lasts."""

    start: Micros
    end: Micros | None = None
    is_parting: bool = attrs.field(default=False, kw_only=True)
    """Two nodes did not know each other; nothing else was wrong."""
    lag: Micros = attrs.field(default=0, kw_only=True)
    """By how much more what is sent in it is late."""

    def meets(self, since: Micros, until: Micros) -> bool:
        """Was any of it between these times?"""
        return self.start <= until and (self.end is None or self.end >= since)


@attrs.define(eq=False)
class Partition(Spell):
    """A time during which some link or other was cut without a break."""

    alive: int = 0
    """Unfinished jobs at its start."""
    duplicates: int = 0
