"""Connections of one simulated process: byte streams for clients, requests for the simulation.

Data that are sent while the link to a node is cut, or while the process is suspended, wait.
"""

import errno
import os
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

import anyio
import attrs
import trio
from anyio.abc import ByteStream

from disque_trio.client.address import Address
from disque_trio.client.errors import not_connected
from disque_trio.sim.engines.events import NEVER
from disque_trio.sim.engines.heap.clients import Actor
from disque_trio.sim.engines.heap.world import World
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.sim.workload.actions import Action, Disconnect, SendRequest
from disque_trio.statemachine.base import Reply
from disque_trio.testing.simulated.clock import ScenarioEngine
from disque_trio.wire.replies import encode_reply
from disque_trio.wire.requests import RequestParser

_DIAL_S: Final = 0.0005


@attrs.define(eq=False)
class SimStream(ByteStream):
    """A connection to a node."""

    number: int
    node: int
    _connections: "Connections"
    _parser: RequestParser = attrs.Factory(RequestParser)
    _data: bytearray = attrs.Factory(bytearray)
    _has_ended: bool = False
    _changed: trio.Event = attrs.Factory(trio.Event)

    async def send(self, item: bytes) -> None:
        """Send bytes; complete requests are passed to the node."""
        await trio.lowlevel.checkpoint()
        await self._connections.moving()
        if self._has_ended:
            raise anyio.BrokenResourceError
        for words in _requests(self._parser, item):
            self._connections.action(self.node, SendRequest(self.number, self.node, words))

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """Receive bytes."""
        while True:
            await self._connections.moving()
            if self._data:
                break
            if self._has_ended:
                raise anyio.EndOfStream
            await self._changed.wait()
            self._changed = trio.Event()
        await trio.lowlevel.checkpoint()
        data = bytes(self._data[:max_bytes])
        del self._data[:max_bytes]
        return data

    async def send_eof(self) -> None:
        """Close the connection: a simulated node regards the end of one direction as the end of
        both."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connection."""
        if not self._has_ended:
            self.end()
            self._connections.hang_up(self)

    def receive_reply(self, reply: Reply) -> None:
        """A reply has arrived; replies after the end are dropped."""
        if not self._has_ended:
            self._data += encode_reply(reply)
            self._wake()

    def end(self) -> None:
        """The connection has ended."""
        self._has_ended = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._connections.engine.has_woken = True


def _requests(parser: RequestParser, data: bytes) -> Iterator[list[bytes]]:
    yield from parser.feed(data)
    while parser.pending:
        yield from parser.more()


