"""Real sockets on the loopback: links between nodes."""

import random
import resource
import socket

import pytest
import trio

from disque_trio.statemachine.config import Config
from tests.net.live import ended, expect, listening, live, pong, receive
from tests.node.world import until

pytestmark = pytest.mark.usefixtures("multiplexing")


async def test_frames_may_come_in_single_bytes(nursery: trio.Nursery) -> None:
    server = await live(nursery)
    stream = await server.peer()

    for byte in pong():
        await stream.send_all(bytes([byte]))
    await stream.send_all(pong() * 2)

    await until(lambda: server.node.state.cluster.messages_received == 3)


async def test_garbage_on_the_bus_ends_the_link_and_nothing_else(nursery: trio.Nursery) -> None:
    server = await live(nursery)
    good, bad = await server.peer(), await server.peer()
    await good.send_all(pong()[:100])
    await bad.send_all(pong() + random.Random(0).randbytes(10_000))

    assert await ended(bad)

    await good.send_all(pong()[100:])
    await until(lambda: server.node.state.cluster.messages_received == 2)
    assert "bus link closed: invalid frame" in server.log.events()


async def test_a_link_that_ends_is_forgotten(nursery: trio.Nursery) -> None:
    server = await live(nursery)
    streams = [await server.peer() for _ in range(20)]
    await until(lambda: len(server.node.state.cluster.links) == 20)

    for stream in streams:
        await stream.aclose()

    await until(lambda: not server.node.state.cluster.links)


async def test_a_refused_dial_is_repeated(nursery: trio.Nursery) -> None:
    server = await live(nursery)
    stream = await server.client()
    with listening() as sock:
        port = sock.getsockname()[1]

    await stream.send_all(b"CLUSTER MEET 127.0.0.1 %d\r\n" % (port - 10_000))
    await expect(stream, b"+OK\r\n")

    await until(lambda: server.node.state.cluster.last_link > 2)


async def test_without_a_descriptor_a_dial_is_put_off(nursery: trio.Nursery) -> None:
    server = await live(nursery)
    stream = await server.client()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket() as lowest_free:
        next_descriptor = lowest_free.fileno()

    resource.setrlimit(resource.RLIMIT_NOFILE, (next_descriptor, limits[1]))
    try:
        await stream.send_all(b"CLUSTER MEET 127.0.0.1 %d\r\n" % (server.bus_port - 10_000))
        await expect(stream, b"+OK\r\n")
        await until(lambda: "cannot dial" in server.log.events())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    put_off = server.node.state.cluster.last_link
    await until(lambda: server.node.state.cluster.last_link > put_off)


async def test_a_dial_reaches_a_peer_that_comes_late(nursery: trio.Nursery) -> None:
    server = await live(nursery)
    client = await server.client()
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    port = sock.getsockname()[1]
    await client.send_all(b"CLUSTER MEET 127.0.0.1 %d\r\n" % (port - 10_000))
    await until(lambda: server.node.state.cluster.last_link > 2)

    sock.listen()
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(sock))
    stream = await listener.accept()

    assert (await receive(stream, 144))[:4] == b"DbuZ"
    assert stream.socket.getpeername()[0] == "127.0.0.1"
    await stream.aclose()
    await listener.aclose()


async def test_a_peer_that_never_reads_costs_bounded_memory(nursery: trio.Nursery) -> None:
    server = await live(nursery, Config(bus_send_buffer=1 << 20))
    stream = await server.peer()
    await until(lambda: bool(server.node.state.cluster.links))
    session = next(iter(server.node._output.links.values()))
    frame = b"x" * 50_000
    taken = 0
    for _ in range(1000):
        assert session.port is not None
        taken += 10 - session.port.send([frame] * 10)

    assert 20 < taken < 400
    await expect(stream, frame * taken)
