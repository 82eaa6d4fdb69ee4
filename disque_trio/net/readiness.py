"""A set of sockets with the events that they wait for: a poller with its channels.

`close_ended` closes channels at the end of a turn, never within one: a descriptor that is reused
must not receive the events of its predecessor.
"""

import contextlib
import errno
import os
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from disque_trio.net.multiplexing import IN, Poller
from disque_trio.storage.descriptor import Descriptor

MAX_EVENTS: Final = 1024
"""Events per turn; further ones are handled in the next turn."""
MAX_ACCEPTS: Final = 64
"""Connections accepted per turn and listener. With a thousand, as in the original (original 1.1),
other clients wait four times as long during a flood of connections (`make crowd`)."""
MAX_SHAKES: Final = 8
"""Steps of TLS handshakes per turn: one may cost as much as a hundred requests."""
GREED_S: Final = 0.005
Address = Sequence[Any]
"""The remote address that `accept` returns: IP and port, with more fields for IPv6; the path of a
Unix socket."""
_OUT_OF_ROOM: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Channel:
    """A socket in the set. Subclasses handle its events."""

    __slots__ = ("__weakref__", "events", "fd", "readiness", "sock")

    def __init__(self, readiness: "Readiness", sock: socket.socket) -> None:
        self.readiness = readiness
        self.sock = sock
        self.fd = sock.fileno()
        self.events = 0

    def ready(self, mask: int) -> None:
        """Handle events; `mask` is the poller's."""
        raise NotImplementedError

    def read_much(self) -> None:
        """Read a large input, when its turn has come (`Readiness.defer`)."""

    def ended(self) -> None:
        """The channel is about to be closed, by either side."""

    def watch(self, events: int) -> None:
        """Wait for these events from now on."""
        if events != self.events:
            self.events = events
            self.readiness.modify(self.fd, events)


class Stream(Channel):
    """A connection, and the bytes still to be sent on it."""

    __slots__ = ("_recv", "_send", "unsent")

    PIECE: ClassVar[int] = 1 << 18
    """Unsent bytes that are written per turn."""

    def __init__(self, readiness: "Readiness", sock: socket.socket) -> None:
        super().__init__(readiness, sock)
        self.unsent = bytearray()
        self._recv: Callable[[int], bytes] = sock.recv
        self._send: Callable[[bytes | memoryview], int] = sock.send

    def write_on(self) -> None:
        """The socket is writable: send more of the unsent bytes."""
        unsent = self.unsent
        try:
            with memoryview(unsent) as view, view[: self.PIECE] as piece:
                sent = self._send(piece)
        except BlockingIOError:
            return
        except OSError:
            self.readiness.end(self)
            return
        del unsent[:sent]
        if not unsent:
            self.drained()

    def drained(self) -> None:
        """All bytes have been sent."""
        raise NotImplementedError


