"""Streams that a recorder observes."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from anyio.abc import ByteStream

from disque_trio.client.address import Address
from disque_trio.client.streams import Connect

if TYPE_CHECKING:  # most users record nothing
    from disque_trio.client.recorder import Recorder, Tap


def watching(recorder: "Recorder", connect: Connect, *, hides_socket: bool = False) -> Connect:
    """A `Connect` that opens the same streams and passes their data to the recorder. `hides_socket`
    prevents callers from writing to the socket directly."""

    async def connected(address: Address, timeout_s: float) -> ByteStream:
        stream = await connect(address, timeout_s)
        return WatchedStream(stream, recorder.tap(address), hides_socket=hides_socket)

    return connected


class WatchedStream(ByteStream):
    """A stream with a tap."""

    def __init__(self, stream: ByteStream, tap: "Tap", *, hides_socket: bool) -> None:
        self._stream = stream
        self._tap = tap
        self._hides_socket = hides_socket

    async def send(self, item: bytes) -> None:
        """Send bytes."""
        self._tap.sent(item)
        await self._stream.send(item)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """Receive bytes."""
        data = await self._stream.receive(max_bytes)
        self._tap.received(data)
        return data

    async def send_eof(self) -> None:
        """Close the sending direction."""
        await self._stream.send_eof()

    async def aclose(self) -> None:
        """Close the stream."""
        self._tap.closed()
        await self._stream.aclose()

    @property
    def extra_attributes(self) -> Mapping[Any, Callable[[], Any]]:
        """The attributes of the stream, unless the socket is hidden."""
        return {} if self._hides_socket else self._stream.extra_attributes
