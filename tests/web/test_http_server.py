"""What comes over a connection ends that connection at most."""

import contextlib
import gc
import json
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import pytest
import trio
import trio.testing

from disque_trio.web import http_server
from disque_trio.web.http_server import Connection
from disque_trio.web.messages import Expected, Request, Response
from tests.web.asking import Answer, everything, taken_apart, web

GET = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def echo(request: Request) -> Response:
    await trio.lowlevel.checkpoint()
    return Response(200, request.path.encode() + request.body)


async def talk(
    nursery: trio.Nursery, answer: Callable[[Request], Awaitable[Response]] = echo
) -> tuple[trio.abc.Stream, trio.Event]:
    """The browser's end of a connection, and when the node's has ended."""
    ours, theirs = trio.testing.memory_stream_pair()
    ended = trio.Event()

    async def serve() -> None:
        with contextlib.suppress(trio.TooSlowError):
            await Connection(theirs, "127.0.0.1", answer).run()
        await theirs.aclose()
        ended.set()

    nursery.start_soon(serve)
    return ours, ended


async def test_requests_are_answered_one_after_the_other(nursery: trio.Nursery) -> None:
    stream, ended = await talk(nursery)

    await stream.send_all(b"".join(GET.replace(b"livez", b"%d" % n) for n in range(3)))
    await stream.send_all(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    data = await everything(stream)

    assert [part[-2:] for part in data.split(b"HTTP/1.1 200")[1:]] == [b"/0", b"/1", b"/2", b"ez"]
    await stream.aclose()
    await ended.wait()


async def test_a_status_has_its_words(nursery: trio.Nursery) -> None:
    stream, _ = await talk(nursery)

    await stream.send_all(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))

    assert (await everything(stream)).startswith(b"HTTP/1.1 200 OK\r\n")


async def test_head_has_the_length_and_no_body(nursery: trio.Nursery) -> None:
    stream, _ = await talk(nursery)

    await stream.send_all(b"HEAD /abc HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    answer = taken_apart(await everything(stream))

    assert (answer.status, answer.headers["content-length"], answer.body) == (200, "4", b"")


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"HEAD / HTTP/1.1\r\nHost: a\r\nCookie: a\r\nCookie: b\r\n\r\n", 400),
        (b"HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 1025\r\n\r\n" + b"x" * 1025, 413),
        (b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/x\r\n\r\n", 200),
    ],
)
async def test_head_that_is_refused_has_no_body_either(
    nursery: trio.Nursery, head: bytes, status: int
) -> None:
    stream, ended = await talk(nursery)

    await stream.send_all(head)
    first, _, rest = (await everything(stream)).partition(b"\r\n\r\n")
    await stream.aclose()
    await ended.wait()

    assert taken_apart(first).status == status
    assert first.count(b"Content-Length: 0") == 0
    if status == 200:  # the next one is malformed, and no HEAD
        problem(taken_apart(rest), 400)
    else:
        assert rest == b""