class Readiness:
    """The channels of one event loop; `handlers` has their functions by descriptor."""

    __slots__ = (
        "_channels", "_ending", "_poll", "_shakes_left", "alarm", "greed_s", "greedy", "handlers",
        "modify", "poller", "starved",
    )  # fmt: skip

    def __init__(self, poller: Poller, greed_s: float = GREED_S) -> None:
        self.poller = poller
        self.greed_s = greed_s
        """How long greedy channels are served per turn; the last one may exceed it."""
        # Bound once, because they are called several times per request.
        self.modify = poller.modify
        self._poll = poller.poll
        self.handlers: dict[int, Callable[[int], None]] = {}
        self.greedy: dict[Channel, None] = {}
        """Channels with large inputs that wait for their turn."""
        self.starved: dict[Listener, None] = {}
        """Listeners that wait for free descriptors."""
        self._channels: dict[int, Channel] = {}
        self._ending: dict[Channel, None] = {}
        self._shakes_left = MAX_SHAKES
        self.alarm = Alarm()
        self.handlers[self.alarm.fd] = self.alarm.ready
        poller.register(self.alarm.fd, IN)

    def add(self, channel: Channel, events: int) -> None:
        """Watch a new socket."""
        channel.events = events
        self._channels[channel.fd] = channel
        self.handlers[channel.fd] = channel.ready
        self.poller.register(channel.fd, events)

    def replace(self, channel: Channel, successor: Channel, events: int) -> None:
        """Give the socket of a channel to another one. Called in `ended`."""
        self._channels[channel.fd] = successor
        self.handlers[channel.fd] = successor.ready
        successor.events = channel.events
        successor.watch(events)

    def end(self, channel: Channel) -> None:
        """Close the channel at the end of this turn, and ignore its events until then."""
        if self._channels.get(channel.fd) is channel and channel not in self._ending:
            self._ending[channel] = None
            self.handlers[channel.fd] = _ignore

    def poll(self, seconds: float = 0.0) -> list[tuple[int, int]]:
        """Return the events now, or within this time."""
        self._shakes_left = MAX_SHAKES
        if seconds and not self.alarm.arm():
            seconds = 0.0
        return self._poll(seconds, MAX_EVENTS)

    def may_shake(self) -> bool:
        """May a TLS handshake continue in this turn? If not, the next poll reports it again."""
        self._shakes_left -= 1
        return self._shakes_left >= 0

    def defer(self, channel: Channel) -> None:
        """Make a channel with large inputs wait until the others have been served in this turn."""
        self.greedy[channel] = None

    def serve_greedy(self) -> None:
        """Serve greedy channels in turn: at least one, and more until `greed_s` is over."""
        greedy, until = self.greedy, time.perf_counter() + self.greed_s
        while greedy:
            channel = next(iter(greedy))
            del greedy[channel]
            if channel not in self._ending:
                channel.read_much()
            if time.perf_counter() >= until:
                break

    def close_ended(self) -> None:
        """Close the channels that have ended."""
        while self._ending:
            ending, self._ending = self._ending, {}
            for channel in ending:
                channel.ended()
                if self._channels.get(channel.fd) is channel:
                    # Another channel may have its descriptor: a successor, or a new one if TLS has
                    # already closed it.
                    del self._channels[channel.fd], self.handlers[channel.fd]
                    self.poller.unregister(channel.fd)
                self.greedy.pop(channel, None)
                channel.sock.close()

    def retry_starved(self) -> None:
        """Let starved listeners accept again."""
        starved, self.starved = self.starved, {}
        for listener in starved:
            if listener.fd in self.handlers:
                listener.watch(IN)

    def close(self) -> None:
        """Close all channels, without calling `ended`."""
        for channel in self._channels.values():
            channel.sock.close()
        self.alarm.close()
        self._channels.clear()
        self.handlers.clear()
        self.poller.close()


class Alarm:
    """Wakes the loop from other threads. It costs a system call only while the loop sleeps.

    Each side sets its own flag, `is_armed` or `is_rung`, before it reads the other one's, so that
    no ring is missed.
    """

    __slots__ = ("_write_end", "fd", "is_armed", "is_rung")

    def __init__(self) -> None:
        self.fd, write_fd = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(write_fd, False)
        self._write_end = Descriptor(write_fd)
        self.is_armed = False
        """Does the loop sleep?"""
        self.is_rung = False
        """Must there be a turn?"""

    def __del__(self) -> None:
        self.close()

    def ring(self) -> None:
        """In any thread: make the loop run a turn."""
        self.is_rung = True
        if self.is_armed:
            self.is_armed = False
            # If the pipe is full, the loop wakes as well; or the loop has ended.
            with contextlib.suppress(OSError), self._write_end as fd:
                os.write(fd, b"!")

    def arm(self) -> bool:
        """Prepare to sleep; return False if the loop must not."""
        self.is_armed = True
        return not self.is_rung

    def ready(self, _mask: int) -> None:
        """Empty the pipe after it has woken the loop."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.fd, 4096)

    def close(self) -> None:
        """Close the pipe when the loop has ended."""
        self._write_end.close()
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


class Listener(Channel):
    """A socket that accepts connections."""

    __slots__ = ()

    def ready(self, mask: int) -> None:  # noqa: ARG002
        for _ in range(MAX_ACCEPTS):
            try:
                sock, address = self.sock.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _OUT_OF_ROOM:
                    self.starve(error)
                return
            if address is None:
                sock.close()  # macOS: the connection has already ended
            else:
                self.welcome(sock, address)

    def welcome(self, sock: socket.socket, address: Address) -> None:
        """Handle a new connection."""
        raise NotImplementedError

    def starve(self, error: OSError) -> None:  # noqa: ARG002
        """Stop polling the listener while there are no descriptors, because it stays readable."""
        self.watch(0)
        self.readiness.starved[self] = None


def _ignore(_mask: int) -> None:
    """Ignore events of a channel that has ended in this turn."""
