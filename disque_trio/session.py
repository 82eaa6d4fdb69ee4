"""What stands between a connection and the machine: parser, backlog, and what this batch sends.

`Node` makes these records and alone writes them; hubs keep one for each connection and hand it
back with every input.
"""

from collections import deque

import attrs

from disque_trio.ports import ClientPort, LinkPort
from disque_trio.statemachine.base import LinkId, Millis
from disque_trio.statemachine.client import Client
from disque_trio.wire.frames import FrameParser
from disque_trio.wire.resp import RequestParser


@attrs.define(eq=False)
class Session:
    """A client's connection: the machine's record of it, its port, and what stands between."""

    client: Client
    port: ClientPort
    parser: RequestParser
    backlog: deque[list[bytes]] = attrs.Factory(deque)
    """Requests that the machine has not been given yet."""
    replies: list[bytes] = attrs.Factory(list)
    """What this batch answers."""
    fault: bytes | None = None
    """The protocol error that comes after the backlog."""
    unsent: int = 0
    is_held: bool = False
    over_since: Millis = 0
    """Since when more is unsent than the soft limit allows."""


@attrs.define(eq=False)
class LinkSession:
    """A bus connection: its number in the machine, its port, its frames."""

    link: LinkId
    parser: FrameParser
    port: LinkPort | None = None
    frames: list[bytes] = attrs.Factory(list)
    """What this batch sends."""
