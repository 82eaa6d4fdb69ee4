"""Clients of real nodes: each connection is a socket."""

from typing import Final

import trio

from disque_trio.sim.engines.heap.clients import (
    ClientConnection,
    ClientConnections,
    Line,
    Operation,
)
from disque_trio.sim.engines.live_events import LiveEngine
from disque_trio.sim.engines.tcp.addresses import NodeAddresses
from disque_trio.sim.engines.tcp.sockets import broken, close_at_once
from disque_trio.tracing import client_rows
from disque_trio.wire.resp import ReplyParser, encode_request

_READ: Final = 1 << 16

ClientAddress = tuple[str, str]
"""A node and the client's address there: connections to two nodes may have the same address."""


class Sockets:
    """All connections of a run, with the data that identify them in traces."""

    def __init__(self, engine: LiveEngine, addresses: NodeAddresses, nursery: trio.Nursery) -> None:
        self.engine = engine
        self.addresses = addresses
        self._nursery = nursery
        self.agents: dict[ClientAddress, str] = {}
        """By connection: the name of its agent."""
        self.operations: dict[ClientAddress, list[int]] = {}
        """By connection: the numbers of its requests that nodes trace, in order."""

    def connect(self, clients: ClientConnections, connection: ClientConnection) -> Line:
        """Connect to the node, which may be down."""
        socket = ConnectionSocket(self, clients, connection)
        self._nursery.start_soon(socket.serve)
        return socket


class ConnectionSocket:
    """One connection, with the requests that are not yet written."""

    def __init__(
        self, sockets: Sockets, clients: ClientConnections, connection: ClientConnection
    ) -> None:
        self._sockets = sockets
        self._clients = clients
        self._connection = connection
        self._scope = trio.CancelScope()
        self._refs: list[int] = []
        self._unsent: list[Operation] = []
        self._came = trio.Event()

    def ask(self, operation: Operation) -> None:
        """Add a request."""
        self._unsent.append(operation)
        self._came.set()

    def hang_up(self) -> None:
        """Close the connection for the agent."""
        self._scope.cancel()

    async def serve(self) -> None:
        """Forward requests and replies until the connection ends."""
        host, addresses = self._connection.host, self._sockets.addresses
        with broken(), self._scope:
            stream = await trio.open_tcp_stream(addresses.own(host.number), addresses.port)
            try:
                ip, port = stream.socket.getsockname()
                address = host.name, f"{ip}:{port}"
                self._sockets.agents[address] = self._connection.actor.agent.name
                self._sockets.operations[address] = self._refs
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._write_all, stream)
                    await self._read(stream)
                    nursery.cancel_scope.cancel()
            finally:
                close_at_once(stream)
        self._sockets.engine.sync()
        self._clients.end(self._connection)

    async def _read(self, stream: trio.SocketStream) -> None:
        parser = ReplyParser()
        with broken():
            while data := await stream.receive_some(_READ):
                self._sockets.engine.sync()
                for reply in parser.feed(data):
                    self._clients.answered(self._connection, reply, ())

    async def _write_all(self, stream: trio.SocketStream) -> None:
        with broken():
            while True:
                await self._came.wait()
                self._came = trio.Event()
                unsent, self._unsent = self._unsent, []
                for operation in unsent:
                    if client_rows.invoked(operation.words):
                        self._refs.append(operation.ref)
                    await stream.send_all(encode_request(operation.words))
