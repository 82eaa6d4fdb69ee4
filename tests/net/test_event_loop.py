"""Real sockets on the loopback: what the network does to the bytes of clients."""

import gc
import os
import random
import resource
import socket
import weakref
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from disque_trio.driver.sessions import CHOKE, Session
from disque_trio.net import clients, event_loop
from disque_trio.statemachine.chores import Shutdown
from disque_trio.statemachine.config import Config
from tests.net.live import (
    Live,
    closed_at_the_end,
    connected,
    ended,
    expect,
    listening,
    live,
    pong,
    receive,
)
from tests.node.world import until

pytestmark = pytest.mark.usefixtures("multiplexing")


async def test_a_request_in_single_bytes_is_answered(nursery: trio.Nursery) -> None:
    stream = await (await live(nursery)).client()

    for byte in b"*2\r\n$4\r\nPING\r\n$5\r\nhe\r\no\r\n":
        await stream.send_all(bytes([byte]))

    await expect(stream, b"$5\r\nhe\r\no\r\n")


async def test_inline_and_array_requests_mix(nursery: trio.Nursery) -> None:
    stream = await (await live(nursery)).client()

    await stream.send_all(b'ping\r\n*1\r\n$4\r\nPING\r\nping "a b"\r\n')

    await expect(stream, b"+PONG\r\n+PONG\r\n$3\r\na b\r\n")


async def test_a_long_pipeline_is_answered_in_order(nursery: trio.Nursery) -> None:
    stream = await (await live(nursery)).client()
    numbers = range(20_000)

    nursery.start_soon(stream.send_all, b"".join(b"PING %05d\r\n" % number for number in numbers))

    await expect(stream, b"".join(b"$5\r\n%05d\r\n" % number for number in numbers))


async def test_a_large_body_goes_in_and_out(nursery: trio.Nursery) -> None:
    stream = await (await live(nursery)).client()
    body = random.Random(1).randbytes(20 << 20)
    request = b"*2\r\n$4\r\nPING\r\n$%d\r\n%b\r\n" % (len(body), body)

    nursery.start_soon(stream.send_all, request)

    await expect(stream, b"$%d\r\n%b\r\n" % (len(body), body))


class Patient:
    """A node that has nothing to do for a second."""

    is_napping = False

    def seconds_left(self) -> float:
        return 1.0


async def test_a_hub_that_was_woken_while_it_breathed_does_not_nap(
    autojump_clock: trio.testing.MockClock,
) -> None:
    tired: Any = Patient()
    woken = event_loop.SocketEventLoop([], [])
    woken.wake()
    before = trio.current_time()

    await woken._rest(tired, is_busy=False)

    assert trio.current_time() == before


async def test_many_clients_are_served(nursery: trio.Nursery) -> None:
    server = await live(nursery)
    streams = [await server.client() for _ in range(200)]

    for number, stream in enumerate(streams):
        await stream.send_all(b"PING %d\r\n" % number)

    for number, stream in enumerate(streams):
        await expect(stream, b"$%d\r\n%d\r\n" % (len(str(number)), number))
    for stream in streams:
        await stream.aclose()
    await until(lambda: not server.node.state.clients)


async def test_a_client_that_never_reads_costs_bounded_memory(nursery: trio.Nursery) -> None:
    server = await live(nursery)
    stream, other = await server.client(), await server.client()
    size = 60_000
    request = b"*2\r\n$4\r\nPING\r\n$%d\r\n%b\r\n" % (size, b"x" * size)
    sent = 0

    async def flood() -> None:
        nonlocal sent
        while sent < 4000:
            await stream.send_all(request)
            sent += 1

    nursery.start_soon(flood)
    session = await _first_session(server)
    await until(lambda: session.is_held)
    before, peak = -1, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    while before != sent:
        before = sent
        # Another client is served meanwhile.
        for _ in range(50):
            await other.send_all(b"PING\r\n")
            await expect(other, b"+PONG\r\n")
    assert sent < 2000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 50_000
    assert CHOKE < session.unsent < 2 * CHOKE

    for _ in range(4000):
        await receive(stream, size + 10)
    assert sent == 4000
    await until(lambda: not session.is_held)


async def test_the_kernel_takes_little_for_a_client_that_does_not_read(
    nursery: trio.Nursery,
) -> None:
    server = await live(nursery)
    stream = await server.client()
    size = 900_000

    await stream.send_all(b"*2\r\n$4\r\nPING\r\n$%d\r\n%b\r\n" % (size, b"x" * size))

    session = await _first_session(server)
    await until(lambda: session.unsent > 0)
    # The other side's kernel takes some, too.
    assert session.unsent > size - clients.IN_KERNEL - 500_000
    assert len(await receive(stream, size + 11)) == size + 11


