"""The web port: connections, their limits in number and time, and HTTP/1.1 by h11.

Invalid input ends at most its own connection: no error leaves the connection's task, requests have
a maximum size, and each wait has a deadline.
"""

import contextlib
import os
import re
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from email.utils import formatdate
from functools import partial
from http import HTTPStatus
from typing import Final

import attrs
import h11
import trio

from disque_trio.terminal.counting import counted
from disque_trio.web.messages import PROBES, WHOLE, Expected, Header, Request, Response
from disque_trio.web.problems import ProblemError, retry_after, too_large
from disque_trio.web.upgrade import upgraded

MOST_BYTES: Final = 16 << 10
"""The maximum size of a request's head."""
MOST_BODY: Final = 1 << 10
"""The maximum size of a body where the head is not checked first, as for the login form."""
MOST: Final = 64
"""The maximum number of connections at the same time."""
MOST_OF_ONE: Final = 16
"""The maximum number of connections of one address: a browser opens six for each tab's files.
WebSockets count separately (`subscriptions.SOCKETS`)."""
SPARE: Final = 8
"""The number of additional connections, which serve only requests of `PROBES`."""
HEAD_S: Final = 5.0
"""The maximum time in which a request must arrive, and a new connection must send its first one."""
IDLE_S: Final = 60.0
"""The maximum idle time between requests."""
BODY_S: Final = 20.0
"""The maximum time in which a large body must arrive."""
SEND_S: Final = 20.0
"""The maximum time in which the other side must read a response."""
PIECE: Final = 1 << 16
"""Bytes of a body that are sent at a time."""
LINGER_S: Final = 1.0
"""How long input is read after the last response. If it were not read, TCP could discard the
response."""
_CHUNK: Final = 4096
_CHUNK_OF_BODY: Final = 1 << 16
_UNREAD: Final = 4 << 20
"""The maximum number of bytes of a refused body that are read and dropped, so that the refusal
arrives."""
_RETURN_S: Final = 5.0
_FIRST_LINE: Final = re.compile(rb"[!-~]+ [!-~]+ HTTP/[0-9.]+\r?")
_NO_TEXT: Final = re.compile(rb"[^ -~\r\n]")
_ABSOLUTE: Final = re.compile(r"(?i:https?)://([^/?]*)(.*)")
"""A request target with a host (RFC 9112, 3.2.2)."""
_SINGLE: Final = (b"authorization", b"content-type", b"cookie", b"origin", b"sec-fetch-site")
"""Headers that must occur once, because they determine the handling."""
_QUOTED: Final = re.compile(r":? (?:bytearray\(|b['\"]).*", re.DOTALL)
"""The part of h11's message that quotes the request."""
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
"""Headers of every response."""

Answer = Callable[[Request], Awaitable[Response]]
Begin = Callable[[Request], Awaitable[Response | Expected]]
"""Takes a request without its body. Returns a refusal, or what is expected of the body."""
Warn = Callable[[str, str], None]
"""Takes an event and the address of the other side."""


