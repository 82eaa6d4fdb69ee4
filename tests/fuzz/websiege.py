"""A node's web port under siege: bytes that are no HTTP, handshakes that are none, frames that mean
nothing.

The node must not end, report a bug of its own, or hold more memory than it should, and it must
serve others.
"""

import contextlib
import json
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import attrs
import trio
from trio_websocket import ConnectionClosed, HandshakeError, open_websocket

from disque_trio.observe.operations import OPERATIONS
from disque_trio.web.api.routes import PREFIX
from disque_trio.web.api.table import ROUTES
from disque_trio.web.upgrade import PROTOCOL
from tests.cluster.processes import Fleet, free_port
from tests.fuzz.mutation import mutated

MOST_MIB: Final = 200.0
_NAMES: Final = ("overview", "cluster", "queues", "queue", "job", "workers", "dead", "later", "\0")
_OPERATIONS: Final = tuple(each for each in OPERATIONS if not each.startswith("workers"))
_VALUES: Final[tuple[Any, ...]] = (
    None, True, -1, 0, 1, 1 << 70, 1e308, "", "q", "\ud800", "\0", "x" * 3000, [], {}, [[]],
    "D-", "D-feffbb37-ZGc69WD8fLci83yCbV9KjIGy-05a1", "out", "jobs", "name", "*[", "127.0.0.1:1",
)  # fmt: skip
_ROUTES: Final = tuple(each for each in ROUTES if not each.path.startswith("/operations/workers"))
_PLACE: Final = re.compile(r"\{\w+\}")
_PARTS: Final = (
    "q", "1", "-1", "true", "%00", "%ff", "%", "a%2Fb", "..", "x" * 3000, "1e9",
    "D-feffbb37-ZGc69WD8fLci83yCbV9KjIGy-05a1", "D-feffbb37-ZGc69WD8fLci83yCbV9KjIGy-05a1@x",
)  # fmt: skip
_FIELDS: Final = (
    "name", "name_b64", "queue", "queue_b64", "id", "sort", "desc", "match", "only", "page",
    "bodies", "side", "reason", "key", "rate", "limit", "node", "client", "worker", "address",
)  # fmt: skip


@attrs.define
class WebOutcome:
    """What came of it."""

    attacks: Counter[str] = attrs.Factory(Counter)
    most_mib: float = 0.0