async def test_a_client_that_stops_sending_gets_all_its_answers(nursery: trio.Nursery) -> None:
    server = await live(nursery)
    stream = await server.client()
    body = b"x" * 60_000
    request = b"*2\r\n$4\r\nPING\r\n$60000\r\n%b\r\n" % body

    async def send() -> None:
        await stream.send_all(request * 300)
        await stream.send_eof()

    nursery.start_soon(send)
    session = await _first_session(server)
    await until(lambda: session.is_held)

    for _ in range(300):
        await expect(stream, b"$60000\r\n%b\r\n" % body)
    assert await ended(stream)
    await until(lambda: not server.node.state.clients)


async def _first_session(server: Live) -> Session:
    await until(lambda: bool(server.node._output.sessions))
    return next(iter(server.node._output.sessions.values()))


async def test_a_blocked_client_that_goes_is_noticed(nursery: trio.Nursery) -> None:
    server = await live(nursery)
    idle, busy = await server.client(), await server.client()
    await idle.send_all(b"GETJOB FROM q\r\n")
    await busy.send_all(b"GETJOB FROM q\r\n" + b"PING\r\n" * 500)
    await until(lambda: b"q" in server.node.state.queues)
    await until(lambda: len(server.node.state.queues[b"q"].waiting) == 2)

    await idle.aclose()
    await busy.aclose()

    await until(lambda: not server.node.state.clients)


async def test_a_blocked_client_goes_on_when_it_is_served(nursery: trio.Nursery) -> None:
    server = await live(nursery)
    worker, producer = await server.client(), await server.client()
    await worker.send_all(b"GETJOB FROM q\r\nPING\r\nGETJOB FROM r\r\nPING\r\n")
    await until(lambda: b"q" in server.node.state.queues)

    await producer.send_all(b"ADDJOB q one 0\r\nADDJOB r two 0\r\n")

    answer = await receive(worker, 2 * (4 + 4 + 7 + 47 + 9) + 2 * 7)
    assert answer.count(b"+PONG\r\n") == 2
    assert answer.index(b"one") < answer.index(b"+PONG") < answer.index(b"two")


async def test_nonsense_is_answered_and_ends_the_connection(nursery: trio.Nursery) -> None:
    server = await live(nursery)
    for sent, answer in {
        b"*1\r\nx\r\n": b"-ERR Protocol error: expected '$', got 'x'\r\n",
        b"*2000000\r\n": b"-ERR Protocol error: invalid multibulk length\r\n",
        b"*1\r\n$600000000\r\n": b"-ERR Protocol error: invalid bulk length\r\n",
        b"x" * 70_000: b"-ERR Protocol error: too big inline request\r\n",
        b'PING "x\r\n': b"-ERR Protocol error: unbalanced quotes in request\r\n",
    }.items():
        stream = await server.client()
        await stream.send_all(sent)
        await expect(stream, answer)
        assert await ended(stream)
    await until(lambda: not server.node.state.clients)
    assert server.node.state.stats.protocol_errors == 5


async def test_a_connection_beyond_maxclients_is_told_so(nursery: trio.Nursery) -> None:
    server = await live(nursery, Config(maxclients=1))
    stream = await server.client()
    await stream.send_all(b"PING\r\n")
    await expect(stream, b"+PONG\r\n")

    other = await server.client()

    await expect(other, b"-ERR max number of clients reached\r\n")
    assert await ended(other)
    await stream.aclose()
    await until(lambda: not server.node.state.clients)
    again = await server.client()
    await again.send_all(b"PING\r\n")
    await expect(again, b"+PONG\r\n")


async def test_a_keepalive_longer_than_the_kernel_takes_is_cut(nursery: trio.Nursery) -> None:
    stream = await (await live(nursery, Config(tcp_keepalive_s=1_000_000))).client()

    await stream.send_all(b"PING\r\n")

    await expect(stream, b"+PONG\r\n")


async def test_quit_closes_after_the_answer(nursery: trio.Nursery) -> None:
    stream = await (await live(nursery)).client()

    await stream.send_all(b"QUIT\r\nPING\r\n")

    await expect(stream, b"+OK\r\n")
    assert await ended(stream)


async def test_a_reset_connection_is_noticed(nursery: trio.Nursery) -> None:
    server = await live(nursery)
    stream = await server.client()
    await stream.send_all(b"PING\r\n")
    await expect(stream, b"+PONG\r\n")

    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    await stream.aclose()

    await until(lambda: not server.node.state.clients)


@pytest.mark.parametrize("name", [b"disque.sock", b"no text \xff"])
async def test_clients_come_by_a_path_too(
    nursery: trio.Nursery, tmp_path: Path, name: bytes
) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/" + name)
    server = await live(nursery, None, listening(socket.AF_UNIX, path))

    stream = await trio.open_unix_socket(path)
    await nursery.start(closed_at_the_end, stream)
    await stream.send_all(b"PING\r\nCLIENT LIST\r\n")

    await expect(stream, b"+PONG\r\n")
    assert b"addr=unix:" + os.fsencode(path) in await stream.receive_some()
    assert next(iter(server.node.state.clients.values())).is_unix


