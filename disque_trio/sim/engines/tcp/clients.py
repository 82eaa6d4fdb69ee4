"""Clients of real nodes: each lane is a connection over a socket."""

from typing import Final

import trio

from disque_trio.sim.engines.heap.clients import Lane, Lanes, Operation
from disque_trio.sim.engines.live_events import LiveEngine
from disque_trio.sim.engines.tcp.places import Places
from disque_trio.sim.engines.tcp.sockets import broken, close_at_once
from disque_trio.sim.model.recorder import Recorder
from disque_trio.tracing import client_rows
from disque_trio.wire.resp import ReplyParser, encode_request

_READ: Final = 1 << 16

Door = tuple[str, str]
"""A connection: the node, and the address that it knows the client by. Two connections to two
nodes may have the same address."""


class SocketLanes(Lanes):
    """The agents' side is that of every engine."""

    def __init__(
        self, engine: LiveEngine, recorder: Recorder, places: Places, nursery: trio.Nursery
    ) -> None:
        super().__init__(engine, recorder)
        self._live = engine
        self._places = places
        self._nursery = nursery
        self._sockets: dict[Lane, LaneSocket] = {}
        self.agents: dict[Door, str] = {}
        """Whose connection it is."""
        self.operations: dict[Door, list[int]] = {}
        """The numbers of those requests on it that nodes trace, in order."""

    def _arrive(self, asked: tuple[Lane, Operation]) -> None:
        lane, operation = asked
        if lane.is_ended:
            return
        socket = self._sockets.get(lane)
        if socket is None:
            self._at[lane.host][lane] = None
            socket = self._sockets[lane] = LaneSocket()
            self._nursery.start_soon(self._serve, lane, socket)
        socket.write(operation)

    async def _serve(self, lane: Lane, socket: "LaneSocket") -> None:
        address = (self._places.own(lane.host.number), self._places.port)
        with broken():
            sock = trio.socket.socket()
            try:
                await sock.connect(address)
                ip, port = sock.getsockname()
            except OSError:
                sock.close()
                raise
            self._welcome(lane, socket, (lane.host.name, f"{ip}:{port}"))
            stream = trio.SocketStream(sock)
            try:
                async with trio.open_nursery() as nursery:
                    socket.scope = nursery.cancel_scope
                    nursery.start_soon(socket.carry, stream)
                    await self._read(lane, stream)
                    nursery.cancel_scope.cancel()
            finally:
                close_at_once(stream)
        self._over(lane)

    def _welcome(self, lane: Lane, socket: "LaneSocket", door: Door) -> None:
        self.agents[door] = lane.actor.agent.name
        socket.refs = self.operations[door] = []

    async def _read(self, lane: Lane, stream: trio.SocketStream) -> None:
        parser = ReplyParser()
        with broken():
            while data := await stream.receive_some(_READ):
                self._live.sync()
                for reply in parser.feed(data):
                    self._answered((lane, reply, ()))

    def _over(self, lane: Lane) -> None:
        self._sockets.pop(lane, None)
        self._live.sync()
        if not lane.is_ended:
            self._end(lane)

    def _depart(self, lane: Lane) -> None:
        """The agent hangs up."""
        if not lane.is_ended:
            self._forget(lane)
            if lane in self._sockets:
                self._sockets[lane].scope.cancel()


class LaneSocket:
    """What waits to be written."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.refs: list[int] = []
        self._unsent: list[Operation] = []
        self._came = trio.Event()

    def write(self, operation: Operation) -> None:
        """A request."""
        self._unsent.append(operation)
        self._came.set()

    async def carry(self, stream: trio.SocketStream) -> None:
        """Write what comes, until the connection breaks."""
        with broken():
            while True:
                await self._came.wait()
                self._came = trio.Event()
                unsent, self._unsent = self._unsent, []
                for operation in unsent:
                    if client_rows.invoked(operation.words):
                        self.refs.append(operation.ref)
                    await stream.send_all(encode_request(operation.words))
