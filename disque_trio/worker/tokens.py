"""What jobs in the queue of a batch say of its members: which jobs they are, and how they ended.

Tokens are a set under union. What comes twice counts once, and several are merged into one.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Literal

import attrs

from disque_trio.client import commands
from disque_trio.client.command import Command
from disque_trio.worker import codec
from disque_trio.worker.copies import Copies
from disque_trio.worker.options import RESERVED, Place

TOKENS: Final = f"{RESERVED}batch."
OVER: Final = "over"
"""The key of the mark in that queue which says that the batch is over."""
CHUNK: Final = 128
"""Members of which one token tells."""
SPARE_S: Final = 24 * 3600
"""Tokens and collectors live so much longer than the batch may take."""
LEASE_S: Final = 20
"""A collector or coordinator that has lost its worker and its node is delivered again after this
time. Until then nothing follows members that have ended."""
KEEP_S: Final = 3600
"""How long nodes know that a batch is over."""
RETRY_S: Final = 60
"""A token that a collector has taken comes again so long after, or when its connection ends."""
_LONGEST: Final = 200
"""Characters of a reason."""

State = Literal["done", "cancelled", "merged", "dead", "expired", "refused", "late"]
"""How a member of a batch has ended.

`done`: its handler, or that of the last step, has returned. `cancelled`: by `Cancel`, or it was
acknowledged without a word of a worker. `merged`: another job has its `unique` key, and has ended.
`dead` and `expired`. `refused`: it could not be added. `late`: it has not ended at the deadline.
"""
FAILED: Final[frozenset[State]] = frozenset(("dead", "expired", "refused", "late"))
_RANK: Final[Sequence[State]] = (
    "late", "refused", "dead", "expired", "merged", "cancelled", "done",
)  # fmt: skip
"""If tokens differ, the last of these applies: a dead member may have been redriven."""


@attrs.frozen
class Member:
    """A job of a batch, as its producer was answered."""

    id: str
    """Empty if no answer came: it may be there."""
    expires: float = 0.0
    """When its life ends at the latest, in Unix seconds."""
    is_unique: bool = False
    """With a unique key it may be another job."""
    steps: Sequence[Place] = ()
    """That follow it."""


End = tuple[State, str]
"""How, and why."""


@attrs.frozen(kw_only=True)
class Token:
    """What one of these jobs says."""

    done: Sequence[int] = ()
    """Places of members."""
    ended: Sequence[tuple[int, End]] = ()
    """Places of those that are not done."""
    jobs: Sequence[tuple[int, Member]] = ()
    is_over: bool = False
    """The batch is over."""
    is_cancelled: bool = False
    """The flow is cancelled."""

    def places(self) -> Iterable[int]:
        """Those of which it says something."""
        return (*self.done, *(place for place, _ in (*self.ended, *self.jobs)))


_OVER: Final = Token(is_over=True)
read: Final = codec.body_reader(Token)
"""What turns the body of a token into one. Raises one of `codec.BAD_INPUT`."""


def later(one: End | None, other: End) -> End:
    """Of two ends of one member the one that applies."""
    return other if one is None or _RANK.index(other[0]) > _RANK.index(one[0]) else one


def shortened(reason: str) -> str:
    """As much of a reason as a token has."""
    return reason if len(reason) <= _LONGEST else f"{reason[: _LONGEST - 1]}…"


def add(queue: str, token: Token, ttl: float, copies: Copies) -> Command[str]:
    """The ADDJOB of a token."""
    fields = {name: each for name, each in attrs.asdict(token, recurse=False).items() if each}
    command = commands.addjob(
        queue,
        codec.write({"done": [], **fields}, "json"),
        retry=RETRY_S,
        ttl=max(int(ttl), 2 * RETRY_S),
        replicate=copies.replicate,
        sync=copies.awaited,
    )
    return attrs.evolve(command, is_repeatable=True)


def add_mark(
    queue: str,
    ttl: float,
    copies: Copies,
    key: str = OVER,
    token: Token = _OVER,
    keep: int = KEEP_S,
) -> Command[str]:
    """The ADDJOB of the mark that the batch is over, or of another one; once, where nodes know
    keys."""
    found = add(queue, token, ttl, copies)
    words = (*found.words, b"UNIQUE", key.encode(), b"KEEP", b"%d" % keep)
    return attrs.evolve(found, words=words, features=(*found.features, "unique"))
