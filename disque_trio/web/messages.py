"""Requests and responses of HTTP, independent of their encoding."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import attrs

Header = tuple[bytes, bytes]
PROBES: Final = ("/livez", "/readyz")
"""Paths that are served also when there are too many connections."""
WHOLE: Final = "*"
"""The target of OPTIONS for the server as a whole."""
TEXT: Final = b"text/plain; charset=utf-8"
HTML: Final = b"text/html; charset=utf-8"
JSON: Final = b"application/json"


@attrs.frozen
class Request:
    """One request of a browser or a program."""

    method: bytes
    path: str
    """Without the query."""
    ip: str
    """The address of the other side."""
    headers: dict[bytes, bytes] = attrs.Factory(dict)
    """By name in lower case; of repeated headers the last one."""
    body: bytes = b""
    query: str = ""
    """The text after `?`, undecoded."""


@attrs.frozen
class Response:
    """A response. `http_server` adds its length and the headers of every response."""

    status: int
    body: bytes = b""
    kind: bytes = TEXT
    """The content type."""
    headers: tuple[Header, ...] = ()
    session: Callable[[Any], Awaitable[None]] | None = None
    """With status 101: the session over the WebSocket. `body` is then its handshake (`upgrade`)."""
    undelivered: Callable[[], Awaitable[None]] | None = None
    """Called if the response cannot be sent, or the other side has closed the connection before."""


@attrs.frozen
class Expected:
    """The head of a request was accepted; its answer needs the body."""

    most: int
    """The maximum size of the body."""
    answer: Callable[[Request], Awaitable[Response]]
    waits: bool = False
    """May the answer take long? If so, the connection is not counted meanwhile, and the answer is
    cancelled when the other side closes the connection."""


def refusal(status: int, text: str, *headers: Header) -> Response:
    """Return an error in plain text."""
    return Response(status, text.encode() + b"\n", headers=headers)
