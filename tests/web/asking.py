"""A node with a web port on the loopback, and how to ask it."""

import attrs
import trio

from disque_trio.net.listeners import Listeners
from disque_trio.serving.server import web_tasks
from disque_trio.statemachine.config import Config
from tests.net.live import Live, listening, live


@attrs.define
class Answer:
    """A response, taken apart."""

    status: int
    headers: dict[str, str]
    body: bytes


@attrs.define
class Web:
    """The node and the port."""

    live: Live
    port: int

    async def ask(self, path: str, *headers: str, method: str = "GET", body: bytes = b"") -> Answer:
        """One request on a connection of its own. A Host header of yours replaces the usual."""
        lines = [f"{method} {path} HTTP/1.1", "Connection: close", *headers]
        if not any(line.lower().startswith("host:") for line in headers):
            lines.append(f"Host: 127.0.0.1:{self.port}")
        if body:
            lines.append(f"Content-Length: {len(body)}")
        head = "".join(f"{line}\r\n" for line in [*lines, ""])
        return taken_apart(await self.send(head.encode() + body))

    async def send(self, data: bytes) -> bytes:
        """What comes back for these bytes, until the connection ends."""
        with trio.fail_after(30):
            async with await self.open() as stream:
                await stream.send_all(data)
                return await everything(stream)

    async def open(self) -> trio.SocketStream:
        return await trio.open_tcp_stream("127.0.0.1", self.port)

    async def log_in(self, password: str, *headers: str) -> Answer:
        own = headers or (f"Origin: http://127.0.0.1:{self.port}",)
        return await self.ask("/login", *own, method="POST", body=f"password={password}".encode())


async def everything(stream: trio.abc.ReceiveStream) -> bytes:
    """All that comes up to the end."""
    data = b""
    try:
        while piece := await stream.receive_some():
            data += piece
    except trio.BrokenResourceError:
        pass
    return data


def taken_apart(data: bytes) -> Answer:
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    pairs = [line.partition(": ") for line in lines]
    return Answer(int(first.split()[1]), {name.lower(): value for name, _, value in pairs}, body)


async def web(nursery: trio.Nursery, config: Config | None = None) -> Web:
    """A node whose web port is served, as `server` does it."""
    sock = listening()
    port = int(sock.getsockname()[1])
    known = attrs.evolve(config or Config(), web_port=port)
    node = await live(nursery, known)
    [door] = web_tasks(node.node, Listeners(web=[sock]), node.event_loop)
    nursery.start_soon(door)
    return Web(node, port)
