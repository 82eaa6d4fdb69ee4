"""Tokens: jobs in the queue of a batch that contain the ids of its members, and how they ended.

Tokens form a set under union: duplicates count once, and several tokens can be merged into one.
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
"""The key of the mark in that queue, which states that the batch is over."""
CHUNK: Final = 128
"""The number of members that one token describes."""
SPARE_S: Final = 24 * 3600
"""Tokens and collectors live this much longer than the deadline of the batch."""
LEASE_S: Final = 20
"""If a collector or coordinator loses its worker and its node, it is redelivered after this time.
Until then nothing is added after members that have ended."""
KEEP_S: Final = 3600
"""How long nodes keep the key of the mark that a batch is over."""
RETRY_S: Final = 60
"""A token that a collector has taken is redelivered after this time, or when the collector's
connection ends."""
_LONGEST: Final = 200
"""The maximum length of a reason, in characters."""

State = Literal["done", "cancelled", "merged", "dead", "expired", "refused", "late"]
"""How a member of a batch has ended.

`done`: its handler, or that of its last step, has returned. `cancelled`: by `Cancel`, or it was
acknowledged without a report of a worker. `merged`: another job has its `unique` key, and has
ended. `dead`; `expired`. `refused`: it could not be added. `late`: it has not ended at the
deadline.
"""
FAILED: Final[frozenset[State]] = frozenset(("dead", "expired", "refused", "late"))
_RANK: Final[Sequence[State]] = (
    "late", "refused", "dead", "expired", "merged", "cancelled", "done",
)  # fmt: skip
"""If tokens differ, the last of these states applies: a dead member may have been redriven."""


@attrs.frozen
class Member:
    """A job of a batch, as its producer added it."""

    id: str
    """The id; empty if no reply arrived, so that the job may exist."""
    expires: float = 0.0
    """The latest time at which it expires, in Unix seconds."""
    is_unique: bool = False
    """Does it have a unique key? Then the id may be that of another job."""
    steps: Sequence[Place] = ()
    """The later steps of its chain."""


End = tuple[State, str]
"""The state, and the reason."""


@attrs.frozen(kw_only=True)
class Token:
    """The content of one token."""

    done: Sequence[int] = ()
    """Places of members that are done."""
    ended: Sequence[tuple[int, End]] = ()
    """Places and ends of members that are not done."""
    jobs: Sequence[tuple[int, Member]] = ()
    is_over: bool = False
    """Is the batch over?"""
    is_cancelled: bool = False
    """Is the flow cancelled?"""

    def places(self) -> Iterable[int]:
        """The places of all members that it describes."""
        return (*self.done, *(place for place, _ in (*self.ended, *self.jobs)))


_OVER: Final = Token(is_over=True)
read: Final = codec.body_reader(Token)
"""Decodes the body of a token. Raises one of `codec.BAD_INPUT`."""


def later(one: End | None, other: End) -> End:
    """The one of two ends of a member that applies."""
    return other if one is None or _RANK.index(other[0]) > _RANK.index(one[0]) else one


def shortened(reason: str) -> str:
    """The reason, cut for a token."""
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
    """The ADDJOB of the mark that the batch is over, or of another mark. Nodes with unique keys add
    it once."""
    found = add(queue, token, ttl, copies)
    words = (*found.words, b"UNIQUE", key.encode(), b"KEEP", b"%d" % keep)
    return attrs.evolve(found, words=words, features=(*found.features, "unique"))
