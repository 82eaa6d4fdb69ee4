"""Clients that speak HTTP: a web page can make a browser send requests to any port.

A browser sends a line such as ``POST / HTTP/1.1`` and headers before what the page may choose, so a
connection that begins a request like that ends there, and nothing of the rest is carried out.
"""

from collections.abc import Sequence
from typing import Final

_METHODS: Final = frozenset(
    (b"POST", b"PUT", b"HEAD", b"DELETE", b"OPTIONS", b"PATCH", b"CONNECT", b"PRI")
)
"""Words that no client of Redis sends. GET is one of its commands, and so are COPY and MOVE; such
methods are recognized by the version in the third word, and all by the headers that follow."""
_LINE: Final = 3
"""Words of the first line of HTTP: method, target, version."""


def speaks_http(args: Sequence[bytes]) -> bool:
    """Is this request, which is no known command, a request line or a header of HTTP?"""
    name = args[0]
    if name.upper() in _METHODS or b":" in name:
        return True
    return len(args) == _LINE and args[2][:5].upper() == b"HTTP/"
