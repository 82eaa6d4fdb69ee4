"""A scripted server of the console: what it says of the cluster is what a test puts into it."""

import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import attrs
import trio
import trio.testing
from trio_websocket import ConnectionClosed, WebSocketConnection, wrap_server_stream

from disque_trio.observe.operations import OPERATIONS
from disque_trio.web import static_files
from disque_trio.web.http_server import Connection
from disque_trio.web.messages import JSON, Request, Response, refusal

PROTOCOL: Final = "disque.console.1"
FILES: Final = static_files.load()
OFFERED: Final = [each.as_json() for each in OPERATIONS.values()]

Said = dict[str, Any]
ENTRY: Final[Said] = {
    "number": 1, "at_ms": 1_790_000_000_000, "user": "ann", "role": "operator",
    "address": "10.0.0.7", "by": "console", "operation": "queues cancel", "target": "mail order-17",
    "outcome": "no job has this key", "is_ok": False,
}  # fmt: skip
Topic = Callable[[Said], Said]
"""Takes the arguments of a subscription, gives its data."""


class _Replayed(trio.abc.HalfCloseableStream):
    """A stream of which the beginning has been read: it comes again."""

    def __init__(self, stream: trio.SocketStream, first: bytes) -> None:
        self._stream = stream
        self._first = first

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        if not self._first:
            return bytes(await self._stream.receive_some(max_bytes))
        await trio.lowlevel.checkpoint()
        data, self._first = self._first, b""
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        await self._stream.aclose()


@attrs.define(eq=False)
class Fake:
    """The server, and what it has been asked."""

    topics: dict[str, Topic]
    plans: dict[str, Said] = attrs.field(factory=dict)
    """By operation: what `plan` or `error` says."""
    outcome: Said = attrs.field(factory=lambda: {"says": ["n1: done"], "failed": []})
    hello: Said = attrs.field(factory=dict)
    unreached: dict[str, str] = attrs.field(factory=dict)
    errors: dict[str, str] = attrs.field(factory=dict)
    """By topic that has no answer: why."""
    audit: Said = attrs.field(factory=lambda: {"entries": [ENTRY], "next": None})
    port: int = 0
    is_away: bool = False
    asked: list[Said] = attrs.field(factory=list)
    """Each frame of the browser."""
    _open: dict[WebSocketConnection, dict[int, Said]] = attrs.field(factory=dict)
    """Subscriptions of each browser."""
    _scopes: list[trio.CancelScope] = attrs.field(factory=list)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def subscribed(self) -> dict[str, Said]:
        """By topic: the arguments."""
        return {sub["topic"]: sub["args"] for subs in self._open.values() for sub in subs.values()}

    def done(self, operation: str) -> list[Said]:
        """The arguments with which plans were asked for."""
        return [said["args"] for said in self.asked if said.get("operation") == operation]

    async def push(self, topic: str) -> None:
        """To whom it concerns."""
        for socket, subs in self._open.items():
            for sub in subs.values():
                if sub["topic"] == topic:
                    await self._put(socket, sub)

    async def hang_up(self) -> None:
        """Every browser is left alone, without a word."""
        for scope in self._scopes:
            scope.cancel()
        await trio.testing.wait_all_tasks_blocked()

    async def serve(self, stream: trio.SocketStream) -> None:
        """One connection."""
        head = b""
        try:
            while b"\r\n\r\n" not in head:
                if not (data := await stream.receive_some()):
                    return
                head += data
            again = _Replayed(stream, head)
            if b"upgrade: websocket" not in head.lower():
                await Connection(again, "127.0.0.1", self._file).run()
            elif not self.is_away:
                await self._talk(again)
        except (trio.BrokenResourceError, trio.TooSlowError, ConnectionClosed):
            pass
        finally:
            await trio.aclose_forcefully(stream)

    async def _file(self, request: Request) -> Response:
        await trio.lowlevel.checkpoint()
        if request.path == "/api/v1/audit":
            return Response(200, json.dumps(self.audit).encode(), JSON)
        name = request.path.removeprefix("/static/") if request.path != "/" else "index.html"
        file = static_files.frame() if name == "/picture" else FILES.get(name)
        return file.answer(request) if file else refusal(404, "there is no such file")

    async def _talk(self, stream: _Replayed) -> None:
        async with trio.open_nursery() as nursery:
            self._scopes.append(nursery.cancel_scope)
            request = await wrap_server_stream(nursery, stream)
            socket = await request.accept(subprotocol=PROTOCOL)
            self._open[socket] = {}
            try:
                await self._say(socket, self._greeting())
                while True:
                    await self._hear(socket, json.loads(await socket.get_message()))
            except ConnectionClosed:
                pass
            finally:
                del self._open[socket]
                nursery.cancel_scope.cancel()

    def _greeting(self) -> Said:
        usual = {"t": "hello", "v": 1, "cluster": "", "role": "admin", "replay": False}
        return {**usual, "topics": list(self.topics), "operations": OFFERED, **self.hello}

    async def _hear(self, socket: WebSocketConnection, said: Said) -> None:
        self.asked.append(said)
        subs = self._open[socket]
        if said["t"] == "sub":
            subs[said["id"]] = said
            await self._put(socket, said)
        elif said["t"] == "unsub":
            subs.pop(said["id"], None)
        elif said["t"] == "do" and "token" in said:
            await self._say(socket, {"t": "progress", "id": said["id"], "says": "half of it"})
            await self._say(socket, {"t": "done", "id": said["id"], **self.outcome})
        elif said["t"] == "do":
            plan = self.plans.get(said["operation"], {"t": "error", "says": "there is no such"})
            await self._say(socket, {"t": "plan", "id": said["id"], "confirm": None, **plan})

    async def _put(self, socket: WebSocketConnection, sub: Said) -> None:
        if why := self.errors.get(sub["topic"]):
            await self._say(socket, {"t": "error", "id": sub["id"], "says": why})
            return
        data = self.topics[sub["topic"]](sub["args"])
        put = {"t": "put", "id": sub["id"], "at": int(time.time() * 1000), "data": data}
        await self._say(socket, {**put, "unreached": self.unreached})

    async def _say(self, socket: WebSocketConnection, said: Said) -> None:
        await socket.send_message(json.dumps(said))


@asynccontextmanager
async def serving(fake: Fake) -> AsyncIterator[Fake]:
    """On a port of its own."""
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        fake.port = listeners[0].socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, fake.serve, listeners)
        yield fake
        nursery.cancel_scope.cancel()
