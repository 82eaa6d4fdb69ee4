"""Clients of real nodes: each connection is a socket."""

from typing import Final

import trio

from disque_trio.sim.engines.heap.clients import ClientConnection, ClientConnections, Operation
from disque_trio.sim.engines.live_events import LiveEngine
from disque_trio.sim.engines.tcp.places import Places
from disque_trio.sim.engines.tcp.sockets import broken, close_at_once
from disque_trio.sim.model.recorder import Recorder
from disque_trio.tracing import client_rows
from disque_trio.wire.resp import ReplyParser, encode_request

_READ: Final = 1 << 16

ClientAddress = tuple[str, str]
"""A node and the client's address there: connections to two nodes may have the same address."""


class SocketConnections(ClientConnections):
    """The agents' side is the same in every engine."""

    def __init__(
        self, engine: LiveEngine, recorder: Recorder, places: Places, nursery: trio.Nursery
    ) -> None:
        super().__init__(engine, recorder)
        self._live = engine
        self._places = places
        self._nursery = nursery
        self._sockets: dict[ClientConnection, ConnectionSocket] = {}
        self.agents: dict[ClientAddress, str] = {}
        """The agent of each connection."""
        self.operations: dict[ClientAddress, list[int]] = {}
        """The numbers of its requests that nodes trace, in order."""

    def _arrive(self, asked: tuple[ClientConnection, Operation]) -> None:
        connection, operation = asked
        if connection.is_ended:
            return
        socket = self._sockets.get(connection)
        if socket is None:
            self._open[connection.host][connection] = None
            socket = self._sockets[connection] = ConnectionSocket()
            self._nursery.start_soon(self._serve, connection, socket)
        socket.write(operation)

    async def _serve(self, connection: ClientConnection, socket: "ConnectionSocket") -> None:
        address = (self._places.own(connection.host.number), self._places.port)
        with broken():
            sock = trio.socket.socket()
            try:
                await sock.connect(address)
                ip, port = sock.getsockname()
            except OSError:
                sock.close()
                raise
            self._welcome(connection, socket, (connection.host.name, f"{ip}:{port}"))
            stream = trio.SocketStream(sock)
            try:
                async with trio.open_nursery() as nursery:
                    socket.scope = nursery.cancel_scope
                    nursery.start_soon(socket.write_all, stream)
                    await self._read(connection, stream)
                    nursery.cancel_scope.cancel()
            finally:
                close_at_once(stream)
        self._over(connection)

    def _welcome(
        self, connection: ClientConnection, socket: "ConnectionSocket", address: ClientAddress
    ) -> None:
        self.agents[address] = connection.actor.agent.name
        socket.refs = self.operations[address] = []

    async def _read(self, connection: ClientConnection, stream: trio.SocketStream) -> None:
        parser = ReplyParser()
        with broken():
            while data := await stream.receive_some(_READ):
                self._live.sync()
                for reply in parser.feed(data):
                    self._answered((connection, reply, ()))

    def _over(self, connection: ClientConnection) -> None:
        self._sockets.pop(connection, None)
        self._live.sync()
        if not connection.is_ended:
            self._end(connection)

    def _depart(self, connection: ClientConnection) -> None:
        """The agent hangs up."""
        if not connection.is_ended:
            self._forget(connection)
            if connection in self._sockets:
                self._sockets[connection].scope.cancel()


class ConnectionSocket:
    """The requests that wait to be written."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.refs: list[int] = []
        self._unsent: list[Operation] = []
        self._came = trio.Event()

    def write(self, operation: Operation) -> None:
        """Add a request."""
        self._unsent.append(operation)
        self._came.set()

    async def write_all(self, stream: trio.SocketStream) -> None:
        """Write requests until the connection breaks."""
        with broken():
            while True:
                await self._came.wait()
                self._came = trio.Event()
                unsent, self._unsent = self._unsent, []
                for operation in unsent:
                    if client_rows.invoked(operation.words):
                        self.refs.append(operation.ref)
                    await stream.send_all(encode_request(operation.words))
