"""Nodes with consoles on the loopback, and browsers that talk to them."""

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import attrs
import trio
from trio_websocket import WebSocketConnection, open_websocket

from disque_trio.client import Client
from disque_trio.node import Node
from disque_trio.serving import up
from disque_trio.statemachine.config import Config
from disque_trio.web.upgrade import PROTOCOL
from tests.cluster.processes import free_port
from tests.observe.rig import MAXMEMORY, joined
from tests.web.asking import Answer, everything, taken_apart


@attrs.define
class Browser:
    """The other end of a socket."""

    socket: WebSocketConnection

    async def hear(self, kind: str, id: int | None = None) -> dict[str, Any]:
        """The next frame of this kind, and with this id; others are passed over."""
        with trio.fail_after(20):
            while True:
                frame: dict[str, Any] = json.loads(await self.socket.get_message())
                if frame["t"] == kind and id in (None, frame.get("id")):
                    return frame

    async def say(self, **frame: Any) -> None:
        await self.socket.send_message(json.dumps(frame))

    async def see(self, topic: str, number: int = 1, **args: Any) -> dict[str, Any]:
        """The first answer to a question."""
        await self.say(t="sub", id=number, topic=topic, args=args, every=500)
        data: dict[str, Any] = (await self.hear("put", number))["data"]
        return data

    async def plan(self, operation: str, **args: Any) -> dict[str, Any]:
        await self.say(t="do", id=9, operation=operation, args=args)
        return await self.hear("plan", 9)

    async def do(self, operation: str, **args: Any) -> dict[str, Any]:
        """Plan it, and carry it out: the outcome."""
        plan = await self.plan(operation, **args)
        await self.say(t="do", id=10, token=plan["token"])
        return await self.hear("done", 10)


@attrs.define
class Console:
    """The nodes, and the first one's web port."""

    nodes: list[Node]
    port: int
    client: Client

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def ask(self, path: str, *headers: str, method: str = "GET", body: bytes = b"") -> Answer:
        """One request on a connection of its own."""
        lines = [f"{method} {path} HTTP/1.1", "Connection: close", *headers]
        if not any(line.lower().startswith("host:") for line in headers):
            lines.append(f"Host: 127.0.0.1:{self.port}")
        if body:
            lines.append(f"Content-Length: {len(body)}")
        data = "".join(f"{line}\r\n" for line in [*lines, ""]).encode() + body
        with trio.fail_after(20):
            async with await trio.open_tcp_stream("127.0.0.1", self.port) as stream:
                await stream.send_all(data)
                return taken_apart(await everything(stream))

    async def knock(self, *headers: str) -> int:
        """The status of an upgrade with these headers; the socket is left at once."""
        lines = [
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            f"Sec-WebSocket-Protocol: {PROTOCOL}",
        ]
        data = "".join(f"{line}\r\n" for line in ["GET /socket HTTP/1.1", *lines])
        names = [line.partition(":")[0].lower() for line in headers]
        data += "Connection: Upgrade\r\n"
        data += "" if "host" in names else f"Host: 127.0.0.1:{self.port}\r\n"
        data += "".join(f"{line}\r\n" for line in headers) + "\r\n"
        with trio.fail_after(20):
            async with await trio.open_tcp_stream("127.0.0.1", self.port) as stream:
                await stream.send_all(data.encode("latin-1"))
                return int((await stream.receive_some(4096)).split()[1])

    @contextlib.asynccontextmanager
    async def browser(self, *headers: tuple[str, str]) -> AsyncIterator[Browser]:
        """A browser whose page is the console's own."""
        own = [("Origin", self.origin), *headers]
        given = [(name.encode(), value.encode()) for name, value in own]
        async with open_websocket(
            "127.0.0.1", self.port, "/socket", use_ssl=False, subprotocols=[PROTOCOL],
            extra_headers=given,
        ) as socket:  # fmt: skip
            try:
                yield Browser(socket)
            finally:
                await trio.aclose_forcefully(socket._stream)  # the library leaves some open

    async def cookie(self, password: str) -> tuple[str, str]:
        """The header of a browser that has logged in."""
        answer = await self.ask(
            "/login", f"Origin: {self.origin}", method="POST", body=f"password={password}".encode()
        )
        assert answer.status == 303
        return "Cookie", answer.headers["set-cookie"].partition(";")[0]


async def console(nursery: trio.Nursery, count: int = 1, **directives: Any) -> Console:
    """A cluster of which each node serves a console."""
    cleanup = contextlib.ExitStack()
    doors: list[up.Task] = []
    nodes = []
    for _ in range(count):
        directives.setdefault("maxmemory", MAXMEMORY)
        config = Config(port=free_port(), web_port=free_port(), bind=("127.0.0.1",), **directives)
        nodes.append(up.node(config, None, cleanup, doors))
        await nursery.start(nodes[-1].run)
    if not directives.get("requirepass"):
        await joined(nodes)
    for door in doors:
        nursery.start_soon(door)
    config = nodes[0].state.config
    word = config.requirepass.decode()
    client = Client(f"disque://{f':{word}@' if word else ''}127.0.0.1:{config.port}")
    await nursery.start(_closed_at_the_end, cleanup, client)
    return Console(nodes, config.web_port, client)


async def _closed_at_the_end(
    cleanup: contextlib.ExitStack,
    client: Client,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    task_status.started()
    try:
        await trio.sleep_forever()
    finally:
        with trio.CancelScope(shield=True):
            await client.close()
        cleanup.close()
