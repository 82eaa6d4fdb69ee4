"""Answers HTTP requests about the state of a worker, in its event loop: `--health`
(docs/worker-process.md)."""

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Final

import anyio
from anyio.abc import ByteStream, Listener

from disque_trio.worker.codec import write
from disque_trio.worker.reporting import Report
from disque_trio.worker.times import RunTimes, exposition

PATIENCE_S: Final = 5.0
"""How long a request and its response may take together."""
LONGEST: Final = 8192
"""The maximum size of a request, in bytes."""
_PAUSE_S: Final = 1.0
_HOST: Final = re.compile(rb"(?i)\Ahttps?://[^/?]*")
"""A request target may begin with a host (RFC 9112, 3.2.2)."""
_BROKEN: Final = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)
_log: Final = logging.getLogger("disque_trio.worker")

JSON: Final = "application/json"
METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"
Page = Callable[[], tuple[HTTPStatus, bytes, str]]
"""Returns the status, a body, and its content type."""


def pages(report: Callable[[], Report], times: RunTimes) -> dict[str, Page]:
    """`/health` reports whether the worker is healthy, and its state. `/live` reports that its
    event loop runs. `/metrics` has the run times of tasks and the counts of the report."""

    def health() -> tuple[HTTPStatus, bytes, str]:
        current = report()
        status = HTTPStatus.OK if current.healthy else HTTPStatus.SERVICE_UNAVAILABLE
        return status, write(current, "json"), JSON

    def metrics() -> tuple[HTTPStatus, bytes, str]:
        text = exposition(times) + "".join(_counted(report()))
        return HTTPStatus.OK, text.encode(), METRICS

    def live() -> tuple[HTTPStatus, bytes, str]:
        return HTTPStatus.OK, b'{"live":true}', JSON

    return {"/": health, "/health": health, "/live": live, "/metrics": metrics}


_METRICS: Final = (
    ("disque_worker_jobs_ended_total", "counter", "ended", "Jobs that have ended."),
    ("disque_worker_jobs_running", "gauge", "busy", "Jobs that run."),
    ("disque_worker_slots", "gauge", "slots", "How many jobs it runs at the same time at most."),
    ("disque_worker_jobs_stuck", "gauge", "stuck", "Cancelled jobs that do not end."),
    ("disque_worker_loop_lag_seconds", "gauge", "lag_s", "How late its event loop was."),
    ("disque_worker_resident_bytes", "gauge", "rss_bytes", "Resident memory."),
    ("disque_worker_healthy", "gauge", "healthy", "Is it healthy?"),
)


def _counted(report: Report) -> Iterator[str]:
    for name, kind, field, about in _METRICS:
        value = getattr(report, field)
        yield f"# HELP {name} {about}\n# TYPE {name} {kind}\n{name} {float(value):g}\n"


async def serve(listener: Listener[ByteStream], known: Mapping[str, Page]) -> None:
    """Answer requests until cancelled. Errors of a connection do not end the worker."""
    async with listener:
        while True:
            try:
                await listener.serve(partial(_converse, known))
            except OSError as error:  # no more descriptors, for example
                _log.warning("the health port does not answer: %s", error)
                await anyio.sleep(_PAUSE_S)


async def _converse(known: Mapping[str, Page], stream: ByteStream) -> None:
    with suppress(*_BROKEN), anyio.move_on_after(PATIENCE_S):
        async with stream:
            await stream.send(answer(known, await _head(stream)))


async def _head(stream: ByteStream) -> bytes:
    """The head of a request, including the empty line at its end."""
    data = b""
    while b"\r\n\r\n" not in data and len(data) <= LONGEST:
        data += await stream.receive()
    return data


def answer(known: Mapping[str, Page], head: bytes) -> bytes:
    """The response to a request. The connection is closed after it."""
    return _reply(*_found(known, head), has_body=not head.startswith(b"HEAD "))


def _found(known: Mapping[str, Page], head: bytes) -> tuple[HTTPStatus, bytes, str]:
    words = head.split(b"\r\n", 1)[0].split(b" ")
    if len(head) > LONGEST or len(words) != 3 or not words[2].startswith(b"HTTP/1."):
        return HTTPStatus.BAD_REQUEST, b'{"error":"this is no request of HTTP 1"}', JSON
    method, target, _ = words
    path = _HOST.sub(b"", target).partition(b"?")[0] or b"/"
    page = known.get(path.decode("latin-1"))
    if method not in (b"GET", b"HEAD"):
        return HTTPStatus.METHOD_NOT_ALLOWED, b'{"error":"GET and HEAD only"}', JSON
    if page is None:
        body = write({"error": "no such page", "pages": [*known]}, "json")
        return HTTPStatus.NOT_FOUND, body, JSON
    return page()


def _reply(status: HTTPStatus, body: bytes, kind: str, *, has_body: bool) -> bytes:
    allow = "Allow: GET, HEAD\r\n" if status is HTTPStatus.METHOD_NOT_ALLOWED else ""
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n{allow}"
        f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (body if has_body else b"")