async def test_addresses_of_both_families_are_shown_with_their_ports(
    nursery: trio.Nursery,
) -> None:
    try:
        sixth = listening(socket.AF_INET6, ("::1", 0))
    except OSError:
        pytest.skip("no IPv6 here")
    server = await live(nursery, None, sixth)

    stream = await connected(nursery, sixth.getsockname()[1], "::1")
    await stream.send_all(b"CLIENT LIST\r\n")
    shown = await stream.receive_some()

    assert b"addr=[::1]:%d" % stream.socket.getsockname()[1] in shown
    other = await server.client()
    await other.send_all(b"PING\r\n")
    await expect(other, b"+PONG\r\n")


@pytest.mark.pure
async def test_an_ended_connection_leaves_nothing_to_the_collector(nursery: trio.Nursery) -> None:
    server = await live(nursery)
    stream, peer = await server.client(), await server.peer()
    await stream.send_all(b"GETJOB FROM q\r\nPING\r\n")
    await peer.send_all(pong()[:10])
    await until(lambda: bool(server.node._output.links))
    await until(lambda: all(session.is_held for session in server.node._output.sessions.values()))
    left: list[weakref.ref[object]] = []
    for session in server.node._output.sessions.values():
        left += map(weakref.ref, (session, session.port, session.client))
    for link in server.node._output.links.values():
        left += map(weakref.ref, (link, link.port))
    del session, link

    gc.disable()
    try:
        await stream.aclose()
        await peer.aclose()
        await until(lambda: not server.node._output.sessions and not server.node._output.links)
        await until(lambda: not any(ref() for ref in left))
    finally:
        gc.enable()


async def test_a_stopping_node_answers_and_closes(nursery: trio.Nursery) -> None:
    async with trio.open_nursery() as within:
        server = await live(nursery, within=within)
        stream, blocked = await server.client(), await server.client()
        await blocked.send_all(b"GETJOB FROM q\r\n")
        await stream.send_all(b"PING\r\n" * 1000)
        await until(lambda: server.node.state.facts.traffic.received == 15 + 6000)
        server.node.stop(Shutdown(), "test")
    assert (await receive(stream, 10_000)) == b"+PONG\r\n" * 1000
    assert await ended(blocked)
    with pytest.raises(OSError, match="all attempts to connect"):
        await server.client()


@pytest.mark.pure
async def test_a_client_that_quits_but_never_reads_does_not_linger(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "LINGER_S", 0)
    server = await live(nursery)
    stream = await server.client()
    request = b"*2\r\n$4\r\nPING\r\n$900000\r\n%b\r\n" % (b"x" * 900_000)

    await stream.send_all(request + b"QUIT\r\n")
    await until(lambda: bool(server.node.state.clients))

    await until(lambda: not server.node.state.clients)


# Waiting for more.


def ask_in_turn(port: int, times: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as sock:
        for _ in range(times):
            sock.sendall(b"PING\r\n")
            assert sock.recv(7) == b"+PONG\r\n"


@pytest.mark.parametrize("multiplexing", ["epoll", "kqueue"], indirect=True)
async def test_a_hub_that_is_alone_seldom_naps_while_a_client_asks_in_turn(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    naps: list[object] = []
    wait_readable = trio.lowlevel.wait_readable

    async def nap(sock: int | socket.socket) -> None:
        naps.append(sock)
        await wait_readable(sock)

    monkeypatch.setattr(trio.lowlevel, "wait_readable", nap)
    # Long enough for a machine that is busy with other work.
    node = await live(nursery, linger_s=0.1)
    await trio.to_thread.run_sync(ask_in_turn, node.port, 200)

    assert len(naps) < 50


async def test_a_hub_that_waits_for_more_keeps_its_appointments(nursery: trio.Nursery) -> None:
    node = await live(nursery, linger_s=event_loop.LINGER_S)
    stream = await node.client()
    await trio.to_thread.run_sync(ask_in_turn, node.port, 20)

    await stream.send_all(b"GETJOB TIMEOUT 20 FROM q\r\n")

    await expect(stream, b"*-1\r\n")


async def test_a_client_in_the_process_needs_no_port(nursery: trio.Nursery) -> None:
    node = await live(nursery, Config(requirepass=b"sesame", maxclients=1))
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(node.event_loop.connect_inside()))
    await nursery.start(closed_at_the_end, stream)

    await stream.send_all(b"PING\r\nAUTH sesame\r\nCLIENT LIST\r\n")
    await expect(stream, b"-NOAUTH Authentication required.\r\n+OK\r\n$")
    assert b"addr=unix:inside" in await receive(stream, 100)

    with node.event_loop.connect_inside() as refused:
        assert refused.recv(100) == b"-ERR max number of clients reached\r\n"
    node.event_loop.stop_listening()
    with pytest.raises(ConnectionRefusedError):
        node.event_loop.connect_inside()
