"""Sessions: the state between a connection and the machine, such as parser, backlog and the output
of this batch.

`Node` and the driver write these records; event loops keep one for each connection, and pass it
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
"""The size of replies, unread or waiting for the journal, above which a client's further requests
wait."""
CHOKE_IN_NEED: Final = 1 << 16
"""`CHOKE` while all clients together have much unread output."""
REQUEST_LINES: Final = 12
"""The maximum number of lines of most requests."""
REQUEST_BYTES: Final = 88
"""The memory of a request besides its arguments."""
MUCH: Final = 1 << 16
"""The size of replies in one batch above which a client counts as one with large replies."""


@attrs.define(eq=False)
class Session:
    """A client's connection: the machine's record, its port, and the state between them."""

    client: Client
    port: ClientPort
    parser: RequestParser
    backlog: deque[list[bytes]] = attrs.Factory(deque)
    """Parsed requests that were not passed to the machine yet."""
    replies: list[bytes] = attrs.Factory(list)
    """Replies of this batch."""
    input: int = 0
    """The accounted memory of its incomplete and its waiting requests, in bytes."""
    input_at: Millis = 0
    """When `input` last changed."""
    fault: bytes | None = None
    """The protocol error that follows the backlog."""
    unsent: int = 0
    """Unread bytes, including those that must still be produced if the client is stalled."""
    in_socket: int = 0
    """The unread bytes that were passed to the port."""
    waiting: int = 0
    """The approximate size of replies that wait for the journal."""
    pending: PendingReplies | None = None
    """Replies that are produced as the client reads."""
    is_reading: bool = True
    """Has the client read any of `pending` since the last check?"""
    stalled_s: int = 0
    """How many seconds the client has read nothing of `pending`."""
    promised: int = 0
    """If it is stalled: the remaining size of `pending`."""
    kept: int = 0
    """If it is stalled: the memory that only `pending` uses."""
    is_ending: bool = False
    """The client will be disconnected after `pending`."""
    is_choked: bool = False
    """Do its requests wait, because there are pending replies or too much is unread?"""
    limit: int = CHOKE
    """The number of unread bytes above which it is choked."""
    weight: int = MUCH
    """The size of its replies in recent batches if more than `MUCH`, otherwise 0. A new client,
    whose load is unknown, has `MUCH`."""
    is_held: bool = False
    over_since: Millis = 0
    """Since when the unsent output exceeds the soft limit; 0 if it does not."""

    @property
    def has_requests(self) -> bool:
        """Are there requests, parsed or not, that were not passed to the machine yet?"""
        return bool(self.backlog or self.parser.pending)

    @property
    def weight_of_input(self) -> int:
        """The memory of its incomplete and its waiting requests, in bytes."""
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
        """Set the number of unread bytes, and the limit above which the client is choked."""
        self.unsent = unsent
        self.limit = limit
        self.is_choked = self.pending is not None or unsent + self.waiting > limit

    def wait_for(self, weight: int) -> None:
        """Change the number of bytes that wait for the journal by `weight`."""
        self.waiting += weight
        self.is_choked = self.pending is not None or self.unsent + self.waiting > self.limit


@attrs.define(eq=False)
class LinkSession:
    """A bus connection: its number in the machine, its port, its frames."""

    link: LinkId
    parser: FrameParser
    port: LinkPort | None = None
    frames: list[bytes] = attrs.Factory(list)
    """The frames of this batch."""
    parts: list[Part] = attrs.Factory(list)
    """Parts of batches that are sent after these frames."""
    reads_batches: bool = False
    """Does the node at the other end support batches?"""
