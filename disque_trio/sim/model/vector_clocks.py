"""Vector clocks: which events may have caused which (docs/simulation.md, "Vector clocks").

Each node and each client has one component, in the order of their creation. Stamps from before a
newcomer are shorter; missing components are 0.
"""

Stamp = tuple[int, ...]


class VectorClock:
    """One actor's clock."""

    __slots__ = ("_counts", "_place")

    def __init__(self, place: int) -> None:
        self._place = place
        self._counts = [0] * (place + 1)

    def tick(self) -> Stamp:
        """Count an event of this actor. Return its stamp."""
        self._counts[self._place] += 1
        return tuple(self._counts)

    def stamp(self) -> Stamp:
        """Return the current stamp, without an event."""
        return tuple(self._counts)

    def join(self, other: Stamp) -> None:
        """Merge the stamp of a message from another actor."""
        counts = self._counts
        if len(counts) < len(other):
            counts.extend([0] * (len(other) - len(counts)))
        # enumerate() makes one pair for all of them, zip() does not.
        for place, count in enumerate(other):
            if count > counts[place]:  # noqa: PLR1730  (max() costs four comparisons)
                counts[place] = count

    def learn(self, other: Stamp) -> Stamp:
        """Merge a stamp and count an event. Return its stamp."""
        self.join(other)
        self._counts[self._place] += 1
        return tuple(self._counts)


class NoClock(VectorClock):
    """Keeps no stamps, for runs without vector clocks."""

    __slots__ = ()

    def tick(self) -> Stamp:
        """Return an empty stamp."""
        return ()

    def stamp(self) -> Stamp:
        """Return an empty stamp."""
        return ()

    def join(self, other: Stamp) -> None:
        """Do nothing."""

    def learn(self, other: Stamp) -> Stamp:  # noqa: ARG002
        """Return an empty stamp."""
        return ()


def precedes(one: Stamp, other: Stamp) -> bool:
    """May the event stamped `one` have caused the one stamped `other`?"""
    if len(one) > len(other) and any(one[len(other) :]):
        return False
    return one != other and all(mine <= theirs for mine, theirs in zip(one, other, strict=False))
