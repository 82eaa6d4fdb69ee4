"""Clients that speak another protocol than Redis's, and whose requests are not carried out.

A web page can make a browser send requests to any port. A browser sends a line such as
``POST / HTTP/1.1`` and headers before what the page may choose, so a connection that begins a
request like that ends there. The same holds for other protocols in which text of a stranger may
follow words of a trusted program: mail, memcached, the line that a load balancer adds.
"""

import re
from typing import Final

HTTP: Final = "http"
PROXY: Final = "proxy-protocol"
"""What a load balancer sends before the bytes of a client, if it is told to."""
OTHER: Final = "other-protocol"

_WORDS: Final = {
    **dict.fromkeys(
        (b"POST", b"PUT", b"HEAD", b"DELETE", b"OPTIONS", b"PATCH", b"CONNECT", b"PRI"), HTTP
    ),
    b"PROXY": PROXY,
    **dict.fromkeys((b"EHLO", b"HELO", b"LHLO", b"RCPT"), OTHER),
}
"""Words that no client of Redis sends. GET is one of its commands, and so are COPY and MOVE; such
methods are recognized by the version in the third word, and all by the headers that follow."""
_LINE: Final = 3
"""Words of the first line of HTTP: method, target, version."""
_NO_NAME: Final = re.compile(rb"[^ -~\t-\r]|\ASSH-")
"""In the name of no command: TLS, binary protocols, the first line of SSH."""
_STORES: Final = frozenset((b"set", b"add", b"replace", b"append", b"prepend", b"cas"))
"""Requests of memcached that a value follows, on a line of its own."""
_SIZES: Final = slice(2, 5)
"""In those, three numbers: flags, seconds, bytes."""


def protocol_of(args: list[bytes]) -> str:
    """Which other protocol this request, which is no known command, belongs to; empty if none."""
    name = args[0]
    if found := _WORDS.get(name.upper(), ""):
        return found
    if b":" in name or args[1:2] == [b":"]:
        return HTTP
    if len(args) == _LINE and args[2][:5].upper() == b"HTTP/":
        return HTTP
    if _NO_NAME.search(name):
        return OTHER
    sizes = args[_SIZES]
    is_stored = len(args) in (5, 6, 7) and all(each.isdigit() for each in sizes)
    return OTHER if is_stored and name.lower() in _STORES else ""