async def test_an_answer_has_its_date(nursery: trio.Nursery) -> None:
    stream, _ = await talk(nursery)

    await stream.send_all(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    date = parsedate_to_datetime(taken_apart(await everything(stream)).headers["date"])

    assert abs((date - datetime.now(UTC)).total_seconds()) < 60


@pytest.mark.parametrize("scheme", ["http", "HTTPS"])
@pytest.mark.parametrize("path", ["/a?b", "/", "?b", ""])
async def test_a_target_may_have_a_host_which_replaces_the_header(
    nursery: trio.Nursery, scheme: str, path: str
) -> None:
    async def tell(request: Request) -> Response:
        await trio.lowlevel.checkpoint()
        return Response(200, b"%b %b" % (request.headers[b"host"], request.path.encode()))

    stream, _ = await talk(nursery, tell)
    await stream.send_all(f"GET {scheme}://here:1{path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    await stream.send_all(GET[:-2] + b"Connection: close\r\n\r\n")
    data = await everything(stream)

    assert b"here:1 /" + path.partition("?")[0].encode().strip(b"/") in data


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET / HTTP/x\r\nHost: a\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: \x7f\0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (
            b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
        ),
        (b"\0\1\2\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        (b"GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET livez HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /livez#a HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", 501),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nOrigin: a\r\norigin: a\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * http_server.MOST_BYTES, 431),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1025\r\n\r\n" + b"x" * 1025, 413),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    ],
)
async def test_a_bad_request_is_answered_and_the_connection_ends(
    nursery: trio.Nursery, data: bytes, status: int
) -> None:
    stream, ended = await talk(nursery)

    await stream.send_all(data)
    answer = taken_apart(await everything(stream))
    await stream.aclose()
    await ended.wait()

    problem(answer, status)


def problem(answer: Answer, status: int) -> None:
    """It is one of this status, after which the connection ends, with nothing that is Python."""
    assert answer.status == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["connection"] == "close"
    told = json.loads(answer.body)
    assert told["status"] == status
    assert told["detail"]
    assert told["advice"]
    assert "b'" not in answer.body.decode()


@pytest.mark.parametrize(
    ("begin", "waits"),
    [(b"", http_server.HEAD_S), (GET, http_server.IDLE_S)],
)
async def test_nobody_is_waited_for_without_a_limit(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, begin: bytes, waits: float
) -> None:
    stream, ended = await talk(nursery)
    if begin:
        await stream.send_all(begin)
    began = trio.current_time()

    await ended.wait()

    assert trio.current_time() - began == pytest.approx(waits, abs=0.1)


@pytest.mark.parametrize(
    "data",
    [
        GET[:9],
        GET[:-2],
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcd",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na",
    ],
)
async def test_a_request_that_stalls_is_told_so(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, data: bytes
) -> None:
    stream, ended = await talk(nursery)
    began = trio.current_time()

    await stream.send_all(data)
    await ended.wait()

    assert trio.current_time() - began <= http_server.HEAD_S + http_server.LINGER_S
    problem(taken_apart(await everything(stream)), 408)


async def test_a_request_that_waits_is_answered_when_the_node_stops(
    nursery: trio.Nursery,
) -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    begun = trio.Event()

    async def wait(_: Request) -> Response:
        begun.set()
        await trio.sleep_forever()
        raise AssertionError

    async def begin(_: Request) -> Expected:
        await trio.lowlevel.checkpoint()
        return Expected(0, wait, waits=True)

    async def stop() -> None:
        await ours.send_all(GET)
        await begun.wait()
        scope.cancel()

    nursery.start_soon(stop)
    with trio.CancelScope() as scope:
        await Connection(theirs, "127.0.0.1", wait, begin).run()
    await theirs.aclose()

    assert scope.cancelled_caught
    problem(taken_apart(await everything(ours)), 503)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "data",
    [
        GET.replace(b"\r\n\r\n", b"\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n"),
        GET[:9],
    ],
)
async def test_a_connection_that_was_refused_is_forgotten(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, data: bytes
) -> None:
    def connections() -> int:
        gc.collect()
        # isinstance() would ask for __class__, at which lazy objects of other libraries work.
        return sum(type(each) is Connection for each in gc.get_objects())

    before = connections()
    for _ in range(3):
        stream, ended = await talk(nursery)
        await stream.send_all(data)
        assert b"application/problem+json" in await everything(stream)
        await ended.wait()
        await stream.aclose()
    await trio.lowlevel.checkpoint()

    assert connections() == before


async def test_a_request_that_drips_has_no_more_time_than_others(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    stream, ended = await talk(nursery)
    await stream.send_all(GET)

    with trio.move_on_after(100), pytest.raises(trio.BrokenResourceError):  # noqa: PT012
        while True:
            await stream.send_all(b"G")
            await trio.sleep(1)

    assert trio.current_time() < http_server.IDLE_S
    await ended.wait()


async def test_who_does_not_read_is_left_alone(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    stuck = trio.testing.memory_stream_pair()[1]

    async def never() -> None:
        await trio.sleep_forever()

    stuck.send_stream.send_all_hook = never
    ended = trio.Event()

    async def serve() -> None:
        with pytest.raises(trio.TooSlowError):
            await connection.run()
        ended.set()

    connection = Connection(stuck, "127.0.0.1", echo)
    connection.http.receive_data(GET)
    nursery.start_soon(serve)
    await ended.wait()

    assert trio.current_time() >= http_server.SEND_S


async def test_a_large_response_is_copied_a_piece_at_a_time(nursery: trio.Nursery) -> None:
    body = random.Random(1).randbytes(5 * http_server.PIECE + 1)
    ours, theirs = trio.testing.memory_stream_pair()
    sent: list[int] = []

    class Stream(trio.abc.Stream):
        send_eof = aclose = theirs.aclose
        wait_send_all_might_not_block = theirs.wait_send_all_might_not_block
        receive_some = staticmethod(theirs.receive_some)

        async def send_all(self, data: bytes | bytearray | memoryview) -> None:
            sent.append(len(data))
            await theirs.send_all(data)

    async def answer(_: Request) -> Response:
        return Response(200, body)

    nursery.start_soon(Connection(Stream(), "127.0.0.1", answer).run)
    await ours.send_all(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    data = await everything(ours)

    assert data.endswith(b"\r\n\r\n" + body)
    assert max(sent) < 2 * http_server.PIECE


async def test_one_address_has_so_many_connections_and_no_more(nursery: trio.Nursery) -> None:
    node = await web(nursery)
    held = [await node.open() for _ in range(http_server.MOST_OF_ONE)]
    for stream in held:
        await stream.send_all(GET)
        await stream.receive_some()

    refused = await node.ask("/metrics")
    problem(refused, 503)

    await held[0].aclose()
    with trio.fail_after(30):
        while (await node.ask("/metrics")).status != 200:
            await trio.sleep(0.01)
    for stream in held:
        await stream.aclose()


async def test_a_probe_is_answered_however_many_connections_rest(nursery: trio.Nursery) -> None:
    node = await web(nursery)
    held = [await node.open() for _ in range(http_server.MOST_OF_ONE + 3 * http_server.SPARE)]

    for path in ("/livez", "/readyz", "/livez"):
        assert (await node.ask(path)).status == 200
    for stream in held:
        await stream.aclose()


@pytest.mark.parametrize(
    "data",
    [
        b"PING\r\n",
        b"*1\r\n$4\r\nPING\r\n",
        b"ADDJOB q body 0\r\n",
        b"DbuZ\0\0\x09\0" + bytes(40),
        bytes.fromhex("16030100f1010000ed0303"),
        b"POST\r\n",
    ],
)
async def test_another_protocol_ends_the_connection_at_once(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, data: bytes
) -> None:
    stream, ended = await talk(nursery)
    began = trio.current_time()

    await stream.send_all(data)
    answer = taken_apart(await everything(stream))
    await stream.aclose()
    await ended.wait()

    assert answer.status == 400
    assert trio.current_time() - began < http_server.HEAD_S


async def test_noise_ends_no_node(nursery: trio.Nursery) -> None:
    node = await web(nursery)
    rng = random.Random(7)
    heads = [b"", GET[:16], GET[:-2], b"POST /login HTTP/1.1\r\nHost: localhost\r\n"]
    for number in range(60):
        noise = rng.randbytes(rng.randrange(1, 400))
        with trio.move_on_after(0.05):
            await node.send(heads[number % len(heads)] + noise + b"\r\n\r\n")

    assert (await node.ask("/livez")).body == b"ok\n"
    stream = await node.live.client()
    await stream.send_all(b"PING\r\n")
    assert await stream.receive_some() == b"+PONG\r\n"
    assert not [line for line in node.live.log.lines if "bug" in str(line)]


async def test_an_error_of_ours_ends_the_connection_and_is_told(nursery: trio.Nursery) -> None:
    told: list[tuple[str, str]] = []

    async def fail(_request: Request) -> Response:
        await trio.lowlevel.checkpoint()
        raise ZeroDivisionError("by zero")

    found = http_server.HttpServer([], fail, lambda event, ip: told.append((event, ip)))
    listener = (await trio.open_tcp_listeners(0, host="127.0.0.1"))[0]
    nursery.start_soon(trio.serve_listeners, found._attend, [listener])
    async with await trio.testing.open_stream_to_socket_listener(listener) as stream:
        await stream.send_all(GET)
        assert await everything(stream) == b""

    assert told == [
        ("web request failed: this is a bug: ZeroDivisionError('by zero')", "127.0.0.1")
    ]
