"""Requests and responses, without their bytes."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import attrs

Header = tuple[bytes, bytes]
PROBES: Final = ("/livez", "/readyz")
"""Paths that are answered also when there are too many connections."""
WHOLE: Final = "*"
"""The target of OPTIONS that asks for the server as a whole."""
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
    """The other side's address."""
    headers: dict[bytes, bytes] = attrs.Factory(dict)
    """By name, in lower case; of a header that comes twice the last one."""
    body: bytes = b""
    query: str = ""
    """Behind the `?`, as it was sent."""


@attrs.frozen
class Response:
    """What is answered. The door adds the length and what each response has."""

    status: int
    body: bytes = b""
    kind: bytes = TEXT
    """The content type."""
    headers: tuple[Header, ...] = ()
    session: Callable[[Any], Awaitable[None]] | None = None
    """With status 101: what goes on over the WebSocket. `body` is its handshake (`upgrade`)."""
    undelivered: Callable[[], Awaitable[None]] | None = None
    """Run if it cannot be sent, or the other side has hung up before."""


@attrs.frozen
class Expected:
    """A head that will do: its answer waits for the body."""

    most: int
    """Bytes that the body may have."""
    answer: Callable[[Request], Awaitable[Response]]
    waits: bool = False
    """May the answer take long? Then the connection counts apart, and the answer is cancelled when
    the other side hangs up."""


def refusal(status: int, text: str, *headers: Header) -> Response:
    """An error, for people."""
    return Response(status, text.encode() + b"\n", headers=headers)
