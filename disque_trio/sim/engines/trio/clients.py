"""Clients of whole nodes: requests and replies as bytes, cut into pieces on the way."""

import random

from disque_trio.driver.sessions import Session
from disque_trio.node import Node
from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.heap.clients import ClientConnection, ClientConnections, Operation
from disque_trio.sim.engines.heap.nodes import Host
from disque_trio.sim.engines.trio.hosts import NodeHost
from disque_trio.sim.engines.trio.hub import SimHub
from disque_trio.sim.model.recorder import Recorder
from disque_trio.sim.model.vector_clocks import Stamp
from disque_trio.statemachine.chores import Connection
from disque_trio.wire.resp import ReplyParser, encode_request


class SimClientConnections(ClientConnections):
    """The connections of the heap engine, carrying bytes."""

    def __init__(self, engine: Engine, recorder: Recorder, rng: random.Random) -> None:
        super().__init__(engine, recorder)
        self._rng = rng
        self._ports: dict[ClientConnection, SimClientPort] = {}

    # To the node.

    def _arrive(self, asked: tuple[ClientConnection, Operation]) -> None:
        connection, operation = asked
        if connection.is_ended:
            return
        host = connection.host
        assert isinstance(host, NodeHost)
        if host.hub is None:
            self._end(connection)
            return
        port = self._ports.get(connection)
        if port is None:
            self._open[host][connection] = None
            port = self._ports[connection] = SimClientPort(self, connection, host, host.hub)
            host.hub.put(port.connect)
        port.ask(operation, *self._pieces(encode_request(operation.words)))

    def _pieces(self, data: bytes) -> tuple[bytes, bytes]:
        """The data, sometimes in two pieces; otherwise the first is empty."""
        cut = self._rng.randrange(len(data)) if self._rng.random() < 0.5 else 0
        return data[:cut], data[cut:]

    def _depart(self, connection: ClientConnection) -> None:
        """The agent's hang-up arrives at the node."""
        port = self._ports.get(connection)
        if port is not None and not connection.is_ended:
            port.end()
        self._forget(connection)

    # From the node.

    def connected(self, connection: ClientConnection, session: Session) -> None:
        """The node has a client for the connection."""
        connection.client = session.client
        self._clients[connection.host][session.client.id] = connection

    def write(self, connection: ClientConnection, data: bytes, stamp: Stamp) -> None:
        """Send bytes to the agent."""
        for piece in self._pieces(data):
            if piece:
                self._engine.later(
                    connection.actor.distance, self._read, (connection, piece, stamp)
                )

    def _read(self, written: tuple[ClientConnection, bytes, Stamp]) -> None:
        connection, data, stamp = written
        port = self._ports.get(connection)
        if port is not None:
            for reply in port.replies.feed(data):
                self._answered((connection, reply, stamp))

    def ended(self, connection: ClientConnection) -> None:
        """The node has ended the connection."""
        if not connection.is_ended:
            self._end(connection)

    def _lost(self, connection: ClientConnection) -> None:
        super()._lost(connection)
        self._ports.pop(connection, None)

    def crashed(self, host: Host) -> None:
        """End all connections of the node."""
        super().crashed(host)
        self._clients[host].clear()


class SimClientPort:
    """One client's connection: the `ClientPort` of a node."""

    is_half_closed = False

    def __init__(
        self,
        connections: SimClientConnections,
        connection: ClientConnection,
        host: NodeHost,
        hub: SimHub,
    ) -> None:
        self.replies = ReplyParser()
        self._connections = connections
        self._connection = connection
        self._host = host
        self._hub = hub
        self._session: Session | None = None

    # From the agent.

    def connect(self, node: Node) -> None:
        """Tell the node of the connection."""
        distance, number = self._connection.actor.distance, self._connection.number
        address = b"10.255.0.%d:%d" % (1 + distance % 250, number % 60_000)
        self._session = node.connect(self, address)
        if self._session is None:
            self._connections.ended(self._connection)
        else:
            self._connections.connected(self._connection, self._session)

    def ask(self, operation: Operation, begin: bytes, end: bytes) -> None:
        """Send a request, in one piece or two."""
        if begin:
            self._hub.put(lambda node: self._receive(node, begin))
        self._hub.put(lambda node: self._receive_end(node, operation, end))

    def _receive(self, node: Node, data: bytes) -> None:
        if self._session is not None:
            node.received(self._session, data)

    def _receive_end(self, node: Node, operation: Operation, data: bytes) -> None:
        self._host.vector.join(operation.stamp)
        self._receive(node, data)

    def end(self) -> None:
        """The connection has ended: tell the node."""
        self._hub.put(self._lose)

    def _lose(self, node: Node) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            node.lost(session)

    # From the node.

    def write(self, data: bytes) -> int:
        """Send. The agent always reads."""
        if not self._hub.is_dead:
            self._host.write_rows()
            self._connections.write(self._connection, data, self._host.vector.stamp())
        return 0

    def hold(self) -> None:
        """Nothing to hold back: agents limit their requests themselves."""

    def resume(self) -> None:
        """See `hold`."""

    def close(self) -> None:
        """Disconnect after what has been written."""
        self._connections.ended(self._connection)
        self.end()

    def abort(self) -> None:
        """Disconnect."""
        self.close()

    def facts(self) -> Connection:
        """For CLIENT LIST."""
        return Connection(fd=7)
