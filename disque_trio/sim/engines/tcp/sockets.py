"""Helpers for sockets."""

import contextlib
import socket
import struct
from collections.abc import Iterator
from typing import Final

import trio

_NO_LINGER: Final = struct.pack("ii", 1, 0)


@contextlib.contextmanager
def broken() -> Iterator[None]:
    """Treat every error of a socket whose other side has ended as its end."""
    with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError, OSError):
        yield


def close_at_once(stream: trio.SocketStream) -> None:
    """End a connection with a reset, as the kernel does for a process that dies."""
    with contextlib.suppress(OSError):
        stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    stream.socket.close()
