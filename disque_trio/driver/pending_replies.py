"""Replies to a client that are too large to be produced at once (decision 115).

A large reply is produced in pieces of about 64 KiB, each when the socket has accepted the previous
one. So it takes as much memory as a small one, even if the client reads slowly, and other clients
are served between the pieces.
"""

from collections import deque
from collections.abc import Container, Generator, Iterator
from typing import Final

from disque_trio.statemachine.base import (
    Failure,
    JobId,
    Lengthy,
    Map,
    Opening,
    Reply,
    Set,
    Spilled,
    Status,
)
from disque_trio.statemachine.lengthy import SOME
from disque_trio.wire.replies import TooLargeError, encode_small, pieces

REPLY_BYTES: Final = 64
"""The memory of each value of a reply besides its text."""

LEAST_WORK: Final = 1 << 11
"""The minimum work of a part of a piece, because many short values take longer than a long one. A
part without a result counts as a whole piece."""
_SAMPLES: Final = 256


class PendingReplies:
    """One client's replies in order; the first one is being produced."""

    def __init__(self, reply: Reply, protocol: int, jobs: Container[JobId], piece: int) -> None:
        """`jobs` are those of the node, whose bodies are in memory anyway. A piece has slightly
        more than `piece` bytes."""
        self._piece = piece
        self._protocol = protocol
        self._jobs = jobs
        self._waiting: deque[Lengthy | bytes] = deque()
        """The replies after the first one; small ones are encoded."""
        self.behind = 0
        """The size of replies that are encoded already."""
        self.work = 0
        """The cost of the last piece, in bytes with the same cost."""
        self._begin(as_lengthy(reply, jobs), 0)

    def __bool__(self) -> bool:
        return self._made is not None or bool(self._waiting)

    def _begin(self, reply: Lengthy, at: int) -> None:
        self._reply = reply
        self._made: Iterator[bytes | Failure] | None = pieces(reply, self._protocol)
        self._first = at
        """The index at which the reply begins in the current piece."""
        self._has_left = False

    def add(self, reply: Reply) -> None:
        """Add a reply after the others."""
        try:
            text = encode_small(reply, self._protocol)
        except TooLargeError:
            self._waiting.append(as_lengthy(reply, self._jobs))
        else:
            self._waiting.append(text)
            self.behind += len(text)

    def take(self) -> bytes:
        """The next piece; empty if a turn does not suffice for a result."""
        taken: list[bytes] = []
        size, most, self.work = 0, self._piece, 0
        while size < most and self.work < most and self:
            text = self._next(taken)
            if text is not None:
                taken.append(text)
                size += len(text)
                self.work += max(len(text), LEAST_WORK) if text else most
        self._has_left = self._has_left or size > 0
        return b"".join(taken)

    def _next(self, taken: list[bytes]) -> bytes | None:
        """The next part; None at the end of a reply."""
        if self._made is None:
            waiting = self._waiting.popleft()
            if isinstance(waiting, bytes):
                self.behind -= len(waiting)
                return waiting
            self._begin(waiting, len(taken))
        assert self._made is not None
        text = next(self._made, None)
        if isinstance(text, bytes):
            return text
        if text is None or not self._has_left:
            self._made = None
            self._reply.parts.close()
        if text is None:
            return None
        if not self._has_left:
            del taken[self._first :]
        return encode_small(text, self._protocol)

    def sizes(self) -> tuple[int, int]:
        """Estimates of the remaining bytes, and of the memory that only these replies use."""
        sizes = [each.left() for each in self._unmade()]
        return sum([all_ for all_, _ in sizes]), sum([alone for _, alone in sizes])

    def end(self) -> None:
        """End all replies, because the client has disconnected."""
        for each in self._unmade():
            each.parts.close()

    def _unmade(self) -> list[Lengthy]:
        replies = [each for each in self._waiting if isinstance(each, Lengthy)]
        return replies if self._made is None else [self._reply, *replies]


def as_lengthy(reply: Reply, jobs: Container[JobId]) -> Lengthy:
    """A large value as a `Lengthy`, which releases each part as it is sent."""
    if isinstance(reply, Lengthy):
        return reply
    values: list[Reply] = list(reply) if isinstance(reply, list) else [reply]
    sent = at = 0

    def parts() -> Generator[list[Reply], None, None]:
        nonlocal sent, at
        if isinstance(reply, list):
            yield [Opening(len(values))]
        while at < len(values):
            values[sent:at] = [None] * (at - sent)
            sent, at = at, min(at + SOME, len(values))
            yield values[sent:at]
        sent = at

    def left() -> tuple[int, int]:
        step = (len(values) - sent) // _SAMPLES + 1
        sample = values[sent::step]
        alone = sum([weight(each) for each in sample if not _shows_one_of(each, jobs)])
        return sum(map(weight, sample)) * step, alone * step

    return Lengthy(parts(), 0, left)


def _shows_one_of(value: Reply, jobs: Container[JobId]) -> bool:
    """Is the value one of these jobs, in the form of GETJOB?"""
    return isinstance(value, list) and len(value) > 2 and value[1] in jobs


def weight(reply: Reply) -> int:
    """The approximate memory of a reply that waits to be sent, in bytes."""
    match reply:
        case Status():
            return REPLY_BYTES + len(reply.text)
        case bytes() | Spilled():
            return REPLY_BYTES + len(reply)
        case list():
            return REPLY_BYTES + sum(map(weight, reply))
        case Failure():
            return REPLY_BYTES + len(reply.text)
        case Lengthy():
            return REPLY_BYTES + reply.left()[1]
        case Set():
            return weight(reply.items)
        case Map():
            return sum(weight([key, value]) for key, value in reply.items.items())
        case _:
            return REPLY_BYTES
