"""How often collectors and coordinators look at their batches and flows.

Each look occupies a slot of the worker. The collector is an older job than the members that it
waits for, so it is delivered before them. Pauses leave at least half of the slots to members.
"""

from typing import Final

import attrs

SHORTEST_S: Final = 0.25
LONGEST_S: Final = 15.0
"""The longest pause between two looks; `SHORTEST_S` is the shortest."""
PART: Final = 4
"""A pause is the time since the last change, divided by this. So a batch of long jobs takes an
eighth longer than its jobs, on average."""
LOOKS_PER_S: Final = 200
"""The maximum number of members that nodes are asked about per second. With more than 3,000 members
the longest pause grows."""
_RECENT_S: Final = 5.0
_LONGEST_LOOK_S: Final = 0.2
"""The maximum duration of a look that counts; the rest is waiting in a free slot."""
_SHARE: Final = 0.5
"""The share of the slots for looks."""


@attrs.define(eq=False)
class Pace:
    """The looks of a worker. Times are seconds on one clock."""

    _looked_at: dict[str, float] = attrs.field(init=False, factory=dict)
    """The batches and flows of recent looks, the oldest first."""
    _took: float = attrs.field(init=False, default=0.0)
    """The average duration of a look."""

    def looked(self, name: str, began: float, now: float) -> None:
        """A look at this batch or flow has ended."""
        took = min(now - began, _LONGEST_LOOK_S)
        self._took = self._took + (took - self._took) / 8 if self._looked_at else took
        self._looked_at.pop(name, None)
        self._looked_at[name] = now
        while now - next(iter(self._looked_at.values())) > _RECENT_S:
            del self._looked_at[next(iter(self._looked_at))]

    def pause(self, quiet: float, pending: int, slots: int) -> float:
        """Seconds until the next look, if nothing has changed for `quiet` seconds and nodes are
        asked about `pending` members. `slots` is the number of the worker's slots, or 0 while one
        is free."""
        of_all = len(self._looked_at) * self._took / (slots * _SHARE) if slots else 0.0
        of_members = pending / LOOKS_PER_S
        least = min(max(SHORTEST_S, of_all, of_members), LONGEST_S)
        return min(max(quiet / PART, least), max(LONGEST_S, of_members))
