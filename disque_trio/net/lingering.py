"""The lingering close: a client can read why its connection ends, even if it is still sending.

A socket that is closed with unread input resets the connection (RFC 1122, 4.2.2.13), and data that
the client has not read yet is lost: the error with the reason. So the end is sent first, and input
is read and discarded until the client has closed its side, as in nginx's `lingering_close`.
"""

import socket
from typing import Final

from disque_trio.net.multiplexing import IN
from disque_trio.net.readiness import Channel, Readiness

LINGER_S: Final = 10
"""How long a client may take to read the unsent bytes, and then to close its side."""
MOST: Final = 256
"""The most lingering connections; one more closes the oldest."""
PIECES: Final = 16
"""Pieces of input that are discarded per turn and connection."""
_WASTE: Final = bytearray(1 << 14)
"""The buffer for discarded input. It is allocated at the start, so lingering works without memory
as well."""


class Lingering:
    """The lingering connections of one event loop."""

    __slots__ = ("_channels", "_readiness")

    def __init__(self, readiness: Readiness) -> None:
        self._readiness = readiness
        self._channels: dict[LingeringChannel, None] = {}

    def close(self, sock: socket.socket) -> None:
        """Close a socket without a channel once the client has closed its side."""
        if (channel := self._begin(sock)) is None:
            sock.close()
        else:
            self._readiness.add(channel, IN)

    def succeed(self, ended: Channel) -> None:
        """Close a channel once the client has closed its side. Its socket is closed unless a
        successor has it."""
        if (channel := self._begin(ended.sock)) is not None:
            self._readiness.replace(ended, channel, IN)

    def _begin(self, sock: socket.socket) -> "LingeringChannel | None":
        """Return a lingering channel, or None if the client has already closed its side."""
        try:
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            return None
        channel = LingeringChannel(self, self._readiness, sock)
        if channel.is_over():
            return None
        # Discarded input under TLS need not be decrypted.
        channel.sock = socket.socket(fileno=sock.detach())
        if len(self._channels) >= MOST:
            oldest = next(iter(self._channels))
            self.forget(oldest)  # at once: many may be added before it is closed
            self._readiness.end(oldest)
        self._channels[channel] = None
        return channel

    def forget(self, channel: "LingeringChannel") -> None:
        """Forget a channel that has ended."""
        self._channels.pop(channel, None)

    def sweep(self) -> None:
        """Once a second: end connections that have lingered too long."""
        for channel in list(self._channels):
            channel.seconds += 1
            if channel.seconds > LINGER_S:
                self._readiness.end(channel)


class LingeringChannel(Channel):
    """A connection whose end has been sent."""

    __slots__ = ("_lingering", "seconds")

    def __init__(self, lingering: Lingering, readiness: Readiness, sock: socket.socket) -> None:
        super().__init__(readiness, sock)
        self._lingering = lingering
        self.seconds = 0

    def ready(self, mask: int) -> None:  # noqa: ARG002
        if self.is_over():
            self.readiness.end(self)

    def is_over(self) -> bool:
        """Discard the input so far. Has the client closed its side?"""
        for _ in range(PIECES):
            try:
                size = self.sock.recv_into(_WASTE)
            except BlockingIOError:
                return False
            except OSError:
                return True
            if not size:
                return True
        return False

    def ended(self) -> None:
        self._lingering.forget(self)
