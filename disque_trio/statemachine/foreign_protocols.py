"""Detection of clients that use another protocol than that of Redis.

A web page can make a browser send requests to any port. The browser sends a line such as ``POST /
HTTP/1.1`` and headers before text that the page can choose, so the node disconnects at such a line.
The same applies to other protocols in which untrusted text may follow words of a trusted program:
mail, memcached, the line that a load balancer adds.
"""

import re
from typing import Final

HTTP: Final = "http"
PROXY: Final = "proxy-protocol"
"""The header that a load balancer may be configured to send before the bytes of a client."""
OTHER: Final = "other-protocol"

_WORDS: Final = {
    **dict.fromkeys(
        (b"POST", b"PUT", b"HEAD", b"DELETE", b"OPTIONS", b"PATCH", b"CONNECT", b"PRI"), HTTP
    ),
    b"PROXY": PROXY,
    **dict.fromkeys((b"EHLO", b"HELO", b"LHLO", b"RCPT"), OTHER),
}
"""Words that no Redis client sends. GET, COPY and MOVE are also commands of Redis: such requests
are recognized by the version in the third word, and any HTTP request by its headers."""
_LINE: Final = 3
"""The number of words in the first line of HTTP: method, target, version."""
_NO_NAME: Final = re.compile(rb"[^ -~\t-\r]|\ASSH-")
"""Matches no name of a command, but TLS, binary protocols and the first line of SSH."""
_STORES: Final = frozenset((b"set", b"add", b"replace", b"append", b"prepend", b"cas"))
"""Requests of memcached that are followed by a value on a line of its own."""
_SIZES: Final = slice(2, 5)
"""The position of the three numbers in these: flags, seconds, bytes."""


def protocol_of(args: list[bytes]) -> str:
    """The other protocol to which a request with an unknown name belongs; empty if none."""
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
