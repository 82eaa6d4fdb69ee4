"""Clients that are still sending while the node ends their connection."""

import socket
from typing import NoReturn

import pytest
import trio

from disque_trio.net import lingering
from disque_trio.net.multiplexing import IN
from disque_trio.net.pollers import open_poller
from disque_trio.net.readiness import Readiness
from disque_trio.statemachine.config import Config
from disque_trio.wire.requests import RequestParser
from tests.net.live import Live, ended, expect, live

TOO_LONG = b"-ERR Protocol error: too big inline request\r\n"
FULL = b"-ERR max number of clients reached\r\n"
OUT_OF_MEMORY = b"-OOM the process has not enough memory for this request\r\n"
MUCH = b"x" * (4 << 20)


def what_is_told(port: int) -> bytes:
    """To a client that reads nothing before it has sent all."""
    with socket.create_connection(("127.0.0.1", port), 30) as sock:
        sock.sendall(MUCH)
        told = b""
        while more := sock.recv(1000):
            told += more
        return told


async def is_told(server: Live, why: bytes) -> bool:
    return await trio.to_thread.run_sync(what_is_told, server.port) == why


async def send_without_end(stream: trio.SocketStream) -> NoReturn:
    while True:
        await stream.send_all(b"x")
        await trio.sleep(0.05)


@pytest.mark.usefixtures("multiplexing")
@pytest.mark.parametrize(("most", "why"), [(100, TOO_LONG), (0, FULL)])
async def test_a_client_that_has_sent_all_reads_why_it_is_refused(
    nursery: trio.Nursery, most: int, why: bytes
) -> None:
    assert await is_told(await live(nursery, Config(maxclients=most)), why)


@pytest.mark.pure
async def test_so_does_one_for_whose_request_there_is_no_memory(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    def feed(_parser: RequestParser, _data: bytes) -> None:
        raise MemoryError

    server = await live(nursery)
    monkeypatch.setattr(RequestParser, "feed", feed)

    assert await is_told(server, OUT_OF_MEMORY)


@pytest.mark.pure
async def test_a_client_that_keeps_its_side_open_is_closed_in_the_end(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lingering, "LINGER_S", 0)
    stream = await (await live(nursery)).client()

    await stream.send_all(b"QUIT\r\n")
    await expect(stream, b"+OK\r\n")
    assert await ended(stream)

    with trio.fail_after(30), pytest.raises(trio.BrokenResourceError):
        await send_without_end(stream)


def test_the_oldest_are_closed_when_too_many_come_in_one_turn() -> None:
    readiness = Readiness(open_poller("epoll"))
    lingers = lingering.Lingering(readiness)
    pairs = [socket.socketpair() for _ in range(lingering.MOST + 20)]
    for ours, theirs in pairs:
        ours.setblocking(False)
        theirs.settimeout(30)
        lingers.close(ours)
    readiness.close_ended()

    told = [theirs for _, theirs in pairs]
    for sock in told[:20]:
        with pytest.raises(BrokenPipeError):
            sock.send(b"x")
    assert told[20].send(b"x") == 1
    for sock in told:
        assert sock.recv(1) == b""
        sock.close()
    for fd, mask in readiness.poll():
        assert mask & IN
        readiness.handlers[fd](mask)
    readiness.close_ended()
    assert not lingers._channels
    readiness.close()
