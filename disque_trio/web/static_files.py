"""The files of the console's page, from the package: read once, with an ETag, packed if asked."""

import gzip
import hashlib
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

import attrs

from disque_trio.web.messages import HTML, Header, Request, Response

_KINDS: Final[Mapping[str, bytes]] = {
    "html": HTML,
    "js": b"text/javascript; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "svg": b"image/svg+xml",
}
_CACHE: Final[Header] = (b"Cache-Control", b"no-cache")
"""It may be kept, and is asked for again: an ETag saves the bytes."""


@attrs.frozen
class File:
    """One of them."""

    kind: bytes
    body: bytes
    packed: bytes
    tag: bytes

    def answer(self, request: Request) -> Response:
        """The file, or that the browser has it."""
        headers = ((b"ETag", self.tag), (b"Vary", b"Accept-Encoding"), _CACHE)
        if self.tag in [
            each.strip() for each in request.headers.get(b"if-none-match", b"").split(b",")
        ]:
            return Response(304, headers=headers)
        if b"gzip" in request.headers.get(b"accept-encoding", b""):
            packed = (b"Content-Encoding", b"gzip")
            return Response(200, self.packed, self.kind, (*headers, packed))
        return Response(200, self.body, self.kind, headers)


def load() -> dict[str, File]:
    """By name."""
    found = {}
    for each in files("disque_trio.web").joinpath("static").iterdir():
        kind = _KINDS.get(each.name.rpartition(".")[2])
        if kind is not None and each.is_file():
            body = each.read_bytes()
            tag = b'"%s"' % hashlib.sha256(body).hexdigest()[:16].encode()
            found[each.name] = File(kind, body, gzip.compress(body, mtime=0), tag)
    return found
