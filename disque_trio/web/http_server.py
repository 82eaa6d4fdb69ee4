"""The web port: connections, their limits in number and time, and HTTP/1.1 by h11.

Whatever comes over a connection ends that connection at most: no error leaves its task, no request
is longer than it may be, and nobody is waited for without a deadline.
"""

import contextlib
import re
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final

import attrs
import h11
import trio

from disque_trio.web.messages import PROBES, Header, Request, Response, refusal
from disque_trio.web.upgrade import upgraded

MOST_BYTES: Final = 16 << 10
"""Of a request's head."""
MOST_BODY: Final = 1 << 10
"""Of a body: the login form is the only one."""
MOST: Final = 64
"""Connections at the same time."""
MOST_OF_ONE: Final = 16
"""Those of one address: a browser opens six for each tab's files. WebSockets count apart
(`broker.SOCKETS`)."""
SPARE: Final = 8
"""Places beyond these, for requests of `PROBES` alone."""
HEAD_S: Final = 5.0
"""How long a request may take to arrive, and a new connection to begin with one."""
IDLE_S: Final = 60.0
"""How long a connection may rest between requests."""
SEND_S: Final = 20.0
"""How long the other side may take to read a response."""
PIECE: Final = 1 << 16
"""Bytes of a body that are sent at a time."""
LINGER_S: Final = 1.0
"""How long what is still sent is read after the last response, which would be lost otherwise."""
_CHUNK: Final = 4096
_FIRST_LINE: Final = re.compile(rb"[!-~]+ [!-~]+ HTTP/[0-9.]+\r?")
_NO_TEXT: Final = re.compile(rb"[^ -~\r\n]")
_POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    b" connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none';"
    b" require-trusted-types-for 'script'"
)
_FOR_ALL: Final[tuple[Header, ...]] = (
    (b"Content-Security-Policy", _POLICY),
    (b"X-Content-Type-Options", b"nosniff"),
    (b"Referrer-Policy", b"no-referrer"),
    (b"Cross-Origin-Opener-Policy", b"same-origin"),
    (b"Cross-Origin-Resource-Policy", b"same-origin"),
    (b"Cache-Control", b"no-store"),
)
"""What every response says."""

Answer = Callable[[Request], Awaitable[Response]]
Warn = Callable[[str, str], None]
"""Takes an event and the other side's address."""


class HttpServer:
    """Listens, and has requests answered."""

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        answer: Answer,
        warn: Warn,
        tls: Callable[[], ssl.SSLContext | None] = lambda: None,
    ) -> None:
        self._sockets = sockets
        self._answer = answer
        self._warn = warn
        self._tls = tls
        self._guests: Counter[str] = Counter()
        """Connections by address."""
        self._spare: dict[trio.CancelScope, None] = {}
        """Connections in a spare place that have not sent a request yet."""

    async def run(self) -> None:
        """Until it is cancelled."""
        adopt = trio.socket.from_stdlib_socket
        listeners = [trio.SocketListener(adopt(each)) for each in self._sockets]
        await trio.serve_listeners(self._attend, listeners)

    async def _attend(self, stream: trio.SocketStream) -> None:
        """One connection, of which no error leaves."""
        ip = ""
        try:
            ip = str(stream.socket.getpeername()[0])
            with self._counted(ip) as is_one_too_many:
                if is_one_too_many:
                    await self._probed(stream, ip)
                    return
                connection = Connection(await self._secured(stream), ip, self._answer)
                upgrade = await connection.run()
            if upgrade is not None and upgrade.session is not None:
                behind, _ = connection.http.trailing_data
                await upgraded(connection.stream, upgrade.body + behind, upgrade.session)
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            # It has hung up, or takes too long.
            pass
        except Exception as error:
            self._warn(f"web request failed: this is a bug: {error!r}", ip)
        finally:
            await trio.aclose_forcefully(stream)

    async def _probed(self, stream: trio.SocketStream, ip: str) -> None:
        """A connection that is one too many: whether the node is alive can be asked all the same.

        The oldest connection that has asked nothing gives its place to a new one, so that nobody
        can take all of them.
        """
        if len(self._spare) >= SPARE:
            next(iter(self._spare)).cancel()
        with trio.CancelScope() as scope:
            self._spare[scope] = None

            async def answer(request: Request) -> Response:
                self._spare.pop(scope, None)
                if request.path in PROBES:
                    return await self._answer(request)
                self._warn("web connection refused: too many", ip)
                return refusal(503, "there are too many connections")

            try:
                await Connection(await self._secured(stream), ip, answer).run_once()
            finally:
                self._spare.pop(scope, None)

    async def _secured(self, stream: trio.SocketStream) -> trio.abc.Stream:
        """Under TLS, if that is asked for. Raises `trio.BrokenResourceError`."""
        context = self._tls()
        if context is None:
            return stream
        secured = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
        with trio.fail_after(HEAD_S):
            await secured.do_handshake()
        return secured

    @contextlib.contextmanager
    def _counted(self, ip: str) -> Iterator[bool]:
        """A connection of this address. Is it one too many?"""
        self._guests[ip] += 1
        try:
            yield self._guests.total() > MOST or self._guests[ip] > MOST_OF_ONE
        finally:
            self._guests[ip] -= 1
            self._guests += Counter()  # forgets those that have none


