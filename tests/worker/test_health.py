"""HTTP about a worker."""

import json
from typing import Any

import anyio
import attrs
import pytest

from disque_trio.worker import health
from disque_trio.worker.driver import Worker
from disque_trio.worker.health import answer, pages, serve
from disque_trio.worker.reporting import Report
from disque_trio.worker.times import RunTimes
from tests.worker.played import PlayedNode
from tests.worker.playing import KINDS, play


async def ask(port: int, request: bytes) -> bytes:
    """All that comes."""
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(request)
        said = b""
        try:
            while True:
                said += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return said


async def listening() -> Any:
    return await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)


def port_of(listener: Any) -> int:
    port: int = listener.extra(anyio.abc.SocketAttribute.local_port)
    return port


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_answers_while_it_works(kind: str) -> None:
    node = PlayedNode()

    async def story(worker: Worker) -> None:
        await node.is_told(b"GETJOB")
        listener = await listening()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve, listener, pages(worker.report, worker.times))
            said = await ask(port_of(listener), b"GET /health?x HTTP/1.1\r\nHost: x\r\n\r\n")
            tasks.cancel_scope.cancel()
        head, _, body = said.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert json.loads(body)["state"] == "running"
        assert json.loads(body)["name"] == "ada"
        worker.stop()

    play(kind, story, node, name="ada")


def report(*, healthy: bool) -> Report:
    values = {each.name: 0 for each in attrs.fields(Report)}
    return Report(**{**values, "healthy": healthy, "jobs": [], "tasks": []})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"GET /health HTTP/1.1", b"503 Service Unavailable"),
        (b"GET http://x:1/live?y HTTP/1.1", b"200 OK"),
        (b"GET HTTP://x HTTP/1.1", b"503 Service Unavailable"),
        (b"GET / HTTP/1.0", b"503 Service Unavailable"),
        (b"GET /live HTTP/1.1", b"200 OK"),
        (b"GET /etc/passwd HTTP/1.1", b"404 Not Found"),
        (b"POST /health HTTP/1.1", b"405 Method Not Allowed"),
        (b"GETJOB FROM mail", b"400 Bad Request"),
        (b"", b"400 Bad Request"),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1", b"400 Bad Request"),
    ],
)
def test_a_status_for_each_request(request_line: bytes, status: bytes) -> None:
    known = pages(lambda: report(healthy=False), RunTimes(lambda: 0.0))

    said = answer(known, request_line + b"\r\nHost: x\r\n\r\n")

    assert said.split(b"\r\n")[0] == b"HTTP/1.1 " + status
    head, _, body = said.partition(b"\r\n\r\n")
    assert b"Content-Length: %d" % len(body) in head


@pytest.mark.parametrize(("path", "status"), [(b"/health", b"200 OK"), (b"/x", b"404 Not Found")])
def test_a_head_request_gets_no_body(path: bytes, status: bytes) -> None:
    known = pages(lambda: report(healthy=True), RunTimes(lambda: 0.0))

    said = answer(known, b"HEAD " + path + b" HTTP/1.1\r\n\r\n")

    assert said.startswith(b"HTTP/1.1 " + status + b"\r\n")
    assert said.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("kind", KINDS)
def test_who_says_nothing_is_hung_up_on_and_others_are_answered(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "PATIENCE_S", 0.05)

    async def told() -> None:
        listener = await listening()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(
                serve, listener, pages(lambda: report(healthy=True), RunTimes(lambda: 0.0))
            )
            assert await ask(port_of(listener), b"GET /live HTT") == b""
            said = await ask(port_of(listener), b"GET /live HTTP/1.1\r\n\r\n")
            assert said.endswith(b'{"live":true}')
            tasks.cancel_scope.cancel()

    anyio.run(told, backend=kind)
