"""How often collectors and coordinators look at their batches and flows.

Each look takes a slot of the worker, and is an older job than the members that it waits for, so it
comes before them. Many of them leave half of the slots to the members.
"""

from typing import Final

import attrs

SHORTEST_S: Final = 0.25
LONGEST_S: Final = 15.0
"""The shortest and the longest pause between two looks,"""
PART: Final = 4
"""which is this part of the time since anything has happened. So a batch of long jobs takes an
eighth longer than its jobs."""
LOOKS_PER_S: Final = 200
"""Members that nodes are asked for in a second. With more than 3,000 the longest pause grows."""
_RECENT_S: Final = 5.0
_LONGEST_LOOK_S: Final = 0.2
"""What a look takes longer, it has waited in a free slot."""
_SHARE: Final = 0.5
"""Of the slots, for looks."""


@attrs.define(eq=False)
class Pace:
    """The looks of a worker. Times are seconds on one clock."""

    _looked_at: dict[str, float] = attrs.field(init=False, factory=dict)
    """The batches and flows of the last looks, the oldest first."""
    _took: float = attrs.field(init=False, default=0.0)
    """A look, on average."""

    def looked(self, name: str, began: float, now: float) -> None:
        """A look at this batch or flow has ended."""
        took = min(now - began, _LONGEST_LOOK_S)
        self._took = self._took + (took - self._took) / 8 if self._looked_at else took
        self._looked_at.pop(name, None)
        self._looked_at[name] = now
        while now - next(iter(self._looked_at.values())) > _RECENT_S:
            del self._looked_at[next(iter(self._looked_at))]

    def pause(self, quiet: float, pending: int, slots: int) -> float:
        """How long until the next look, if nothing has happened for so long and nodes are asked for
        so many members. `slots` are those of the worker, or 0 while one is free."""
        of_all = len(self._looked_at) * self._took / (slots * _SHARE) if slots else 0.0
        of_members = pending / LOOKS_PER_S
        least = min(max(SHORTEST_S, of_all, of_members), LONGEST_S)
        return min(max(quiet / PART, least), max(LONGEST_S, of_members))
