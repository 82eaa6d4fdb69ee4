"""Clients of whole nodes: requests and replies as bytes, sometimes cut into pieces on the way."""

import random
from typing import Any

from disque_trio.driver.sessions import Session
from disque_trio.node import Node
from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.heap.clients import ClientConnection, ClientConnections, Operation
from disque_trio.sim.engines.heap.hub import SimHub
from disque_trio.sim.engines.heap.node_hosts import NodeHost
from disque_trio.sim.engines.heap.nodes import Host
from disque_trio.sim.model.recorder import Recorder
from disque_trio.sim.model.vector_clocks import Stamp
from disque_trio.statemachine.base import ClientId
from disque_trio.statemachine.chores import Connection
from disque_trio.wire.resp import ReplyParser, encode_request


class NodeClients(ClientConnections):
    """The connections of a run, carrying bytes."""

    def __init__(
        self, engine: Engine, recorder: Recorder, rng: random.Random, cut_every: int
    ) -> None:
        """One piece of data in `cut_every` is cut in two."""
        super().__init__(engine, recorder)
        self._rng = rng
        self._share_cut = 1 / cut_every
        self._nodes: dict[Host, NodeHost] = {}
        self._ports: dict[ClientConnection, SimClientPort] = {}
        self._named: dict[Host, dict[ClientId, ClientConnection]] = {}

    def add_node(self, host: NodeHost) -> None:
        """Add a node."""
        self.add_host(host)
        self._nodes[host] = host
        self._named[host] = {}

    def client_name(self, host: Host, client: ClientId) -> str:
        """The name of the agent behind the machine's client."""
        connection = self._named[host].get(client)
        return connection.actor.agent.name if connection is not None else ""

    # To the node.

    def _arrive(self, asked: tuple[ClientConnection, Operation]) -> None:
        connection, operation = asked
        if connection.is_ended:
            return
        host = self._nodes[connection.host]
        if host.hub is None:
            self._end(connection)
            return
        port = self._ports.get(connection)
        if port is None:
            self._open[host][connection] = None
            port = self._ports[connection] = SimClientPort(self, connection, host, host.hub)
            host.hub.put(port.connect, None)
        begin, end = self._pieces(encode_request(operation.words))
        port.ask(operation, begin, end)

    def _pieces(self, data: bytes) -> tuple[bytes, bytes]:
        """The data, sometimes in two pieces; otherwise the first is empty."""
        rng = self._rng
        cut = rng.randrange(len(data)) if rng.random() < self._share_cut else 0
        return data[:cut], data[cut:]

    def _depart(self, connection: ClientConnection) -> None:
        port = self._ports.get(connection)
        if port is not None and not connection.is_ended:
            port.end()
        self._forget(connection)
        self._ports.pop(connection, None)

    # From the node.

    def connected(self, connection: ClientConnection, session: Session) -> None:
        """The node has a client for the connection."""
        self._named[connection.host][session.client.id] = connection

    def disconnected(self, connection: ClientConnection, session: Session) -> None:
        """The node loses its client."""
        self._named[connection.host].pop(session.client.id, None)

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
        self._named[host].clear()


class SimClientPort:
    """One client's connection: the `ClientPort` of a node."""

    is_half_closed = False

    def __init__(
        self, connections: NodeClients, connection: ClientConnection, host: NodeHost, hub: SimHub
    ) -> None:
        self.replies = ReplyParser()
        self.session: Session | None = None
        self._connections = connections
        self._connection = connection
        self._host = host
        self._hub = hub

    # From the agent.

    def connect(self, node: Node, _subject: Any) -> None:
        """Tell the node of the connection."""
        distance, number = self._connection.actor.distance, self._connection.number
        address = b"10.255.0.%d:%d" % (1 + distance % 250, number % 60_000)
        self.session = node.connect(self, address)
        if self.session is None:
            self._connections.ended(self._connection)
        else:
            self._connections.connected(self._connection, self.session)

    def ask(self, operation: Operation, begin: bytes, end: bytes) -> None:
        """Send a request, in one piece or two."""
        if begin:
            self._hub.put(self._receive, begin)
        self._hub.put(self._receive_end, (operation, end))

    def _receive(self, node: Node, data: bytes) -> None:
        if self.session is not None:
            node.received(self.session, data)

    def _receive_end(self, node: Node, asked: tuple[Operation, bytes]) -> None:
        operation, data = asked
        self._host.vector.join(operation.stamp)
        if self.session is not None:
            node.received(self.session, data)

    def end(self) -> None:
        """The connection has ended: tell the node."""
        self._hub.put(self._lose, None)

    def _lose(self, node: Node, _subject: Any) -> None:
        if self.session is not None:
            session, self.session = self.session, None
            self._connections.disconnected(self._connection, session)
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
