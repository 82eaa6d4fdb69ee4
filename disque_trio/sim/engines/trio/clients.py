"""Clients of real shells: requests and replies as bytes, cut into pieces on the way."""

import random

from disque_trio.driver.sessions import Session
from disque_trio.node import Node
from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.heap.clients import Lane, Lanes, Operation
from disque_trio.sim.engines.heap.nodes import Host
from disque_trio.sim.engines.trio.hosts import NodeHost
from disque_trio.sim.engines.trio.hub import SimHub
from disque_trio.sim.model.recorder import Recorder
from disque_trio.sim.model.vector_clocks import Stamp
from disque_trio.statemachine.chores import Connection
from disque_trio.wire.resp import ReplyParser, encode_request


class ShellLanes(Lanes):
    """The lanes of the heap engine with bytes on them."""

    def __init__(self, engine: Engine, recorder: Recorder, rng: random.Random) -> None:
        super().__init__(engine, recorder)
        self._rng = rng
        self._ports: dict[Lane, ShellClient] = {}

    # To the node.

    def _arrive(self, asked: tuple[Lane, Operation]) -> None:
        lane, operation = asked
        if lane.is_ended:
            return
        host = lane.host
        assert isinstance(host, NodeHost)
        if host.hub is None:
            self._end(lane)
            return
        port = self._ports.get(lane)
        if port is None:
            self._at[host][lane] = None
            port = self._ports[lane] = ShellClient(self, lane, host, host.hub)
            host.hub.put(port.connect)
        port.ask(operation, *self._pieces(encode_request(operation.words)))

    def _pieces(self, data: bytes) -> tuple[bytes, bytes]:
        """The data, now and then in two pieces; else the first is empty."""
        cut = self._rng.randrange(len(data)) if self._rng.random() < 0.5 else 0
        return data[:cut], data[cut:]

    def _depart(self, lane: Lane) -> None:
        """Word that the agent has hung up."""
        port = self._ports.get(lane)
        if port is not None and not lane.is_ended:
            port.end()
        self._forget(lane)

    # From the node.

    def connected(self, lane: Lane, session: Session) -> None:
        """The node has a client for the lane."""
        lane.client = session.client
        self._clients[lane.host][session.client.id] = lane

    def write(self, lane: Lane, data: bytes, stamp: Stamp) -> None:
        """Send bytes to the agent."""
        for piece in self._pieces(data):
            if piece:
                self._engine.later(lane.actor.distance, self._read, (lane, piece, stamp))

    def _read(self, written: tuple[Lane, bytes, Stamp]) -> None:
        lane, data, stamp = written
        port = self._ports.get(lane)
        if port is not None:
            for reply in port.replies.feed(data):
                self._answered((lane, reply, stamp))

    def ended(self, lane: Lane) -> None:
        """The node has ended the lane."""
        if not lane.is_ended:
            self._end(lane)

    def _lost(self, lane: Lane) -> None:
        super()._lost(lane)
        self._ports.pop(lane, None)

    def crashed(self, host: Host) -> None:
        """All connections of the node break."""
        super().crashed(host)
        self._clients[host].clear()


class ShellClient:
    """One client's connection: the `ClientPort` of a node."""

    is_half_closed = False

    def __init__(self, lanes: ShellLanes, lane: Lane, host: NodeHost, hub: SimHub) -> None:
        self.replies = ReplyParser()
        self._lanes = lanes
        self._lane = lane
        self._host = host
        self._hub = hub
        self._session: Session | None = None

    # From the agent.

    def connect(self, node: Node) -> None:
        """The node learns of the connection."""
        distance, number = self._lane.actor.distance, self._lane.number
        address = b"10.255.0.%d:%d" % (1 + distance % 250, number % 60_000)
        self._session = node.connect(self, address)
        if self._session is None:
            self._lanes.ended(self._lane)
        else:
            self._lanes.connected(self._lane, self._session)

    def ask(self, operation: Operation, begin: bytes, end: bytes) -> None:
        """A request, in one piece or two."""
        if begin:
            self._hub.put(lambda node: self._hear(node, begin))
        self._hub.put(lambda node: self._hear_end(node, operation, end))

    def _hear(self, node: Node, data: bytes) -> None:
        if self._session is not None:
            node.received(self._session, data)

    def _hear_end(self, node: Node, operation: Operation, data: bytes) -> None:
        self._host.vector.join(operation.stamp)
        self._hear(node, data)

    def end(self) -> None:
        """The connection is over: let the node know."""
        self._hub.put(self._lose)

    def _lose(self, node: Node) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            node.lost(session)

    # From the node.

    def write(self, data: bytes) -> int:
        """Send. The agent always reads."""
        if not self._hub.is_dead:
            self._host.tell()
            self._lanes.write(self._lane, data, self._host.vector.stamp())
        return 0

    def hold(self) -> None:
        """Agents ask one thing at a time: nothing to hold back."""

    def resume(self) -> None:
        """See `hold`."""

    def close(self) -> None:
        """Disconnect behind what has been written."""
        self._lanes.ended(self._lane)
        self.end()

    def abort(self) -> None:
        """Disconnect."""
        self.close()

    def facts(self) -> Connection:
        """For CLIENT LIST."""
        return Connection(fd=7)
