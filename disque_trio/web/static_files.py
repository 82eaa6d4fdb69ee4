"""The files of the console's page, from the package: read once, with an ETag, compressed on
request."""

import base64
import functools
import gzip
import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.resources import files
from typing import Any, Final

import attrs

from disque_trio.web.messages import HTML, TEXT, Header, Request, Response

_KINDS: Final[Mapping[str, bytes]] = {
    "html": HTML,
    "js": b"text/javascript; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "svg": b"image/svg+xml",
}
_CACHE: Final[Header] = (b"Cache-Control", b"no-cache")
"""Browsers may cache the file but must revalidate it; the ETag avoids a second transfer."""


@attrs.frozen
class File:
    """A file."""

    kind: bytes
    body: bytes
    more: tuple[Header, ...] = ()
    """Additional headers."""
    packed: bytes = attrs.field(init=False, repr=False)
    tag: bytes = attrs.field(init=False)

    @packed.default
    def _pack(self) -> bytes:
        return gzip.compress(self.body, mtime=0)

    @tag.default
    def _digest(self) -> bytes:
        return b'"%s"' % hashlib.sha256(self.body).hexdigest()[:16].encode()

    def answer(self, request: Request) -> Response:
        """Return the file, or 304 if the browser has it."""
        headers = ((b"ETag", self.tag), (b"Vary", b"Accept-Encoding"), _CACHE, *self.more)
        if self.tag in [
            each.strip() for each in request.headers.get(b"if-none-match", b"").split(b",")
        ]:
            return Response(304, headers=headers)
        if b"gzip" in request.headers.get(b"accept-encoding", b""):
            packed = (b"Content-Encoding", b"gzip")
            return Response(200, self.packed, self.kind, (*headers, packed))
        return Response(200, self.body, self.kind, headers)


_TIMELINE: Final = "timeline"
"""The folder of the timeline, which pictures of runs use as well."""


def load() -> dict[str, File]:
    """Return the files by name; those of the timeline as `timeline/NAME`."""
    folders = {
        "": files("disque_trio.web").joinpath("static"),
        f"{_TIMELINE}/": files("disque_trio.sim.picture").joinpath(_TIMELINE),
    }
    found = {}
    for prefix, folder in folders.items():
        for each in folder.iterdir():
            kind = _KINDS.get(each.name.rpartition(".")[2])
            if kind is not None and each.is_file():
                found[prefix + each.name] = File(kind, each.read_bytes())
    return found


@functools.cache
def frame() -> File:
    """Return the file of a job's picture without its data, which the page of the job inserts and
    saves.

    It is no page by itself, so it is plain text. The first call loads the simulator's modules,
    which a node does not need otherwise: call it in a thread.
    """
    page: Any = import_module("disque_trio.sim.picture.page")
    return File(TEXT, page.frame("The timeline of a job").encode())


def picture(page: bytes) -> File:
    """Return a page with inline scripts and styles. Its policy permits them by their digests."""
    script, style = (
        b" ".join(_sources(re.findall(rb"<%b>(.*?)</%b>" % (tag, tag), page, re.DOTALL)))
        for tag in (b"script", b"style")
    )
    policy = b"default-src 'none'; script-src %b; style-src %b; %b" % (script, style, _REST)
    return File(HTML, page, ((b"Content-Security-Policy", policy),))


_REST: Final = b"img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def _sources(texts: Sequence[bytes]) -> list[bytes]:
    digests = [base64.b64encode(hashlib.sha256(text).digest()) for text in texts]
    return [b"'sha256-%b'" % digest for digest in digests] or [b"'none'"]
