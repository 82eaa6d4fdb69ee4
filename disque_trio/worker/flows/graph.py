"""Decides which members of a flow may be added, and which never will be. No I/O."""

from collections.abc import Sequence
from typing import Final

import attrs

from disque_trio.worker.tally import DONE, Tally
from disque_trio.worker.tokens import End, Member, Token

_SKIPPED: Final[End] = ("cancelled", "a member before it is not done")


@attrs.define(eq=False)
class Graph(Tally):
    """The members of a flow."""

    after: Sequence[Sequence[int]] = ()
    """By place: the predecessors, whose places are smaller."""
    is_cancelled: bool = False

    def take(self, token: Token) -> None:
        """Add the content of a token."""
        super().take(token)
        self.is_cancelled = self.is_cancelled or token.is_cancelled

    def has_ended(self, place: int) -> bool:
        """Is the end of this member known and final? A dead member may be redriven."""
        return place in self.ended and self.ended[place][0] != "dead"

    @property
    def is_complete(self) -> bool:
        """Will no more members run, unless a dead one is redriven?"""
        return self.is_cancelled or len(self.final()) == self.size

    def final(self) -> dict[int, End]:
        """By place: the ends of members that have ended, and of those that will never be added."""
        found: dict[int, End] = {}
        for place in range(self.size):
            if self.has_ended(place):
                found[place] = self.ended[place]
            elif any(found.get(each, DONE) != DONE for each in self.after[place]):
                found[place] = _SKIPPED
        return found

    def ready(self) -> list[int]:
        """The members that can be added: all their predecessors are done."""
        return [
            place
            for place in range(self.size)
            if place not in self.members and place not in self.ended
            if all(self.ended.get(each) == DONE for each in self.after[place])
        ]

    def pending(self) -> dict[int, Member]:
        """The members that were added and have not ended, or are dead, by place."""
        return {
            place: member for place, member in self.members.items() if not self.has_ended(place)
        }

    def running(self) -> list[int]:
        """The pending members that are not dead."""
        return [place for place in self.pending() if place not in self.ended]
