"""What lies between a connection and the machine: parser, backlog, and what this batch sends.

`Node` and the driver write these records; event loops keep one for each connection and hand it back
with every input.
"""

from collections import deque
from typing import Final

import attrs

from disque_trio.driver.pending_replies import PendingReplies
from disque_trio.ports import ClientPort, LinkPort
from disque_trio.statemachine.base import LinkId, Millis
from disque_trio.statemachine.client import Client
from disque_trio.wire.batches import Part
from disque_trio.wire.frames import FrameParser
from disque_trio.wire.requests import ARG_BYTES, MOST_LINES, RequestParser

CHOKE: Final = 1 << 20
"""Bytes of replies, unread or waiting for the journal, beyond which a client's further requests
wait."""
CHOKE_IN_NEED: Final = 1 << 16
"""The same, while all clients together have left much unread."""
REQUEST_LINES: Final = 12
"""Lines that most requests have at most."""
REQUEST_BYTES: Final = 88
"""What a request takes beside its arguments."""
MUCH: Final = 1 << 16
"""Bytes of replies in one batch beyond which a client counts as one with large replies."""


@attrs.define(eq=False)
class Session:
    """A client's connection: the machine's record of it, its port, and what stands between."""

    client: Client
    port: ClientPort
    parser: RequestParser
    backlog: deque[list[bytes]] = attrs.Factory(deque)
    """Requests that the machine has not been given yet: what is left of the parser's last piece."""
    replies: list[bytes] = attrs.Factory(list)
    """Replies of this batch."""
    input: int = 0
    """Bytes of memory that its unfinished and its waiting requests take, as accounted for."""
    input_at: Millis = 0
    """When that last changed."""
    fault: bytes | None = None
    """The protocol error that comes after the backlog."""
    unsent: int = 0
    """Bytes that it has not read, with those that are still to be made if it reads nothing,"""
    in_socket: int = 0
    """and those of them that its port has been given."""
    waiting: int = 0
    """About how many bytes of its replies wait for the journal."""
    pending: PendingReplies | None = None
    """Replies that are made as it reads."""
    is_reading: bool = True
    """Has it read some of these since it was last looked at?"""
    stalled_s: int = 0
    """For how many seconds it has read nothing of them,"""
    promised: int = 0
    """how many bytes these are then,"""
    kept: int = 0
    """and how many of them are in memory only for it."""
    is_ending: bool = False
    """It is to be disconnected after these."""
    is_choked: bool = False
    """Are there any, or is there too much else unread, for further requests to be served?"""
    limit: int = CHOKE
    """Beyond how many it is choked."""
    weight: int = MUCH
    """Bytes of its replies in recent batches if more than `MUCH`, else 0. A new client, whose load
    is unknown, has `MUCH`."""
    is_held: bool = False
    over_since: Millis = 0
    """Since when more is unsent than the soft limit allows."""

    @property
    def has_requests(self) -> bool:
        """Are there requests that the machine has not been given, parsed or not?"""
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
        """Parse the next bytes into requests, about `turn` of them."""
        self.backlog += self.parser.more(min(turn * REQUEST_LINES, MOST_LINES))
        if self.parser.error is not None:
            self.fault = self.parser.error.text

    def set_unsent(self, unsent: int, limit: int = CHOKE) -> None:
        """So many bytes have not been read."""
        self.unsent = unsent
        self.limit = limit
        self.is_choked = self.pending is not None or unsent + self.waiting > limit

    def wait_for(self, weight: int) -> None:
        """So many bytes more wait for the journal, or fewer."""
        self.waiting += weight
        self.is_choked = self.pending is not None or self.unsent + self.waiting > self.limit


@attrs.define(eq=False)
class LinkSession:
    """A bus connection: its number in the machine, its port, its frames."""

    link: LinkId
    parser: FrameParser
    port: LinkPort | None = None
    frames: list[bytes] = attrs.Factory(list)
    """What this batch sends."""
    parts: list[Part] = attrs.Factory(list)
    """What it sends after them, in frames of many messages."""
    reads_batches: bool = False
    """Does the node at the other end read such frames?"""
