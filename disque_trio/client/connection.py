"""One blocking connection to a node.

It uses blocking sockets, because a user or a shell waits for one reply at a time, and Ctrl-C
interrupts a read. A request is never sent twice: the end of a connection is detected before a
request is sent; if the connection ends later, it is unknown whether the node has executed the
request.
"""

import contextlib
import math
import os
import select
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

import attrs

from disque_trio.client.address import Address, Tls
from disque_trio.client.errors import ConnectionFailedError, LostError, lost, not_connected
from disque_trio.client.settings import KEEPALIVE_S
from disque_trio.statemachine.base import LAST_PORT, Failure, Reply
from disque_trio.system import keep_alive
from disque_trio.wire.resp import ProtocolError, ReplyParser, encode_request

if TYPE_CHECKING:  # most users record nothing
    from disque_trio.client.recorder import Recorder, Tap

_CHUNK: Final = 1 << 16


@attrs.define(eq=False)
class Connection:
    """A connection to one node, which is reopened when needed."""

    address: Address
    password: bytes | None = None
    connect_timeout_s: float = 5.0
    patience_s: float | None = None
    """How long to wait for more of a reply, and for space to send, in seconds; None is no limit."""
    recorder: "Recorder | None" = None
    """Records requests and replies. CLIENT REPLY must not be sent then."""
    received_at: float = attrs.field(init=False, default=0.0)
    """When data were last read, by `time.monotonic`."""
    _socket: socket.socket | None = attrs.field(init=False, default=None)
    _tap: "Tap | None" = attrs.field(init=False, default=None)
    _parser: ReplyParser = attrs.field(init=False, factory=ReplyParser)
    _replies: deque[Reply] = attrs.field(init=False, factory=deque)
    _silent_requests: float = attrs.field(init=False, default=0)
    """How many further requests have no reply, because of CLIENT REPLY."""
    _has_answered: bool = attrs.field(init=False, default=False)
    """Has a reply arrived on this connection, so that the other side is a node?"""

    @property
    def is_open(self) -> bool:
        """Was the connection open when it was last used?"""
        return self._socket is not None

    def ready(self) -> Failure | None:
        """Open the connection unless it is open. Returns the error if the node rejected the
        password."""
        if self.is_live():
            return None
        self.close()
        self._socket = _connected(self.address, self.connect_timeout_s)
        self._has_answered = False
        self._tap = None if self.recorder is None else self.recorder.tap(self.address)
        if self.password is None:
            self._socket.settimeout(self.patience_s)
            return None
        # Do not wait for a node that accepts connections and does nothing else.
        self._socket.settimeout(self.connect_timeout_s or None)
        self.send([b"AUTH", self.password])
        answer = self.receive()
        self._socket.settimeout(self.patience_s)
        return answer if isinstance(answer, Failure) else None

    def is_live(self) -> bool:
        """Is it open, and has the node not ended it? Discards replies that were not read."""
        if self._socket is None or self._has_ended():
            return False
        self._forget_replies()
        return True

    def wait_at_most(self, seconds: float | None) -> None:
        """Set how long the next replies may take, instead of `patience_s`."""
        self._open_socket().settimeout(seconds)

    def close(self) -> None:
        """Close the connection, and discard outstanding replies."""
        if self._socket is not None:
            self._socket.close()
        if self._tap is not None:
            self._tap.closed()
        self._socket = self._tap = None
        self._silent_requests = 0
        self._forget_replies()

    def fileno(self) -> int:
        """The descriptor, for `select`."""
        return self._open_socket().fileno()

    def send(self, args: Sequence[bytes]) -> bool:
        """Send a request. Returns whether it has a reply."""
        try:
            self._send_all(encode_request(list(args)))
        except OSError as error:
            raise self._lost(error) from error
        return self._is_answered(args)

    def send_all(self, requests: Sequence[Sequence[bytes]]) -> None:
        """Send requests in one write. Each must have a reply, and replies must be short or few,
        since nothing is read meanwhile."""
        try:
            self._send_all(b"".join(encode_request(args) for args in requests))
        except OSError as error:
            raise self._lost(error) from error

    def _send_all(self, data: bytes) -> None:
        if self._tap is not None:
            self._tap.sent(data)
        self._open_socket().sendall(data)

    def send_some(self, data: bytes) -> int:
        """Send as much of the data as possible without waiting. Returns the number of bytes."""
        try:
            return self._open_socket().send(data, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise self._lost(error) from error

    def receive(self) -> Reply:
        """Wait for the next reply."""
        while not self._replies:
            self.read()
        return self._replies.popleft()

    def received(self) -> list[Reply]:
        """Read without waiting, and return every complete reply."""
        self.read(socket.MSG_DONTWAIT)
        replies = list(self._replies)
        self._replies.clear()
        return replies

    def read(self, flags: int = 0) -> None:
        """Read data, and wait for them unless the flags prevent that."""
        try:
            data = self._open_socket().recv(_CHUNK, flags)
        except BlockingIOError:
            return
        except OSError as error:
            raise self._lost(error) from error
        if not data:
            raise self._lost(None)
        self.received_at = time.monotonic()
        if self._tap is not None:
            self._tap.received(data)
        try:
            self._replies += self._parser.feed(data)
            self._has_answered = True
        except ProtocolError as error:
            self.close()
            raise ConnectionFailedError(
                f"{self.address} does not use Disque's protocol ({error})",
                "-p must be the node's client port, or its tls-port with --tls.",
            ) from error

    def _open_socket(self) -> socket.socket:
        assert self._socket is not None, "ready() comes first"
        return self._socket

    def _has_ended(self) -> bool:
        stream = self._open_socket()
        try:
            while select.select([stream], [], [], 0)[0]:
                # No request is pending, so the data belong to earlier ones. Only the end matters.
                if not stream.recv(_CHUNK, socket.MSG_DONTWAIT):
                    return True
        except BlockingIOError:
            return False
        except OSError:
            return True
        return False

    def _forget_replies(self) -> None:
        self._parser = ReplyParser()
        self._replies.clear()

    def _lost(self, error: OSError | None) -> LostError:
        self.close()
        address = self.address
        return lost(
            str(address),
            error,
            has_answered=self._has_answered or address.path is not None,
            has_tls=address.tls is not None,
        )

    def _is_answered(self, args: Sequence[bytes]) -> bool:
        match [word.upper() for word in args[:3]]:
            case [b"CLIENT", b"REPLY", b"ON"]:
                self._silent_requests = 0
            case [b"CLIENT", b"REPLY", b"OFF"]:
                self._silent_requests = math.inf
            case [b"CLIENT", b"REPLY", b"SKIP"]:
                self._silent_requests = max(self._silent_requests, 2)
        if not self._silent_requests:
            return True
        self._silent_requests -= 1
        return False


def _connected(address: Address, timeout_s: float) -> socket.socket:
    if address.path is None and not 0 < address.port <= LAST_PORT:
        # The C library would take the lower 16 bits, which may be the port of another server.
        raise ConnectionFailedError(
            f"{address} is not the address of a node: ports are from 1 to {LAST_PORT}"
        )
    try:
        if address.path is not None:
            return _connected_locally(address.path, timeout_s)
        stream = socket.create_connection((address.host, address.port), timeout_s or None)
        if address.tls is not None:
            stream = _secured(stream, address.tls, address.host)
    except OSError as error:
        has_tls = address.tls is not None
        raise not_connected(str(address), error, address.path, has_tls=has_tls) from error
    except ValueError as error:  # the name cannot be encoded
        raise ConnectionFailedError(f"{address} is not the address of a node: {error}") from error
    stream.settimeout(None)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with contextlib.suppress(OSError):  # it may have ended already
        keep_alive(stream, KEEPALIVE_S)
    return stream


def _secured(stream: socket.socket, tls: Tls, host: str) -> socket.socket:
    secure: Callable[..., socket.socket] = import_module("disque_trio.client.tls").secured
    try:
        return secure(stream, tls, host)
    except BaseException:
        stream.close()
        raise


def _connected_locally(path: str, timeout_s: float) -> socket.socket:
    stream = socket.socket(socket.AF_UNIX)
    try:
        stream.settimeout(timeout_s or None)
        stream.connect(os.fsencode(path))
    except BaseException:
        stream.close()
        raise
    stream.settimeout(None)
    return stream
