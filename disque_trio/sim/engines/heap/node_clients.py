"""Clients of whole nodes: requests and replies as bytes, sometimes split into pieces on the way."""

import random
from typing import Any, Final

from disque_trio.driver.sessions import Session
from disque_trio.node import Node
from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.heap.clients import ClientConnection, ClientConnections, Operation
from disque_trio.sim.engines.heap.node_hosts import NodeHost, SimEventLoop
from disque_trio.sim.model.vector_clocks import Stamp
from disque_trio.statemachine.chores import Connection
from disque_trio.wire.resp import ReplyParser, encode_request

_SHARE_CUT: Final = 1 / 16
"""The share of requests and replies that arrive in two pieces."""


class SimClientPort:
    """One client's connection: the `Line` of the agent, and the `ClientPort` of a node."""

    is_half_closed = False

    def __init__(
        self,
        connections: ClientConnections,
        connection: ClientConnection,
        host: NodeHost,
        event_loop: SimEventLoop,
        engine: Engine,
        rng: random.Random,
    ) -> None:
        self._connections = connections
        self._connection = connection
        self._host = host
        self._event_loop = event_loop
        self._engine = engine
        self._rng = rng
        self._replies = ReplyParser()
        self._session: Session | None = None
        event_loop.put(self._connect, None)

    def _pieces(self, data: bytes) -> tuple[bytes, bytes]:
        """Return the data, sometimes in two pieces; otherwise the first piece is empty."""
        rng = self._rng
        cut = rng.randrange(len(data)) if rng.random() < _SHARE_CUT else 0
        return data[:cut], data[cut:]

    def _connect(self, node: Node, _subject: Any) -> None:
        """Report the connection to the node."""
        actor, number = self._connection.actor, self._connection.number
        address = b"10.255.0.%d:%d" % (1 + actor.distance % 250, number % 60_000)
        self._session = node.connect(self, address)
        if self._session is None:
            self._connections.end(self._connection)
        else:
            self._host.clients[self._session.client.id] = actor.agent.name

    # From the agent.

    def ask(self, operation: Operation) -> None:
        """Send a request, in one piece or two."""
        begin, end = self._pieces(encode_request(operation.words))
        if begin:
            self._event_loop.put(self._receive, (begin, ()))
        self._event_loop.put(self._receive, (end, operation.stamp))

    def _receive(self, node: Node, sent: tuple[bytes, Stamp]) -> None:
        data, stamp = sent
        self._host.vector.join(stamp)
        if self._session is not None:
            node.received(self._session, data)

    def hang_up(self) -> None:
        """Report the end of the connection to the node."""
        self._event_loop.put(self._lose, None)

    def _lose(self, node: Node, _subject: Any) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            self._host.clients.pop(session.client.id, None)
            node.lost(session)

    # From the node.

    def write(self, data: bytes) -> int:
        """Send data. The agent always reads."""
        if not self._event_loop.is_dead:
            self._host.write_rows()
            stamp = self._host.vector.stamp()
            for piece in self._pieces(data):
                if piece:
                    self._engine.later(self._connection.actor.distance, self._read, (piece, stamp))
        return 0

    def _read(self, written: tuple[bytes, Stamp]) -> None:
        data, stamp = written
        for reply in self._replies.feed(data):
            self._connections.answered(self._connection, reply, stamp)

    def hold(self) -> None:
        """Do nothing: agents limit their requests themselves."""

    def resume(self) -> None:
        """See `hold`."""

    def close(self) -> None:
        """Disconnect after the data written so far."""
        self._connections.end(self._connection)
        self.hang_up()

    def abort(self) -> None:
        """Disconnect."""
        self.close()

    def facts(self) -> Connection:
        """Return the connection for CLIENT LIST."""
        return Connection(fd=7)
