"""Polls running nodes: reads their traces, and requests their links."""

from collections.abc import Callable
from typing import Final

import trio

from disque_trio.sim.engines.tcp.hosts import ProcessHost
from disque_trio.sim.engines.tcp.sockets import broken
from disque_trio.sim.engines.tcp.world import ProcessWorld
from disque_trio.statemachine.base import NodeId
from disque_trio.tracing.rows import Row
from disque_trio.wire.resp import ReplyParser, encode_request

READ_EVERY_S: Final = 0.02
ASK_EVERY_S: Final = 0.25
PATIENCE_S: Final = 1.0
_READ: Final = 1 << 16
_ASK: Final = encode_request([b"CLUSTER", b"NODES"])


class Poller:
    """Polls all nodes."""

    def __init__(self, world: ProcessWorld, see: Callable[[Row], None]) -> None:
        self._world = world
        self._addresses = world.addresses
        self._engine = world.engine
        self._see = see

    async def run(self) -> None:
        """Poll until cancelled. Raise `MachineError` if a node ends by itself, or does not end
        after SIGTERM."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read)
            nursery.start_soon(self._ask_all)

    async def _read(self) -> None:
        while True:
            await trio.sleep(READ_EVERY_S)
            for host in self._world.processes:
                self._engine.sync()
                host.look_after()
                rows = host.tail.read()
                self._engine.sync()
                for row in rows:
                    self._see(row)

    async def _ask_all(self) -> None:
        while True:
            await trio.sleep(ASK_EVERY_S)
            async with trio.open_nursery() as nursery:
                for host in self._world.processes:
                    if host.is_up and not host.is_paused:
                        nursery.start_soon(self._ask, host)

    async def _ask(self, host: ProcessHost) -> None:
        found: frozenset[NodeId] = frozenset()
        with trio.move_on_after(PATIENCE_S), broken():
            address = self._addresses.own(host.number), self._addresses.port
            async with await trio.open_tcp_stream(*address) as stream:
                await stream.send_all(_ASK)
                found = await _links(stream)
        host.links = found


async def _links(stream: trio.SocketStream) -> frozenset[NodeId]:
    """Return the nodes that CLUSTER NODES lists as connected."""
    parser = ReplyParser()
    while data := await stream.receive_some(_READ):
        for reply in parser.feed(data):
            assert isinstance(reply, bytes)
            lines = [line.split() for line in reply.splitlines()]
            return frozenset(line[0] for line in lines if line[5:6] == [b"connected"])
    return frozenset()
