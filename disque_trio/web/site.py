"""The answers of the web port: the console, its socket, health, metrics, and the login page."""

import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import attrs
import trio
from trio_websocket import WebSocketConnection

from disque_trio import __version__
from disque_trio.net.tls import Keeper
from disque_trio.node import Node
from disque_trio.observe.observer import TOPICS, Observer
from disque_trio.observe.operations import OPERATIONS
from disque_trio.observe.values import Json
from disque_trio.web import static_files, upgrade
from disque_trio.web.api.api import Api
from disque_trio.web.api.routes import ROOT
from disque_trio.web.audit import Audit
from disque_trio.web.auth import Authenticator, form_of
from disque_trio.web.http_server import MOST_BODY, HttpServer
from disque_trio.web.messages import HTML, JSON, WHOLE, Expected, Request, Response, refusal
from disque_trio.web.metrics import CONTENT_TYPE
from disque_trio.web.roles import NOBODY, OPERATE, READER, SEE, STRANGER, User
from disque_trio.web.source import Source, of_node
from disque_trio.web.subscriptions import SANDBOX, SOCKETS, STEER, Broker
from disque_trio.web.websocket_session import Visitor, WebSocketSession

_STATIC: Final = "/static/"
_FRAME: Final = "/picture"
"""The page of a job's picture, without its data."""
_READS: Final = (b"GET", b"HEAD")
_NO_METHOD: Final = refusal(405, "only GET and HEAD are served here", (b"Allow", b"GET, HEAD"))
_METHODS: Final = Response(204, headers=((b"Allow", b"GET, HEAD, POST, OPTIONS"),))
"""The answer to OPTIONS for the server as a whole (RFC 9110, 9.3.7)."""
_BARRED: Final = (
    "This node is in protected mode: it has no password, so it serves its own machine only. Set"
    " 'requirepass-file', or set 'protected-mode no' if only trusted machines reach this port."
)
_NO_HOST: Final = (
    "The name in the Host header is not a name of the node: use its address, or add the name"
    " to 'web-names'."
)
_NOT_FOUND: Final = refusal(404, "there is no such page")
_TOO_MANY: Final = "too many wrong passwords: wait a minute"
_LOGIN: Final = """\
<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>disque_trio: log in</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="/static/icon.svg"><link rel="stylesheet" href="/static/colours.css">
<link rel="stylesheet" href="/static/login.css"><script src="/static/theme.js"></script>
<main class="login"><h1>disque_trio</h1>
{alert}<form method="post" action="/login">{name}<p><label>{of}
<input type="password" name="password" autocomplete="current-password" required autofocus></label>
<button>Log in</button></p></form></main><script src="/static/login.js"></script>
"""
_NAME: Final = """\
<p><label>Name <input name="name" autocomplete="username" autocapitalize="none"></label></p>
"""


