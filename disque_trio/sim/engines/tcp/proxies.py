"""Proxies between real nodes: each splits a stream into frames and writes them to the other node.

Between the two, `Links` applies the network model to each frame.
"""

import socket
import struct
from collections.abc import Callable
from typing import Final

import attrs
import trio

from disque_trio.sim.engines.links import End, FramePacket, Links
from disque_trio.sim.engines.live_events import LiveEngine
from disque_trio.sim.engines.tcp.addresses import NodeAddresses
from disque_trio.sim.engines.tcp.sockets import broken, close_at_once

_START: Final = struct.Struct(">4sI")
_LEAST: Final = 144
_READ: Final = 1 << 16


class Splitter:
    """Splits a stream into frames. Invalid data passes unchanged: the node will refuse it."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames that are now complete."""
        data = self._rest + data
        frames: list[bytes] = []
        at = 0
        while len(data) - at >= _START.size:
            _, length = _START.unpack_from(data, at)
            end = at + max(length, _LEAST)
            if end > len(data):
                break
            frames.append(data[at:end])
            at = end
        self._rest = data[at:]
        return frames


@attrs.define(eq=False)
class ProcessLink:
    """A connection of a proxy to a process of a node."""

    life: int = 0
    """The number of the node's process, from 1; 0 without a connection."""
    has_ended: bool = False
    """The connection ended before the run did."""


class SocketHandler:
    """One end of a connection: the proxy's socket to a real node."""

    def __init__(
        self, engine: LiveEngine, on_received: Callable[[FramePacket, ProcessLink], None]
    ) -> None:
        self.end: End | None = None
        self.link = ProcessLink()
        self._engine = engine
        self._on_received = on_received
        self._unsent: list[bytes] = []
        self._came = trio.Event()
        self._is_over = False

    # LinkHandler.

    def linked(self) -> None:
        """Do nothing: the node was connected when the proxy's listener accepted it."""

    def receive(self, packet: FramePacket) -> None:
        """Send a frame to the node."""
        self._on_received(packet, self.link)
        assert isinstance(packet.frame, bytes), "processes send bytes"
        self._unsent.append(packet.frame)
        self._came.set()

    def ended(self) -> None:
        """Close the socket after the frames sent so far."""
        self._is_over = True
        self._came.set()

    # The socket.

    async def serve(self, stream: trio.SocketStream) -> None:
        """Forward bytes until one side ends."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._read, stream, nursery.cancel_scope)
                nursery.start_soon(self._write, stream, nursery.cancel_scope)
            self.link.has_ended = True
        finally:
            close_at_once(stream)
            self.hang_up()

    def hang_up(self) -> None:
        """End the connection, because the node's side has ended."""
        self._engine.sync()
        if self.end is not None:
            self.end.hang_up()

    async def _read(self, stream: trio.SocketStream, scope: trio.CancelScope) -> None:
        splitter = Splitter()
        with broken():
            while data := await stream.receive_some(_READ):
                self._engine.sync()
                assert self.end is not None
                self.end.send(splitter.feed(data))
        scope.cancel()

    async def _write(self, stream: trio.SocketStream, scope: trio.CancelScope) -> None:
        with broken():
            while True:
                await self._came.wait()
                self._came = trio.Event()
                unsent, self._unsent = self._unsent, []
                if unsent:
                    await stream.send_all(b"".join(unsent))
                elif self._is_over:
                    break
                if self._is_over:
                    self._came.set()
        scope.cancel()


class Proxies:
    """The proxies of one run."""

    def __init__(
        self,
        addresses: NodeAddresses,
        engine: LiveEngine,
        links: Links,
        nursery: trio.Nursery,
        on_received: Callable[[FramePacket, ProcessLink], None],
    ) -> None:
        self._addresses = addresses
        self._engine = engine
        self._links = links
        self._nursery = nursery
        self._on_received = on_received
        self._lives: dict[int, Callable[[], int]] = {}

    def add(self, node: int, life: Callable[[], int]) -> None:
        """Listen at the address where other nodes see the node. `life` returns the number of its
        running process, from 1, or 0 if there is none."""
        self._lives[node] = life
        sock = socket.create_server((self._addresses.seen(node), self._addresses.bus_port))
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(sock))

        async def welcome(stream: trio.SocketStream) -> None:
            await self._dialled(stream, node)

        async def listen() -> None:
            await trio.serve_listeners(welcome, [listener], handler_nursery=self._nursery)

        self._links.listen(node, lambda end: self._handler_for(end) if life() else None)
        self._nursery.start_soon(listen)

    async def _dialled(self, stream: trio.SocketStream, target: int) -> None:
        """Handle a node that has dialled another one."""
        try:
            address = stream.socket.getpeername()[0]
        except OSError:
            address = ""
        source = self._addresses.node_at(address)
        if not source:
            close_at_once(stream)
            return
        self._engine.sync()
        handler = SocketHandler(self._engine, self._on_received)
        handler.link.life = self._lives[source]()
        handler.end = self._links.dial(source, target, handler)
        await handler.serve(stream)

    def _handler_for(self, end: End) -> SocketHandler:
        """Return the handler for the other half of a connection, to the dialled node."""
        handler = SocketHandler(self._engine, self._on_received)
        handler.end = end
        self._nursery.start_soon(self._go_on, handler, end.far.node, end.node)
        return handler

    async def _go_on(self, handler: SocketHandler, source: int, target: int) -> None:
        sock = trio.socket.socket()
        try:
            await sock.bind((self._addresses.seen(source), 0))
            life = self._lives[target]()
            await sock.connect((self._addresses.own(target), self._addresses.bus_port))
        except OSError:
            sock.close()
            handler.link.has_ended = True
            handler.hang_up()
            return
        handler.link.life = life
        await handler.serve(trio.SocketStream(sock))