class HttpServer:
    """The server: it listens, and passes requests to `answer`."""

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        answer: Answer,
        warn: Warn,
        tls: Callable[[], ssl.SSLContext | None] = lambda: None,
        begin: Begin | None = None,
    ) -> None:
        self._sockets = sockets
        self._answer = answer
        self._begin = begin
        self._warn = warn
        self._tls = tls
        self._guests: Counter[str] = Counter()
        """The number of connections by address."""
        self._spare: dict[trio.CancelScope, None] = {}
        """Additional connections that have not sent a request yet."""

    async def run(self) -> None:
        """Run until cancelled."""
        adopt = trio.socket.from_stdlib_socket
        listeners = [trio.SocketListener(adopt(each)) for each in self._sockets]
        await trio.serve_listeners(self._attend, listeners)

    async def _attend(self, stream: trio.SocketStream) -> None:
        """Serve one connection. No error leaves it."""
        ip = ""
        try:
            ip = str(stream.socket.getpeername()[0])
            with self._counted(ip) as is_one_too_many:
                if is_one_too_many:
                    await self._probed(stream, ip)
                    return
                secured = await self._secured(stream)
                aside = partial(self._aside, ip)
                connection = Connection(secured, ip, self._answer, self._begin, aside)
                upgrade = await connection.run()
            if upgrade is not None and upgrade.session is not None:
                behind, _ = connection.http.trailing_data
                await upgraded(connection.stream, upgrade.body + behind, upgrade.session)
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            # The other side has closed the connection, or is too slow.
            pass
        except Exception as error:
            self._warn(f"web request failed: this is a bug: {error!r}", ip)
        finally:
            await trio.aclose_forcefully(stream)

    async def _probed(self, stream: trio.SocketStream, ip: str) -> None:
        """Serve a connection beyond the limit, which may only request `PROBES`.

        A new connection replaces the oldest one that has sent no request, so that no client can
        occupy all additional places.
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
                return _CROWDED

            try:
                await Connection(await self._secured(stream), ip, answer, is_brief=True).run()
            finally:
                self._spare.pop(scope, None)

    async def _secured(self, stream: trio.SocketStream) -> trio.abc.Stream:
        """Return the stream, under TLS if configured. Raise `trio.BrokenResourceError`."""
        context = self._tls()
        if context is None:
            return stream
        secured = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
        with trio.fail_after(HEAD_S):
            await secured.do_handshake()
        return secured

    @contextlib.contextmanager
    def _counted(self, ip: str) -> Iterator[bool]:
        """Count a connection of this address. Yield whether it is beyond the limit."""
        self._guests[ip] += 1
        try:
            yield self._guests.total() > MOST or self._guests[ip] > MOST_OF_ONE
        finally:
            self._guests[ip] -= 1
            self._guests += Counter()  # removes addresses without connections

    @contextlib.contextmanager
    def _aside(self, ip: str) -> Iterator[None]:
        """Do not count a connection while its answer may take long."""
        self._guests[ip] -= 1
        try:
            yield
        finally:
            self._guests[ip] += 1


def _has_hung_up(stream: trio.abc.Stream) -> bool:
    """Has the other side closed the connection? The check uses the socket directly, because on a
    busy machine trio's loop reports the end tens of milliseconds later."""
    plain = stream.transport_stream if isinstance(stream, trio.SSLStream) else stream
    if not isinstance(plain, trio.SocketStream):
        return False
    with socket.socket(fileno=os.dup(plain.socket.fileno())) as twin:
        try:
            return not twin.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True


_CROWDED: Final = ProblemError(
    503, "CONNECTIONS", "there are too many connections",
    "send several requests over one connection, and close it", retry_after(1),
).response()  # fmt: skip
_STOPPING: Final = ProblemError(
    503, "STOPPING", "the node is stopping", "ask another node", retry_after(1)
).response()
"""The answer to a waiting request when the node is stopping."""
_ADVICE: Final = {
    431: f"the head of a request has at most {counted(MOST_BYTES, 'byte')}",
    501: "send Content-Length, or Transfer-Encoding: chunked",
}


def _check_line(head: h11.Request) -> None:
    """Raise `ProblemError` for another version of HTTP, or an invalid target."""
    if not head.http_version.startswith(b"1."):
        raise ProblemError(
            505, "HTTP", f"HTTP {head.http_version.decode()} is not supported", "send HTTP/1.1"
        )
    if head.method == b"CONNECT":
        raise ProblemError(501, "HTTP", "CONNECT is for proxies", "this server is not a proxy")
    target = head.target.decode("ascii")
    is_of_server = head.method == b"OPTIONS" and target == WHOLE
    if not (is_of_server or target.startswith("/") or _ABSOLUTE.fullmatch(target)):
        raise ProblemError(
            400, "HTTP", "the target of the request is not a path", "send a path that begins with /"
        )
    if "#" in target:
        raise ProblemError(
            400, "HTTP", "the target of the request has a fragment", "write # as %23"
        )


def _malformed(error: h11.RemoteProtocolError) -> ProblemError:
    """Return the problem for input that h11 cannot parse, without the bytes that h11 quotes."""
    status, words = error.error_status_hint, _QUOTED.sub("", str(error))
    return ProblemError(status, "HTTP", words, _ADVICE.get(status, "send HTTP/1.1 (RFC 9112)"))


