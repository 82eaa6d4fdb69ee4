"""The state of a batch's members in its collector, and conclusions from it. No I/O."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from disque_trio.terminal.counting import counted
from disque_trio.worker.ends import Ended
from disque_trio.worker.tokens import CHUNK, FAILED, End, Member, State, Token, later

DONE: Final[End] = ("done", "")
_SHOWN: Final = 20
_INFERRED: Final[Mapping[Ended, End]] = {
    "acked": ("cancelled", "acknowledged, but no worker reported its outcome"),
    "gone": ("cancelled", "no node has it any more, and no worker reported its outcome"),
    "dead": ("dead", "no worker reported why"),
    "expired": ("expired", "its ttl has passed"),
}


@attrs.frozen
class MemberEnd:
    """The outcome of one member of a batch."""

    place: int
    """Its position among the calls of `App.batch`, from 0."""
    state: State
    reason: str = ""


@attrs.frozen(kw_only=True)
class BatchEnds:
    """The outcomes of the members of a batch: the first argument of `then=task.partial()`."""

    size: int
    """The number of members."""
    counts: dict[str, int]
    """The number of members by state."""
    others: Sequence[MemberEnd] = ()
    """The members that are not done, by place."""
    left_out: int = 0
    """The number of members that are omitted here for lack of room."""

    @property
    def failed(self) -> int:
        """The number of members that are dead, expired, refused or late."""
        return sum(self.counts.get(state, 0) for state in FAILED)


@attrs.define(eq=False)
class Tally:
    """The members of a batch."""

    size: int
    ended: dict[int, End] = attrs.Factory(dict)
    """By place."""
    members: dict[int, Member] = attrs.Factory(dict)
    """By place; a member is missing until its producer has reported its id."""

    def take(self, token: Token) -> None:
        """Add the content of a token."""
        for place in token.done:
            self._end(place, DONE)
        for place, end in token.ended:
            self._end(place, end)
        for place, member in token.jobs:
            if 0 <= place < self.size:
                self.members[place] = member

    def _end(self, place: int, end: End) -> None:
        if 0 <= place < self.size:
            self.ended[place] = later(self.ended.get(place), end)

    def join(self) -> None:
        """Give all members that are the same job the same end."""
        by_id: dict[str, End] = {}
        for place, member in self.members.items():
            if place in self.ended and member.id:
                by_id[member.id] = later(by_id.get(member.id), self.ended[place])
        for place, member in self.members.items():
            if place not in self.ended and member.id in by_id:
                self.ended[place] = by_id[member.id]

    def has_ended(self, place: int) -> bool:
        """Is the end of this member known?"""
        return place in self.ended

    @property
    def is_complete(self) -> bool:
        """Have all members ended?"""
        return len(self.ended) == self.size

    def pending(self) -> dict[int, Member]:
        """The members with known ids that have not ended, by place."""
        return {n: each for n, each in self.members.items() if each.id and n not in self.ended}

    def unreported(self) -> list[int]:
        """Places of members without any token: the producer ended before it added them."""
        known = self.ended.keys() | self.members.keys()
        return [place for place in range(self.size) if place not in known]

    def infer_ends(self, ended: Mapping[int, Ended], now: float) -> None:
        """Record the ends of members that nodes report and no token describes."""
        for place, how in ended.items():
            member = self.members[place]
            end = _INFERRED[how]
            if how == "gone" and not member.steps and 0 < member.expires <= now:
                end = _INFERRED["expired"]
            elif end[0] == "cancelled" and member.is_unique:
                end = ("merged", "another job, which has ended, has its unique key")
            self._end(place, end)

    def late(self) -> None:
        """The deadline has passed: members that have not ended are late."""
        for place in range(self.size):
            self.ended.setdefault(place, ("late", "it had not ended at the deadline of the batch"))

    def ends(self, most: int) -> BatchEnds:
        """The outcomes of the members; `others` names at most `most` of those that are not done."""
        others = [
            MemberEnd(place, *self.ended[place])
            for place in range(self.size)
            if place in self.ended and self.ended[place][0] != "done"
        ]
        return BatchEnds(
            size=self.size,
            counts=dict(Counter(state for state, _ in self.ended.values())),
            others=others[:most],
            left_out=len(others[most:]),
        )

    def failures(self) -> str:
        """A description of the members that have failed."""
        failed = [
            f"{place} ({': '.join(filter(None, end))})"
            for place, end in sorted(self.ended.items())
            if end[0] in FAILED
        ]
        more = f" and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else ""
        members = counted(self.size, "member")
        return f"{len(failed)} of {members} failed: {', '.join(failed[:_SHOWN])}{more}"

    def chunks(self, places: Iterable[int]) -> list[Token]:
        """Tokens with all that is known of the chunks that contain these members."""
        return [
            Token(
                done=[n for n in each if self.ended.get(n) == DONE],
                ended=[(n, self.ended[n]) for n in each if self.ended.get(n, DONE) != DONE],
                jobs=[(n, self.members[n]) for n in each if n in self.members],
            )
            for chunk in sorted({place // CHUNK for place in places})
            for each in [range(chunk * CHUNK, min((chunk + 1) * CHUNK, self.size))]
        ]


def crowded(tokens: Sequence[Token], changed: Iterable[int]) -> list[bool]:
    """Which tokens are to be merged: those of a chunk that other tokens describe too, or in which
    something has changed."""
    chunks = [frozenset(place // CHUNK for place in token.places()) for token in tokens]
    counts = Counter(chunk for each in chunks for chunk in each)
    counts.update(2 * [place // CHUNK for place in changed])
    return [len(each) != 1 or any(counts[chunk] > 1 for chunk in each) for each in chunks]