@attrs.define(eq=False)
class Connections:
    """All connections of a process: an agent of the simulation."""

    name: str
    _world: World
    engine: ScenarioEngine
    _numbers: dict[str, int]
    """By address: the number of a node."""
    actions: list[Action] = attrs.Factory(list)
    is_dead: bool = False
    _actor: Actor = attrs.field(init=False)
    _streams: dict[int, SimStream] = attrs.Factory(dict)
    _last: int = 0
    _cuts: dict[int, int] = attrs.Factory(dict)
    """By node: the number of faults that cut the link."""
    _held: dict[int, deque[Callable[[], None]]] = attrs.Factory(dict)
    """By node: the actions that wait for the link, in both directions."""
    _frozen: list[tuple[int, Action]] = attrs.Factory(list)
    """The actions of the process while it is suspended."""
    _stops: int = 0
    _moves: trio.Event = attrs.Factory(trio.Event)
    """Set while the process is not suspended."""
    _mended: trio.Event = attrs.Factory(trio.Event)

    def __attrs_post_init__(self) -> None:
        self._moves.set()
        self._actor = self._world.add_agent(self)

    # For clients.

    async def connect(self, address: Address, timeout_s: float) -> SimStream:
        """The `Connect` of clients. Raises `ConnectionFailedError`."""
        await self.moving()
        node = self._numbers.get(address.host, 0)
        try:
            with trio.fail_after(timeout_s):
                await trio.sleep(_DIAL_S)
                while node in self._cuts:
                    await self._mended.wait()
        except trio.TooSlowError:
            raise _failed(address, errno.ETIMEDOUT) from None
        if node == 0 or self.is_dead or self._world.hosts[node].machine is None:
            raise _failed(address, errno.ECONNREFUSED)
        self._last += 1
        stream = self._streams[self._last] = SimStream(self._last, node, self)
        return stream

    async def moving(self) -> None:
        """Wait while the process is suspended."""
        while not self._moves.is_set():
            await self._moves.wait()

    async def waking(self) -> None:
        """As `moving`, before a task of the process continues after a timed wait."""
        await self.moving()
        await trio.lowlevel.checkpoint_if_cancelled()

    def action(self, node: int, action: Action) -> None:
        """Pass an action to the simulation, when the link works."""
        if self.is_stopped:
            self._frozen.append((node, action))
        elif not self.is_dead:
            self._go(node, lambda: self._settle(action))

    def hang_up(self, stream: SimStream) -> None:
        """The process has closed a connection."""
        self.action(stream.node, Disconnect(stream.number, "quit", has_row=True))

    def _settle(self, action: Action) -> None:
        self.engine.sync()
        if isinstance(action, Disconnect):
            self._streams.pop(action.connection, None)
        self.actions.append(action)
        self._world.clients.settle(self._actor)

    def _go(self, node: int, act: Callable[[], None]) -> None:
        if node in self._cuts:
            self._held.setdefault(node, deque()).append(act)
        else:
            act()

    # Faults.

    def cut(self, node: int) -> None:
        """Cut the link to the node, in both directions."""
        self._cuts[node] = self._cuts.get(node, 0) + 1

    def mend(self, node: int) -> None:
        """Undo a cut: delayed actions are carried out in order."""
        self._cuts[node] -= 1
        if self._cuts[node]:
            return
        del self._cuts[node]
        for act in self._held.pop(node, ()):
            act()
        mended, self._mended = self._mended, trio.Event()
        mended.set()

    def stop(self) -> None:
        """Suspend the process."""
        self._stops += 1
        if self._stops == 1:
            self._moves = trio.Event()

    def go_on(self) -> None:
        """Undo one suspension."""
        self._stops -= 1
        if not self._stops:
            self._moves.set()
            frozen, self._frozen = self._frozen, []
            for node, action in frozen:
                self.action(node, action)

    @property
    def is_stopped(self) -> bool:
        """Is the process suspended?"""
        return self._stops > 0

    def die(self) -> None:
        """The process has died: its kernel closes its connections."""
        self._stops = 0
        self._moves.set()
        self.reset()
        self.is_dead = True

    def reset(self) -> None:
        """Break all connections; the process may open others."""
        for stream in list(self._streams.values()):
            stream.end()
            self.hang_up(stream)

    # The agent (`actions.Agent`).

    def deadline(self) -> Micros:
        """Never: it only waits for replies."""
        return NEVER

    def wake(self, now: Micros) -> None:
        """Never called: it has no deadline."""

    def answered(self, now: Micros, connection: int, reply: Reply) -> None:  # noqa: ARG002
        """A reply has arrived."""
        stream = self._streams.get(connection)
        if stream is not None:
            self._go(stream.node, lambda: stream.receive_reply(reply))

    def lost(self, now: Micros, connection: int) -> None:  # noqa: ARG002
        """The node has ended the connection."""
        stream = self._streams.get(connection)
        if stream is not None:
            self._go(stream.node, lambda: self._lost(stream))

    def _lost(self, stream: SimStream) -> None:
        self._streams.pop(stream.number, None)
        stream.end()

    def settle(self) -> None:
        """Do nothing: the app decides what it does."""

    def is_idle(self) -> bool:
        """Always True: other agents determine whether the run is idle."""
        return True


def _failed(address: Address, number: int) -> Exception:
    error = OSError(number, os.strerror(number))
    return not_connected(str(address), error, None, has_tls=False)