@attrs.frozen
class Hostile:
    """One hostile client."""

    port: int
    rng: random.Random

    @property
    def head(self) -> bytes:
        """Of a handshake that is answered."""
        return (
            f"GET /socket HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
            f"Origin: http://127.0.0.1:{self.port}\r\nConnection: Upgrade\r\n"
            "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            f"Sec-WebSocket-Protocol: {PROTOCOL}\r\n\r\n"
        ).encode()

    async def _send(self, data: bytes) -> None:
        async with await trio.open_tcp_stream("127.0.0.1", self.port) as stream:
            with trio.move_on_after(0.2):
                await stream.send_all(data)
                while await stream.receive_some():
                    pass

    async def noise(self) -> None:
        """Bytes that are nothing."""
        await self._send(self.rng.randbytes(self.rng.randrange(1, 600)))

    async def heads(self) -> None:
        """Requests with something wrong."""
        login = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\npassword="
        seeds = [self.head, login, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"]
        await self._send(mutated(self.rng, self.rng.choice(seeds), seeds))

    async def frames(self) -> None:
        """A good handshake, and then frames of noise."""
        await self._send(self.head + self.rng.randbytes(self.rng.randrange(1, 400)))

    async def words(self) -> None:
        """Frames that are read, and mean nothing."""
        headers = [(b"Origin", b"http://127.0.0.1:%d" % self.port)]
        try:
            async with open_websocket(
                "127.0.0.1", self.port, "/socket", use_ssl=False, subprotocols=[PROTOCOL],
                extra_headers=headers,
            ) as socket:  # fmt: skip
                with trio.move_on_after(0.3):
                    for _ in range(20):
                        await socket.send_message(json.dumps(self._frame()))
                        await socket.get_message()
        except ConnectionClosed:
            pass

    def _frame(self) -> dict[str, Any]:
        draw = self.rng.choice
        args = {draw(_FIELDS): draw(_VALUES) for _ in range(self.rng.randrange(4))}
        match self.rng.randrange(5):
            case 0:
                return {"t": "do", "id": 1, "operation": draw(_OPERATIONS), "args": args}
            case 1:
                return {draw(["t", "id", "topic"]): draw(_VALUES), "args": draw(_VALUES)}
            case _:
                topic = draw(_NAMES)
                return {"t": "sub", "id": draw([1, 2, "x"]), "topic": topic, "args": args}

    async def calls(self) -> None:
        """Requests of the API, with values of any kind."""
        draw = self.rng.choice
        route = draw(_ROUTES)
        path = _PLACE.sub(lambda _: draw(_PARTS), PREFIX + route.path)
        fields = [each.name for each in (*route.query, *route.body)] or ["x"]
        words = [f"{draw(fields)}={draw(_PARTS)}" for _ in range(self.rng.randrange(3))]
        given = {draw(fields): draw(_VALUES) for _ in range(self.rng.randrange(4))}
        body = json.dumps(given).encode() if self.rng.random() < 0.9 else self.rng.randbytes(99)
        head = (
            f"{route.method} {path}?{'&'.join(words)} HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Type: {draw(['application/json', 'text/plain', ''])}\r\n"
            f"Content-Length: {len(body) + draw([0, 0, 0, -1, 1])}\r\n\r\n"
        )
        await self._send(head.encode("latin-1", "replace") + body)

    async def large(self) -> None:
        """More than there may be."""
        await self._send(self.head + b"\x82\xff" + (1 << 40).to_bytes(8, "big") + b"x" * 5000)


async def harass(port: int, seed: int, until: float, attacks: Counter[str]) -> None:
    """Attack the port again and again."""
    hostile = Hostile(port, random.Random(seed))
    ways: dict[str, Callable[[], Awaitable[None]]] = {
        each.__name__: each
        for each in (
            hostile.noise,
            hostile.heads,
            hostile.frames,
            hostile.words,
            hostile.calls,
            hostile.large,
        )
    }
    while time.monotonic() < until:
        name = hostile.rng.choice(list(ways))
        attacks[name] += 1
        with contextlib.suppress(OSError, HandshakeError, trio.BrokenResourceError):
            await ways[name]()


def besiege_web(seconds: float, seed: int, clients: int = 4) -> WebOutcome:
    """Hold out so long. Raises AssertionError for whatever must not happen."""
    with tempfile.TemporaryDirectory() as name:
        outcome, port, fleet = WebOutcome(), free_port(), Fleet(Path(name))

        async def all_at_once() -> None:
            until = time.monotonic() + seconds
            async with trio.open_nursery() as nursery:
                for number in range(clients):
                    nursery.start_soon(harass, port, seed + number, until, outcome.attacks)
                while time.monotonic() < until:
                    assert server.client.text("PING") == b"PONG"
                    outcome.most_mib = max(outcome.most_mib, server.rss_mib())
                    await trio.sleep(0.2)

        try:
            server = fleet.server("--web-port", str(port))
            trio.run(all_at_once)
            log = "".join(each.read_text("utf-8", "replace") for each in Path(name).rglob("*log*"))
            assert "this is a bug" not in log, log[-4000:]
            assert outcome.most_mib < MOST_MIB, f"the node has {outcome.most_mib:.0f} MiB"
        finally:
            fleet.close()
    return outcome


def told(outcome: WebOutcome) -> str:
    """In words."""
    counts = ", ".join(f"{count:,} of {name}" for name, count in sorted(outcome.attacks.items()))
    return f"web: {counts}; resident memory: {outcome.most_mib:.0f} MiB at most"
