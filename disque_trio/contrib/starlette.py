"""FastAPI and Starlette: an app of tasks that is open while the web server runs.

Sources: docs/frameworks.md, "FastAPI and Starlette".
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, Final

import anyio

from disque_trio.client.errors import DisqueError
from disque_trio.worker import App
from disque_trio.worker.driver import Worker
from disque_trio.worker.engine.records import SECOND, Queue, Settings

__all__ = ["is_ready", "lifespan"]

Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]
READY_S: Final = 2.0
"""How long `is_ready` waits for a node, in seconds."""


def lifespan(
    tasks: App[Any], inner: Lifespan | None = None, *, worker: bool = False, concurrency: int = 10
) -> Lifespan:
    """A lifespan for `FastAPI(lifespan=…)` that opens the app of tasks, so that request handlers
    can add jobs.

    `inner` is another lifespan, which starts when the app is open; its value is passed on. With
    `worker`, jobs also run in this process, in its event loop and in threads, at most `concurrency`
    at the same time; this is for small sites. When the server stops, running jobs have 20 s to end.
    """

    @asynccontextmanager
    async def entered(web: Any) -> AsyncIterator[Any]:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(tasks)
            if worker:
                await stack.enter_async_context(_working(tasks, concurrency))
            yield await stack.enter_async_context(inner(web)) if inner is not None else None

    return entered


async def is_ready(tasks: App[Any]) -> bool:
    """Does a node answer within two seconds? For the health check of a load balancer."""
    with anyio.move_on_after(READY_S):
        try:
            return bool(await tasks.client.call("PING"))
        except DisqueError:
            pass
    return False


@asynccontextmanager
async def _working(tasks: App[Any], concurrency: int) -> AsyncIterator[None]:
    """Run a worker for the app's jobs and schedules during the block."""
    settings = Settings(
        nodes=tuple(map(str, tasks.cluster.seeds)),
        queues=tuple(Queue(name=name.encode(errors="surrogateescape")) for name in tasks.queues),
        concurrency=concurrency,
        drain=20 * SECOND,
    )
    async with tasks.handler() as handler, anyio.create_task_group() as group:
        running = Worker(settings=settings, handler=handler, cluster=tasks.cluster)
        await group.start(tasks.schedules.keeper().beside, running.run)
        try:
            yield
        finally:
            running.drain()
