"""A node on real sockets of the loopback, and how to talk to it."""

import os
import random
import socket

import attrs
import trio

from disque_trio.net.event_loop import SocketEventLoop
from disque_trio.net.tls import Keeper
from disque_trio.node import Node
from disque_trio.serving.process import SystemClock
from disque_trio.statemachine.base import MYSELF
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.messages import Pong
from disque_trio.statemachine.stats import Facts
from disque_trio.wire.frames import encode
from tests.cluster.processes import free_port
from tests.node.world import MemoryHost, MemoryLog, MemoryStore

MULTIPLEXING = "auto"
"""How event loops wait for sockets. The fixture `multiplexing` sets it."""


@attrs.define
class Live:
    """A node on real sockets, and where they are."""

    node: Node
    log: MemoryLog
    port: int
    bus_port: int
    nursery: trio.Nursery
    event_loop: SocketEventLoop
    tls_port: int = 0

    async def client(self) -> trio.SocketStream:
        return await connected(self.nursery, self.port)

    async def peer(self) -> trio.SocketStream:
        return await connected(self.nursery, self.bus_port)


async def connected(
    nursery: trio.Nursery, port: int, address: str = "127.0.0.1"
) -> trio.SocketStream:
    """A connection that is closed when the test ends."""
    stream = await trio.open_tcp_stream(address, port)
    await nursery.start(closed_at_the_end, stream)
    return stream


async def closed_at_the_end(
    stream: trio.SocketStream, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    task_status.started()
    try:
        await trio.sleep_forever()
    finally:
        stream.socket.close()


def listening(
    family: int = socket.AF_INET, place: tuple[str, int] | str = ("127.0.0.1", 0)
) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    sock.bind(place)
    sock.listen(128)
    return sock


async def live(
    nursery: trio.Nursery,
    config: Config | None = None,
    *more: socket.socket,
    within: trio.Nursery | None = None,
    linger_s: float = 0.0,
) -> Live:
    clients, bus = listening(), listening(place=("127.0.0.1", free_port() + 10_000))
    port, bus_port = clients.getsockname()[1], bus.getsockname()[1]
    clock, log = SystemClock(), MemoryLog()
    known_as = bus_port - 10_000
    myself = Peer(os.urandom(20).hex().encode(), "", known_as, MYSELF)
    facts = Facts(port=known_as)
    machine = Machine(config or Config(), myself, random.Random(0), clock.now(), facts)
    tls = [listening()] if config is not None and config.tls_port else []
    keeper = Keeper(config or Config())
    event_loop = SocketEventLoop(
        [clients, *more],
        [bus],
        source_ip="127.0.0.1",
        tls_sockets=tls,
        tls=keeper,
        multiplexing=MULTIPLEXING,
    )
    event_loop.linger(linger_s)
    host = MemoryHost(tls=keeper)
    node = Node(machine, clock, event_loop, MemoryStore(), host, log)
    await (within or nursery).start(node.run)
    tls_port = tls[0].getsockname()[1] if tls else 0
    return Live(node, log, port, bus_port, nursery, event_loop, tls_port)


async def pair(nursery: trio.Nursery, ours: Config, theirs: Config) -> tuple[Live, Live]:
    """Two nodes, of which the first is told to meet the second."""
    first, second = await live(nursery, ours), await live(nursery, theirs)
    stream = await first.client()
    await stream.send_all(b"CLUSTER MEET 127.0.0.1 %d\r\n" % (second.bus_port - 10_000))
    await expect(stream, b"+OK\r\n")
    return first, second


async def receive(stream: trio.SocketStream, size: int) -> bytes:
    """Exactly so many bytes, or what came before the end."""
    data = b""
    with trio.fail_after(30):
        while len(data) < size:
            piece = await stream.receive_some(size - len(data))
            if not piece:
                break
            data += piece
    return data


async def expect(stream: trio.SocketStream, data: bytes) -> None:
    assert await receive(stream, len(data)) == data


async def ended(stream: trio.SocketStream) -> bool:
    """Has the node closed the connection?"""
    with trio.fail_after(30):
        try:
            return await stream.receive_some() == b""
        except trio.BrokenResourceError:
            return True


def pong() -> bytes:
    return encode(b"b" * 40, 7711, MYSELF, Pong(()))