@attrs.define(eq=False)
class Connection:
    """One connection and its requests in sequence."""

    stream: trio.abc.Stream
    ip: str
    answer: Answer
    begin: Begin | None = None
    aside: Callable[[], AbstractContextManager[None]] = nullcontext
    """The context of answers that may take long."""
    is_brief: bool = False
    """Does the connection end after one request?"""
    _is_gone: bool = attrs.field(init=False, default=False)
    """Has the other side closed the connection while its request waited?"""
    _is_head: bool = attrs.field(init=False, default=False)
    """Is the method HEAD? Then all answers are sent without their body."""
    _upgrade: Response | None = attrs.field(init=False, default=None)
    _begun: bytes | None = attrs.field(init=False, default=b"")
    """The first line of the connection, until it is complete."""
    http: h11.Connection = attrs.field(init=False)

    @http.default
    def _fresh(self) -> h11.Connection:
        return h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_BYTES)

    async def run(self) -> Response | None:
        """Answer requests until one side ends the connection. Return the response if it begins a
        WebSocket."""
        patience = HEAD_S
        while await self._serve(patience) and not self.is_brief:
            self.http.start_next_cycle()
            patience = IDLE_S
        if self._upgrade is None:
            await self._part()
        return self._upgrade

    async def _serve(self, patience: float) -> bool:
        """Serve one request. Return whether another one may follow."""
        try:
            request = await self._head(patience)
            if request is None:
                return False
            due = await self._due(request)
            if isinstance(due, Response):
                await self._end_of_empty(request)
                response = due
            else:
                request = attrs.evolve(request, body=await self._body(due))
                response = await self._answered(due, request)
        except h11.RemoteProtocolError as error:
            await self._say(_malformed(error).response())
            return False
        except ProblemError as problem:
            await self._say(problem.response())
            return False
        if response.session is not None:
            self._upgrade = response
            return False
        await self._deliver(response)
        return self.http.our_state is h11.DONE and self.http.their_state is h11.DONE

    async def _head(self, patience: float) -> Request | None:
        """Read the next head. Return None if the other side has closed the connection. Raise
        TooSlowError if no request arrives."""
        self._is_head = False  # the input may be no request
        with self._limited(patience) as limit:
            head = await self._event(limit)
        if not isinstance(head, h11.Request):
            return None
        self._is_head = head.method == b"HEAD"
        _check_line(head)
        headers, target = dict(head.headers), head.target.decode("ascii")
        names = [name for name, _ in head.headers]
        if twice := [name.decode().title() for name in _SINGLE if names.count(name) > 1]:
            # A proxy may have checked the other one.
            raise ProblemError(400, "HTTP", f"{twice[0]} is given twice", "send it once")
        if headers.keys() >= {b"transfer-encoding", b"content-length"}:
            # A proxy may use the other one, and so separate requests differently.
            raise ProblemError(
                400, "HTTP", "Content-Length and Transfer-Encoding are both given",
                "send one of them",
            )  # fmt: skip
        if absolute := _ABSOLUTE.fullmatch(target):
            headers[b"host"], target = absolute[1].encode(), absolute[2]
        path, _, query = target.partition("?")
        return Request(head.method, path or "/", self.ip, headers, query=query)

    @contextlib.contextmanager
    def _limited(self, seconds: float) -> Iterator[trio.CancelScope]:
        """Limit the time of a request. Raise `ProblemError`; before its first byte TooSlowError, so
        that an idle connection is closed without an answer."""
        with trio.move_on_after(seconds) as limit:
            yield limit
        if limit.cancelled_caught:
            has_begun = self.http.their_state is not h11.IDLE or self.http.trailing_data[0]
            if not has_begun:
                raise trio.TooSlowError
            raise ProblemError(
                408, "TIMEOUT", "the request did not arrive in time",
                "send its head and its body at once",
            )  # fmt: skip

    async def _due(self, request: Request) -> Response | Expected:
        if self.begin is None:
            return Expected(MOST_BODY, self.answer)
        return await self.begin(request)

    async def _end_of_empty(self, request: Request) -> None:
        """After a refusal, read the end of a request without a body, so that another request may
        follow."""
        length = request.headers.get(b"content-length", b"0")
        if length == b"0" and b"transfer-encoding" not in request.headers:
            await self._body(Expected(0, self.answer))

    async def _body(self, due: Expected) -> bytes:
        """Read the whole body. Raise `ProblemError`."""
        most, pieces, size = due.most, [], 0
        with self._limited(HEAD_S if most <= MOST_BODY else BODY_S) as limit:
            while isinstance(event := await self._event(limit, _CHUNK_OF_BODY), h11.Data):
                pieces.append(bytes(event.data))
                size += len(event.data)
                if size > most:
                    raise too_large(most)
        return b"".join(pieces)

    async def _answered(self, due: Expected, request: Request) -> Response:
        if not due.waits:
            return await due.answer(request)
        found: list[Response] = []
        try:
            with self.aside():
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._notice_end, nursery.cancel_scope)
                    found.append(await due.answer(request))
                    for _ in range(2):  # one for the loop to report an end, one for the task above
                        await trio.lowlevel.checkpoint()
                    nursery.cancel_scope.cancel()
        except* trio.Cancelled:
            for response in found:
                await self._return(response)
            with trio.move_on_after(LINGER_S, shield=True):
                self.is_brief = True
                await self._say(_STOPPING)
            raise
        if self._is_gone:
            for response in found:
                await self._return(response)
            raise trio.BrokenResourceError
        return found[0]

    async def _notice_end(self, scope: trio.CancelScope) -> None:
        """Cancel the answer when the other side closes the connection. Other input is its next
        request."""
        room = MOST_BYTES
        try:
            while room > 0 and (data := await self.stream.receive_some(_CHUNK)):
                self.http.receive_data(bytes(data))
                room -= len(data)
        except trio.BrokenResourceError:
            room = MOST_BYTES
        if room > 0:
            self._is_gone = True
            scope.cancel()

    async def _deliver(self, response: Response) -> None:
        try:
            if response.undelivered is not None and _has_hung_up(self.stream):
                raise trio.BrokenResourceError
            await self._say(response)
        except BaseException:
            await self._return(response)
            raise

    async def _return(self, response: Response) -> None:
        """Call `undelivered` of a response that was not sent."""
        if response.undelivered is not None:
            with trio.move_on_after(_RETURN_S, shield=True):
                await response.undelivered()

    async def _event(self, limit: trio.CancelScope, chunk: int = _CHUNK) -> object:
        while (event := self.http.next_event()) is h11.NEED_DATA:
            if self.http.they_are_waiting_for_100_continue:
                more = h11.InformationalResponse(status_code=100, headers=[])
                await self.stream.send_all(self.http.send(more) or b"")
            data = await self.stream.receive_some(chunk)
            if chunk == _CHUNK:  # the request has begun, so the idle time ends
                limit.deadline = min(limit.deadline, trio.current_time() + HEAD_S)
            if self._begun is not None:
                self._check_beginning(bytes(data))
            self.http.receive_data(bytes(data))
        return event

    def _check_beginning(self, data: bytes) -> None:
        """End the connection at once for another protocol: h11 would wait for the end of the
        headers."""
        assert self._begun is not None
        line, end, _ = (self._begun + data).lstrip(b"\r\n").partition(b"\n")
        if _NO_TEXT.search(line) or (end and not _FIRST_LINE.fullmatch(line)):
            raise h11.RemoteProtocolError("this is not HTTP")
        self._begun = None if end else line

    async def _say(self, response: Response) -> None:
        if self.http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        headers = list(response.headers)
        if self.is_brief or self.http.their_state is not h11.DONE:
            headers.append((b"Connection", b"close"))
        if response.status not in (204, 304):
            length = b"%d" % len(response.body)
            headers += [(b"Content-Type", response.kind), (b"Content-Length", length)]
        names = {name for name, _ in headers}
        headers.append((b"Date", formatdate(usegmt=True).encode()))
        headers += [each for each in _FOR_ALL if each[0] not in names]
        reason = HTTPStatus(response.status).phrase.encode()
        head = h11.Response(status_code=response.status, headers=headers, reason=reason)
        data = self.http.send(head) or b""
        body = b"" if self._is_head or response.status == 304 else response.body
        with trio.fail_after(SEND_S):
            # All connections share the body; each has a copy of only one piece.
            for at in range(0, len(body), PIECE):
                data += self.http.send(h11.Data(data=body[at : at + PIECE])) or b""
                await self.stream.send_all(data)
                data = b""
            data += self.http.send(h11.EndOfMessage()) or b""
            if data:
                await self.stream.send_all(data)

    async def _part(self) -> None:
        """Close the connection in a way that the other side can read the last response first."""
        with trio.move_on_after(LINGER_S), contextlib.suppress(trio.BrokenResourceError):
            if not isinstance(self.stream, trio.abc.HalfCloseableStream):
                await self.stream.aclose()  # it sends the end of the TLS session
                return
            await self.stream.send_eof()
            left = _UNREAD
            while left > 0 and (data := await self.stream.receive_some(_CHUNK)):
                left -= len(data)