class _TooLongError(Exception):
    """A body is longer than any that is expected."""


@attrs.define(eq=False)
class Connection:
    """One connection and its requests, one after the other."""

    stream: trio.abc.Stream
    ip: str
    answer: Answer
    _upgrade: Response | None = attrs.field(init=False, default=None)
    _begun: bytes | None = attrs.field(init=False, default=b"")
    """The first line of the connection, until it is complete."""
    http: h11.Connection = attrs.field(init=False)

    @http.default
    def _fresh(self) -> h11.Connection:
        return h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_BYTES)

    async def run(self) -> Response | None:
        """Answer until either side has enough, or a WebSocket is to begin: the response to that."""
        patience = HEAD_S
        while await self._serve(patience):
            self.http.start_next_cycle()
            patience = IDLE_S
        if self._upgrade is None:
            await self._part()
        return self._upgrade

    async def run_once(self) -> None:
        """Answer one request."""
        await self._serve(HEAD_S)
        await self._part()

    async def _serve(self, patience: float) -> bool:
        """One request. May another one follow?"""
        try:
            request = await self._request(patience)
        except h11.RemoteProtocolError as error:
            await self._say(refusal(error.error_status_hint, str(error)))
            return False
        except _TooLongError:
            await self._say(refusal(413, f"a body has at most {MOST_BODY} bytes"))
            return False
        if request is None:
            return False
        response = await self.answer(request)
        if response.session is not None:
            self._upgrade = response
            return False
        await self._say(response, is_head=request.method == b"HEAD")
        return self.http.our_state is h11.DONE and self.http.their_state is h11.DONE

    async def _request(self, patience: float) -> Request | None:
        """The next one; None if the other side has hung up. TooSlowError: it does not come."""
        with trio.fail_after(patience) as limit:
            head = await self._event(limit)
            if not isinstance(head, h11.Request):
                return None
            body = b""
            while isinstance(event := await self._event(limit), h11.Data):
                body += event.data
                if len(body) > MOST_BODY:
                    raise _TooLongError
        path = head.target.partition(b"?")[0].decode("ascii", "replace")
        return Request(head.method, path, self.ip, dict(head.headers), body)

    async def _event(self, limit: trio.CancelScope) -> object:
        while (event := self.http.next_event()) is h11.NEED_DATA:
            if self.http.they_are_waiting_for_100_continue:
                more = h11.InformationalResponse(status_code=100, headers=[])
                await self.stream.send_all(self.http.send(more) or b"")
            data = await self.stream.receive_some(_CHUNK)
            # It has begun, and may not rest any more.
            limit.deadline = min(limit.deadline, trio.current_time() + HEAD_S)
            if self._begun is not None:
                self._check_beginning(bytes(data))
            self.http.receive_data(bytes(data))
        return event

    def _check_beginning(self, data: bytes) -> None:
        """Another protocol ends the connection at once: h11 would wait for the end of headers."""
        assert self._begun is not None
        line, end, _ = (self._begun + data).lstrip(b"\r\n").partition(b"\n")
        if _NO_TEXT.search(line) or (end and not _FIRST_LINE.fullmatch(line)):
            raise h11.RemoteProtocolError("this is not HTTP")
        self._begun = None if end else line

    async def _say(self, response: Response, *, is_head: bool = False) -> None:
        if self.http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        headers = list(response.headers)
        if response.status != 304:
            length = b"%d" % len(response.body)
            headers += [(b"Content-Type", response.kind), (b"Content-Length", length)]
        given = {name for name, _ in headers}
        headers += [each for each in _FOR_ALL if each[0] not in given]
        head = h11.Response(status_code=response.status, headers=headers)
        data = self.http.send(head) or b""
        body = b"" if is_head or response.status == 304 else response.body
        with trio.fail_after(SEND_S):
            # Connections share a body: each of them has a copy of one piece only.
            for at in range(0, len(body), PIECE):
                data += self.http.send(h11.Data(data=body[at : at + PIECE])) or b""
                await self.stream.send_all(data)
                data = b""
            data += self.http.send(h11.EndOfMessage()) or b""
            if data:
                await self.stream.send_all(data)

    async def _part(self) -> None:
        """Let the other side read the last response before it learns that nobody listens."""
        with trio.move_on_after(LINGER_S), contextlib.suppress(trio.BrokenResourceError):
            if not isinstance(self.stream, trio.abc.HalfCloseableStream):
                await self.stream.aclose()  # it says so in TLS
                return
            await self.stream.send_eof()
            left = MOST_BYTES
            while left > 0 and (data := await self.stream.receive_some(_CHUNK)):
                left -= len(data)
