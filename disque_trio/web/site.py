"""What the web port answers: health, metrics, and a page to log in."""

import html
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import trio

from disque_trio.node import Node
from disque_trio.web import health
from disque_trio.web.door import Door
from disque_trio.web.exposition import CONTENT_TYPE, Exposition
from disque_trio.web.guard import Guard, password_in
from disque_trio.web.messages import HTML, Request, Response, refusal

_READS: Final = (b"GET", b"HEAD")
_NO_METHOD: Final = refusal(405, "only GET and HEAD are served here", (b"Allow", b"GET, HEAD"))
_BARRED: Final = (
    "This node is in protected mode: it has no password, so it serves its own machine only. Set"
    " 'requirepass-file', or say 'protected-mode no' if only people whom you trust reach this port."
)
_NO_HOST: Final = (
    "The node is not known by the name in the Host header: ask it by its address, or add the name"
    " to 'web-names'."
)
_LOGIN: Final = """\
<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>disque_trio: log in</title>
<h1>disque_trio</h1>
<form method="post" action="/login"><p><label>Password of the node
<input type="password" name="password" autocomplete="current-password" required autofocus></label>
<button>Log in</button></p></form>
"""


class Site:
    """The pages of one node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._guard = Guard(lambda: node.state.config, self._wrong_password)
        self._exposition = Exposition(node)
        self._open: Final[Mapping[str, Callable[[Request], Response]]] = {
            "/livez": lambda _request: Response(200, b"ok\n"),
            "/readyz": self._ready,
        }
        self._pages: Final[Mapping[str, Callable[[], Awaitable[Response]]]] = {
            "/": self._overview,
            "/metrics": self._metrics,
        }

    async def answer(self, request: Request) -> Response:
        """The response to one request."""
        if not self._guard.knows_host(request):
            return refusal(421, _NO_HOST)
        if request.path in self._open:
            return self._open[request.path](request)
        if self._guard.is_barred(request):
            return refusal(403, _BARRED)
        if request.path in ("/login", "/logout"):
            return self._session(request)
        page = self._pages.get(request.path)
        if page is None:
            return refusal(404, "there is no such page")
        if request.method not in _READS:
            return _NO_METHOD
        is_free = request.path == "/metrics" and self._node.state.config.web_metrics_open
        if not is_free and not self._guard.admits(request):
            return self._unknown(request)
        return await page()

    def _unknown(self, request: Request) -> Response:
        """Browsers are led to the form; programs are told what is missing."""
        if self._guard.must_wait(request.ip):
            return refusal(429, "too many wrong passwords: wait a minute", (b"Retry-After", b"60"))
        if b"text/html" in request.headers.get(b"accept", b""):
            return Response(303, headers=((b"Location", b"/login"),))
        asks = (b"WWW-Authenticate", b'Bearer realm="disque"')
        return refusal(401, "send the node's password: Authorization: Bearer PASSWORD", asks)

    def _session(self, request: Request) -> Response:
        """The only two that take a POST."""
        if request.method in _READS:
            return Response(200, _LOGIN.encode(), HTML)
        if request.method != b"POST":
            return refusal(405, "only GET, HEAD and POST", (b"Allow", b"GET, HEAD, POST"))
        if not self._guard.is_own_form(request):
            return refusal(403, "the form must come from a page of this node")
        if request.path == "/logout":
            return Response(303, headers=((b"Location", b"/login"), self._guard.end_session()))
        if self._guard.must_wait(request.ip):
            return refusal(429, "too many wrong passwords: wait a minute", (b"Retry-After", b"60"))
        if not self._guard.is_password(password_in(request.body), request.ip):
            return refusal(401, "this is not the password of the node")
        return Response(303, headers=((b"Location", b"/"), self._guard.begin_session()))

    def _wrong_password(self, ip: str) -> None:
        self._node.turned_away("wrong password at the web port", "web-password", address=ip)

    def _ready(self, _request: Request) -> Response:
        checks = list(health.checks(self._node))
        status = 200 if all(check.is_met for check in checks) else 503
        return Response(status, "".join(f"{check}\n" for check in checks).encode())

    async def _metrics(self) -> Response:
        return Response(200, await self._exposition.text(), CONTENT_TYPE)

    async def _overview(self) -> Response:
        await trio.lowlevel.checkpoint()
        state = self._node.state
        name = html.escape(state.cluster.myself.id.decode(errors="replace"))
        checks = "".join(f"<li>{html.escape(str(check))}" for check in health.checks(self._node))
        text = (
            '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>disque_trio</title>'
            f"<h1>disque_trio {html.escape(state.facts.version)}</h1><p>Node {name}, port"
            f" {state.facts.port}</p><ul>{checks}</ul>"
            '<p><a href="/metrics">metrics</a> · <a href="/readyz">readyz</a></p>'
            '<form method="post" action="/logout"><button>Log out</button></form>\n'
        )
        return Response(200, text.encode(), HTML)


def door_for(node: Node, sockets: Sequence[socket.socket]) -> Door:
    """What serves the node's web port."""

    def warn(event: str, ip: str) -> None:
        node.warn(event, address=ip)

    return Door(sockets, Site(node).answer, warn)