class Site:
    """The pages of one process. `run` must run while it answers."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._auth = Authenticator(source.config, source.wrong_password)
        self._broker = Broker(
            Observer(source.client), lambda event: source.warn(event, ""), source.sandbox
        )
        self._audit = Audit(source.config, source.log, lambda event: source.warn(event, ""))
        self._api = Api(source, self._auth, self._broker, self._audit)
        self._files = static_files.load()
        self._pages = {"/": self._files["index.html"]}
        """Pages that require a login."""
        if source.picture is not None:
            self._pages["/replay"] = static_files.picture(source.picture.page)
            self._pages["/replay.json"] = static_files.File(JSON, source.picture.data)
        self._open: Final[Mapping[str, Callable[[Request], Response]]] = {
            "/livez": lambda _request: Response(200, b"ok\n"),
            "/readyz": self._ready,
        }

    async def run(self) -> None:
        """Run the tasks of the site, until cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._broker.run)
                nursery.start_soon(self._audit.run)
                if self._source.sandbox is not None:
                    nursery.start_soon(self._source.sandbox.run, self._source.log)
        finally:
            await self._audit.close()
            await self._api.close()

    async def begin(self, request: Request) -> Response | Expected:
        """Check the head of a request. The API checks it first; all other paths have small bodies,
        or none."""
        if f"{request.path}/".startswith(f"{ROOT}/"):
            return await self._api.begin(request)
        return Expected(MOST_BODY, self.answer)

    async def answer(self, request: Request) -> Response:
        """Return the response to one request."""
        if not self._auth.knows_host(request):
            return refusal(421, _NO_HOST)
        if request.path == WHOLE:
            return _METHODS
        if request.path in self._open:
            if request.method not in _READS:
                return _NO_METHOD
            return self._open[request.path](request)
        if self._auth.is_barred(request):
            return refusal(403, _BARRED)
        if request.path in ("/login", "/logout"):
            return await self._session(request)
        if request.path == "/socket":
            return await self._socket(request)
        return await self._page(request)

    async def _page(self, request: Request) -> Response:
        is_file = request.path.startswith(_STATIC)
        file = self._files.get(request.path.removeprefix(_STATIC)) if is_file else None
        metrics = self._source.metrics if request.path == "/metrics" else None
        page = self._pages.get(request.path)
        sandbox = self._source.sandbox if request.path.startswith("/sandbox/") else None
        is_frame = request.path == _FRAME and self._source.has_cluster
        if not (file or metrics or page or sandbox or is_frame):
            return _NOT_FOUND
        if request.method not in _READS:
            return _NO_METHOD
        if file is not None:
            return file.answer(request)
        is_free = metrics is not None and self._source.config().web_metrics_open
        user = STRANGER if is_free else await self._auth.user_of(request)
        if not is_free and not user.may(SEE):
            return self._unknown(request, user)
        if is_frame:
            return (await trio.to_thread.run_sync(static_files.frame)).answer(request)
        if page is not None:
            return page.answer(request)
        if sandbox is not None:
            return sandbox.answer(request) or _NOT_FOUND
        assert metrics is not None
        return Response(200, await metrics(), CONTENT_TYPE)

    def _unknown(self, request: Request, user: User) -> Response:
        """Refuse a request: browsers are redirected to the form, programs get the reason."""
        if user.role != NOBODY:
            return refusal(403, f"the role {user.role} sees no pages")
        if self._auth.must_wait(request.ip):
            return refusal(429, _TOO_MANY, (b"Retry-After", b"60"))
        if b"text/html" in request.headers.get(b"accept", b""):
            return Response(303, headers=((b"Location", b"/login"),))
        asks = (b"WWW-Authenticate", b'Bearer realm="disque"')
        return refusal(401, "send the node's password: Authorization: Bearer PASSWORD", asks)

    async def _session(self, request: Request) -> Response:
        """Serve `/login` and `/logout`, the only paths beside the API that take a POST."""
        if request.method in _READS:
            return self._form(200)
        if request.method != b"POST":
            return refusal(405, "only GET, HEAD and POST", (b"Allow", b"GET, HEAD, POST"))
        if not self._auth.is_own_form(request):
            return refusal(403, "the form must come from a page of this node")
        if request.path == "/logout":
            return Response(303, headers=((b"Location", b"/login"), self._auth.end_session()))
        if self._auth.must_wait(request.ip):
            return self._form(429, _TOO_MANY)
        user = await self._auth.by_password(*form_of(request.body), request.ip)
        if user is STRANGER:
            return self._form(401, "this is not the password")
        if not user.may(SEE):
            return self._form(403, f"the role {user.role} sees no pages")
        return Response(303, headers=((b"Location", b"/"), self._auth.begin_session(user.name)))

    def _form(self, status: int, alert: str = "") -> Response:
        """Return the login page, with an error if there is one."""
        paragraph = f'<p role="alert">{alert}</p>\n' if alert else ""
        has_names = bool(self._source.config().web_users)
        name, of = (_NAME, "Password") if has_names else ("", "Password of the node")
        return Response(status, _LOGIN.format(alert=paragraph, name=name, of=of).encode(), HTML)

    async def _socket(self, request: Request) -> Response:
        """Return the upgrade to a WebSocket, or a refusal."""
        if request.method != b"GET":
            return _NO_METHOD
        if defect := upgrade.defect(request.headers):
            return refusal(400, defect, (b"Sec-WebSocket-Version", b"13"))
        if b"origin" in request.headers and not self._auth.is_own_origin(request):
            return refusal(403, "a page of another site may not open it")
        user = await self._auth.user_over_socket(request)
        if not user.may(SEE):
            return self._unknown(request, user)
        if self._broker.sockets >= SOCKETS:
            return refusal(503, f"{SOCKETS} browsers look already", (b"Retry-After", b"10"))

        async def session(socket: WebSocketConnection) -> None:
            self._broker.sockets += 1
            try:
                await WebSocketSession(self._broker, self._visitor(request, user), socket).run()
            finally:
                self._broker.sockets -= 1

        return Response(101, upgrade.handshake(request.headers), session=session)

    def _visitor(self, request: Request, user: User) -> Visitor:
        has_cluster, has_sandbox = self._source.has_cluster, self._source.sandbox is not None
        topics = [*(TOPICS if has_cluster else ()), *([SANDBOX] if has_sandbox else ())]
        known = OPERATIONS.values() if has_cluster else ()
        operations = [each.as_json() for each in known if user.may_do(each)]
        if has_sandbox and user.may(OPERATE):
            operations.append({"key": STEER, "family": ""})
        hello: Json = {
            "cluster": self._source.config().cluster_name,
            "role": READER if user.is_reading else user.role,
            "user": user.name,
            "login": bool(self._auth.accounts),
            "replay": "/replay" in self._pages,
            "version": __version__,
            "topics": topics,
            "operations": operations,
        }
        return Visitor(
            user=lambda: attrs.evolve(user, is_reading=self._source.config().web_read_only),
            is_still_in=lambda: self._auth.still_in(request, user),
            note=partial(self._audit.note, by="console", address=request.ip),
            hello=hello,
        )

    def _ready(self, _request: Request) -> Response:
        checks = list(self._source.checks())
        status = 200 if all(check.is_met for check in checks) else 503
        return Response(status, "".join(f"{check}\n" for check in checks).encode())


async def serve(source: Source, sockets: Sequence[socket.socket]) -> None:
    """Serve a web port until cancelled."""
    site = Site(source)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.run)
        nursery.start_soon(
            HttpServer(sockets, site.answer, source.warn, source.tls, site.begin).run
        )


async def serve_node(
    node: Node,
    sockets: Sequence[socket.socket],
    connect_inside: Callable[[], socket.socket],
    tls: Keeper | None = None,
) -> None:
    """Serve the web port of a node until cancelled. `connect_inside` opens connections to the
    node."""
    await serve(of_node(node, connect_inside, tls), sockets)
