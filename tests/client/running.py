"""One test for three clients: on Trio, on asyncio, and blocking."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import anyio

from disque_trio.client.address import Cluster
from disque_trio.client.blocking import BlockingClient
from disque_trio.client.client import Client
from tests.client.fakenode import FakeNode

KINDS: Final = ("trio", "asyncio", "blocking")
Conversation = Callable[[Any], Awaitable[None]]


def url(*nodes: FakeNode) -> str:
    """The address of these nodes."""
    return "disque://" + ",".join(f"127.0.0.1:{node.port}" for node in nodes)


class _Awaitable:
    """A blocking client whose methods can be awaited."""

    def __init__(self, client: BlockingClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        async def called(*args: Any, **options: Any) -> Any:
            return method(*args, **options)

        return called if callable(method) else method


@contextlib.asynccontextmanager
async def _opened(kind: str, url: str | Cluster, **options: Any) -> AsyncIterator[Any]:
    if kind == "blocking":
        with BlockingClient(url, **options) as blocking:
            yield _Awaitable(blocking)
    else:
        async with Client(url, **options) as client:
            yield client


def talk(kind: str, url: str | Cluster, conversation: Conversation, **options: Any) -> None:
    """Hold a conversation with a client of this kind."""

    async def held() -> None:
        with anyio.fail_after(120):
            async with _opened(kind, url, **options) as client:
                await conversation(client)

    anyio.run(held, backend="asyncio" if kind == "asyncio" else "trio")
