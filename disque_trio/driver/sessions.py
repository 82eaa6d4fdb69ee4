"""What stands between a connection and the machine: parser, backlog, and what this batch sends.

`Node` makes these records and alone writes them; hubs keep one for each connection and hand it
back with every input.
"""

from collections import deque
from typing import Final

import attrs

from disque_trio.ports import ClientPort, LinkPort
from disque_trio.statemachine.base import LinkId, Millis
from disque_trio.statemachine.client import Client
from disque_trio.wire.batches import Part
from disque_trio.wire.frames import FrameParser
from disque_trio.wire.requests import ARG_BYTES, MOST_LINES, RequestParser

CHOKE: Final = 1 << 20
"""Bytes of replies that have not been read, or could not be given yet, beyond which a client's
further requests wait."""
CHOKE_IN_NEED: Final = 1 << 16
"""The same, while all clients together have left much unread."""
REQUEST_LINES: Final = 12
"""Lines that most requests have at most."""
REQUEST_BYTES: Final = 88
"""What a request takes beside its arguments."""
MUCH: Final = 1 << 16
"""Bytes of answers in one batch beyond which a client is one of those who are answered much."""


@attrs.define(eq=False)
class Session:
    """A client's connection: the machine's record of it, its port, and what stands between."""

    client: Client
    port: ClientPort
    parser: RequestParser
    backlog: deque[list[bytes]] = attrs.Factory(deque)
    """Requests that the machine has not been given yet: what is left of the parser's last piece."""
    replies: list[bytes] = attrs.Factory(list)
    """What this batch answers."""
    input: int = 0
    """Bytes of memory that its unfinished and its waiting requests take, as accounted for."""
    input_at: Millis = 0
    """When that last changed."""
    fault: bytes | None = None
    """The protocol error that comes after the backlog."""
    unsent: int = 0
    """Bytes that it has not read."""
    waiting: int = 0
    """About how many bytes of replies wait for the journal."""
    is_choked: bool = False
    """Is that too much to take further requests?"""
    limit: int = CHOKE
    """How much would be too much."""
    weight: int = MUCH
    """Bytes that it has lately been answered in a batch if that was more than `MUCH`, else 0. A new
    client, of whom one cannot know, has `MUCH`."""
    is_held: bool = False
    over_since: Millis = 0
    """Since when more is unsent than the soft limit allows."""

    @property
    def has_requests(self) -> bool:
        """Are there requests, or bytes that may be some, which the machine has not been given?"""
        return bool(self.backlog or self.parser.pending)

    @property
    def weight_of_input(self) -> int:
        """Bytes of memory that its unfinished and its waiting requests take."""
        backlog = self.backlog
        if not backlog:
            return self.parser.weight
        args = sum(map(len, backlog))
        text = sum([sum(map(len, request)) for request in backlog])
        return self.parser.weight + REQUEST_BYTES * len(backlog) + ARG_BYTES * args + text

    def refill(self, turn: int) -> None:
        """Make requests of the next bytes that have come, hardly more than so many."""
        self.backlog += self.parser.more(min(turn * REQUEST_LINES, MOST_LINES))
        if self.parser.error is not None:
            self.fault = self.parser.error.text

    def set_unsent(self, unsent: int, limit: int = CHOKE) -> None:
        """So many bytes have not been read."""
        self.unsent = unsent
        self.limit = limit
        self.is_choked = unsent + self.waiting > limit

    def wait_for(self, weight: int) -> None:
        """So many bytes more wait for the journal, or fewer."""
        self.waiting += weight
        self.is_choked = self.unsent + self.waiting > self.limit


@attrs.define(eq=False)
class LinkSession:
    """A bus connection: its number in the machine, its port, its frames."""

    link: LinkId
    parser: FrameParser
    port: LinkPort | None = None
    frames: list[bytes] = attrs.Factory(list)
    """What this batch sends."""
    parts: list[Part] = attrs.Factory(list)
    """What it sends after them in frames for many messages."""
    reads_batches: bool = False
    """Is that what the node at the other end wants?"""
