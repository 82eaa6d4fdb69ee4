"""Runs a worker on Trio or on asyncio, with nodes that the test plays."""

import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

import anyio
import attrs
from anyio.abc import ByteStream

from disque_trio.client.address import Address, Cluster
from disque_trio.worker.driver import Worker
from disque_trio.worker.engine.records import (
    MILLI,
    Done,
    Outcome,
    Queue,
    Settings,
)
from disque_trio.worker.guarded_loop import GuardedLoop, guarded
from disque_trio.worker.handler import JobHandler
from disque_trio.worker.protocol import Run
from tests.worker.played import PlayedNode

KINDS: Final = ("trio", "asyncio")
HOUR: Final = 3600 * 10**6
TOKEN: Final = b"@" + b"a" * 20
Body = Callable[[Run], Awaitable[Outcome]]
Story = Callable[[Worker], Coroutine[Any, Any, None]]


async def done(_: Run) -> Outcome:
    """A job that ends at once."""
    return Done()


async def for_ever(_: Run) -> Outcome:
    """A job that never ends, and obeys."""
    await anyio.sleep_forever()
    return Done()


@attrs.define(eq=False)
class Doing:
    """A handler."""

    body: Body = done
    runs: list[Run] = attrs.Factory(list)
    _begun: anyio.Event | None = None

    async def __call__(self, run: Run) -> Outcome:
        self.runs.append(run)
        if self._begun is not None:
            self._begun.set()
        return await self.body(run)

    async def begun(self, count: int = 1) -> None:
        """Wait until so many have begun."""
        while len(self.runs) < count:
            self._begun = anyio.Event()
            await self._begun.wait()


def play(
    kind: str,
    story: Story,
    *nodes: PlayedNode,
    handler: Doing | JobHandler | None = None,
    limit: int = 0,
    **more: Any,
) -> int:
    """Run a worker while the story is told; how it ended."""
    by_name = {str(node.address): node for node in nodes}
    password = more.pop("password", None)
    concurrency = more.pop("concurrency", 10)
    seeds = more.pop("seeds", len(nodes))
    drain = more.pop("drain", HOUR)

    async def connect(address: Address, _: float) -> ByteStream:
        await anyio.lowlevel.checkpoint()
        return by_name[str(address)].connected()

    async def played() -> int:
        cluster = Cluster([node.address for node in nodes[:seeds]], password)
        worker = Worker(
            settings=Settings(
                nodes=tuple(map(str, cluster.seeds)),
                queues=(Queue(name=b"q", limit=limit),),
                concurrency=concurrency,
                drain=drain,
                abort=100 * MILLI,
            ),
            handler=handler or Doing(),
            cluster=cluster,
            **{"connect": connect, **more},
        )
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(anyio.fail_after(60))
            if isinstance(handler, JobHandler):
                await stack.enter_async_context(handler)
            stack.enter_context(guarded())
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(story, worker)
                status = await worker.run()
        return status

    own = {"loop_factory": GuardedLoop} if kind == "asyncio" else {}
    return anyio.run(played, backend=kind, backend_options=own)
