"""The upgrade of a connection to a WebSocket: trio-websocket on a stream whose head h11 has parsed.

Only this module uses the library, through two functions. It adds what the library lacks: deadlines
for sends and for the handshake, and a close that does not wait for the other side.
"""

import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import attrs
import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, wrap_server_stream

PROTOCOL: Final = "disque.console.1"
"""The only subprotocol."""
MOST_FRAME: Final = 64 << 10
"""The maximum size of a message from a browser."""
HANDSHAKE_S: Final = 5.0
SEND_S: Final = 20.0
"""A browser that reads nothing for so long is disconnected."""
CLOSE_S: Final = 1.0
_PIECE: Final = 16 << 10

Session = Callable[[WebSocketConnection], Awaitable[None]]


def defect(headers: Mapping[bytes, bytes]) -> str:
    """Return why the request is no valid handshake; empty if it is valid."""
    offered = headers.get(b"sec-websocket-protocol", b"").decode("latin-1")
    wants = b"upgrade" in headers.get(b"connection", b"").lower()
    if not wants or headers.get(b"upgrade", b"").lower() != b"websocket":
        return "this is for WebSockets: send Connection: Upgrade, and Upgrade: websocket"
    if headers.get(b"sec-websocket-version") != b"13":
        return "Sec-WebSocket-Version must be 13"
    if not _is_key(headers.get(b"sec-websocket-key", b"")):
        return "Sec-WebSocket-Key must be 16 bytes in base64"
    if PROTOCOL not in [each.strip() for each in offered.split(",")]:
        return f"Sec-WebSocket-Protocol must be {PROTOCOL}"
    return ""


def handshake(headers: Mapping[bytes, bytes]) -> bytes:
    """Return the handshake in a fixed form with only its key: the library raises other kinds of
    errors for bytes that are not ASCII."""
    lines = (
        b"GET /socket HTTP/1.1",
        b"Host: localhost",
        b"Connection: Upgrade",
        b"Upgrade: websocket",
        b"Sec-WebSocket-Version: 13",
        b"Sec-WebSocket-Key: " + headers[b"sec-websocket-key"],
        b"Sec-WebSocket-Protocol: " + PROTOCOL.encode(),
    )
    return b"".join(line + b"\r\n" for line in (*lines, b""))


def _is_key(key: bytes) -> bool:
    try:
        return len(base64.b64decode(key, validate=True)) == 16
    except binascii.Error:
        return False


@attrs.define(eq=False)
class Replayed(trio.abc.Stream):
    """A stream with bytes that were read before."""

    stream: trio.abc.Stream
    first: bytes

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return these bytes first, then those of the stream."""
        if not self.first:
            return bytes(await self.stream.receive_some(max_bytes))
        await trio.lowlevel.checkpoint()
        size = max_bytes or len(self.first)
        data, self.first = self.first[:size], self.first[size:]
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send the data. Raise TooSlowError if the other side reads nothing for `SEND_S`."""
        for start in range(0, len(data), _PIECE):
            with trio.fail_after(SEND_S):
                await self.stream.send_all(data[start : start + _PIECE])

    async def wait_send_all_might_not_block(self) -> None:
        """As for the stream."""
        await self.stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        """As for the stream."""
        await self.stream.aclose()


async def upgraded(stream: trio.abc.Stream, first: bytes, session: Session) -> None:
    """Accept the handshake in the `first` bytes, and run `session` until either side ends it."""
    try:
        async with trio.open_nursery() as nursery:
            with trio.move_on_after(HANDSHAKE_S) as limit:
                replayed = Replayed(stream, first)
                request = await wrap_server_stream(nursery, replayed, max_message_size=MOST_FRAME)
                socket = await request.accept(subprotocol=PROTOCOL)
            if not limit.cancelled_caught:
                await _held(socket, session)
            nursery.cancel_scope.cancel()
    except* (ConnectionClosed, OSError, trio.TooSlowError, trio.BrokenResourceError):
        pass
    except* trio.ClosedResourceError:
        pass


async def _held(socket: WebSocketConnection, session: Session) -> None:
    try:
        await session(socket)
    finally:
        with trio.move_on_after(CLOSE_S, shield=True):
            await socket.aclose()
