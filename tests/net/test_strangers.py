"""Other protocols at the client port and at the bus port, on real sockets."""

import contextlib

import pytest
import trio

from disque_trio.statemachine.config import Config
from tests.net.live import ended, expect, live
from tests.node.world import until
from tests.web.asking import everything

BODY = b"ADDJOB mails from-a-page 0\r\nCONFIG SET protected-mode no\r\nSHUTDOWN\r\n"
HEADERS = b"Host: evil.example:7711\r\nContent-Length: %d\r\n\r\n" % len(BODY)
TLS_HELLO = bytes.fromhex("16030100f1010000ed0303") + bytes(range(64)) + BODY
BUS_FRAME = b"DbuZ\0\0\x09\0" + b"\0" * 16 + b"\n" + BODY
OTHERS = {
    "http": b"POST / HTTP/1.1\r\n" + HEADERS + BODY,
    "lower case": b"post / http/1.1\n" + HEADERS + BODY,
    "a header first": HEADERS + BODY,
    "get": b"GET / HTTP/1.1\r\n" + HEADERS + BODY,
    "put": b"PUT /a HTTP/1.1\r\n" + HEADERS + BODY,
    "http2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + BODY,
    "as an array": b"*3\r\n$4\r\nPOST\r\n$1\r\n/\r\n$8\r\nHTTP/1.1\r\n" + BODY,
    "a header as an array": b"*1\r\n$5\r\nHost:\r\n" + BODY,
    "tls": TLS_HELLO,
    "PROXY protocol": b"PROXY TCP4 192.0.2.1 192.0.2.2 5555 7711\r\n" + BODY,
    "PROXY protocol 2": b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes(12) + BODY,
    "mail": b"EHLO example.com\r\nDATA\r\n" + BODY,
    "memcached": b"set key 0 0 %d\r\n" % len(BODY) + BODY,
    "memcached, binary": b"\x80\x01\0\x05" + bytes(20) + BODY,
    "bus of Redis": b"RCmb\0\0\x09\0\n" + BODY,
    "byte order mark": b"\xef\xbb\xbfPOST / HTTP/1.1\r\n" + HEADERS + BODY,
    "bus": BUS_FRAME,
}


@pytest.mark.parametrize("password", [b"", b"a password"])
@pytest.mark.parametrize("data", OTHERS.values(), ids=OTHERS)
async def test_another_protocol_at_the_client_port_ends_the_connection_and_does_nothing(
    nursery: trio.Nursery, data: bytes, password: bytes
) -> None:
    server = await live(nursery, Config(requirepass=password))
    stream = await server.client()
    if password:
        await stream.send_all(b"AUTH 'a password'\r\n")
        await expect(stream, b"+OK\r\n")

    await stream.send_all(data)

    assert b"D-" not in await everything(stream)
    state = server.node.state
    assert not state.jobs
    assert state.config.protected_mode
    assert server.node.life.shutdown is None
    told = [line for line in server.log.lines if line[0] == "warning"]
    assert len(told) == 1


async def test_a_request_line_in_single_bytes_ends_it_too(nursery: trio.Nursery) -> None:
    server = await live(nursery)
    stream = await server.client()

    with contextlib.suppress(trio.BrokenResourceError):
        for byte in OTHERS["http"]:
            await stream.send_all(bytes([byte]))
            await trio.sleep(0)

    assert await everything(stream) == b""
    assert not server.node.state.jobs


async def test_what_came_before_a_word_of_http_is_answered(nursery: trio.Nursery) -> None:
    server = await live(nursery)
    stream = await server.client()

    await stream.send_all(b"PING\r\n" * 100 + OTHERS["http"])

    await expect(stream, b"+PONG\r\n" * 100)
    assert await ended(stream)
    assert not server.node.state.jobs


async def test_the_log_has_one_line_however_often_a_page_tries(nursery: trio.Nursery) -> None:
    server = await live(nursery)
    for _ in range(5):
        stream = await server.client()
        await stream.send_all(OTHERS["http"])
        assert await ended(stream)

    [line] = [line for line in server.log.lines if line[0] == "warning"]
    assert line[1].startswith("possible attack: HTTP at the client port")
    assert line[2]["word"] == "POST"
    assert server.node.state.stats.connections_rejected == {"http": 5}


@pytest.mark.parametrize(
    "data", [OTHERS["http"], TLS_HELLO, b"PING\r\n", b"*1\r\n$4\r\nPING\r\n", OTHERS["http2"]]
)
async def test_another_protocol_at_the_bus_port_ends_the_link_at_once(
    nursery: trio.Nursery, data: bytes
) -> None:
    server = await live(nursery)
    stream = await server.peer()

    await stream.send_all(data)

    with trio.fail_after(5):
        assert await ended(stream)
    await until(lambda: not server.node.state.cluster.links)
    assert "bus link closed: invalid frame" in server.log.events()
