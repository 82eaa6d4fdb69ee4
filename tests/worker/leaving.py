"""Handlers that enter a cancel scope, nursery or task group and do not leave it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import anyio
import sniffio
import trio

Handler = Callable[[], Awaitable[object]]


async def a_scope() -> None:
    """A scope that nothing cancels."""
    anyio.CancelScope().__enter__()


async def a_deadline() -> None:
    """A scope that is cancelled a moment later."""
    anyio.move_on_after(0.01).__enter__()


async def a_deadline_that_is_over() -> None:
    """A scope that has cancelled the handler."""
    anyio.move_on_after(0.01).__enter__()
    await anyio.sleep(60)


async def a_cancelled_scope() -> None:
    """A scope that is cancelled already."""
    anyio.CancelScope().__enter__().cancel()


async def three_scopes() -> None:
    """The innermost one is shielded."""
    anyio.move_on_after(0.01).__enter__()
    anyio.CancelScope().__enter__()
    anyio.CancelScope(shield=True).__enter__()


async def a_group() -> None:
    """An empty task group."""
    await anyio.create_task_group().__aenter__()


async def a_group_with_tasks() -> None:
    """Some of them fail, and some go on."""
    group = await anyio.create_task_group().__aenter__()
    group.start_soon(anyio.sleep, 60)
    group.start_soon(_fails)
    anyio.CancelScope().__enter__()


async def a_group_and_an_error() -> None:
    """It fails, too."""
    group = await anyio.create_task_group().__aenter__()
    group.start_soon(anyio.sleep, 60)
    raise ValueError("no")


async def a_generator() -> None:
    """An asynchronous generator is abandoned within its task group."""
    async for _ in _numbers():
        break


async def a_nursery() -> None:
    """Of Trio itself."""
    if sniffio.current_async_library() == "trio":
        nursery = await trio.open_nursery().__aenter__()
        nursery.start_soon(trio.sleep, 60)
        nursery.start_soon(_fails)
        trio.move_on_after(0.01).__enter__()
    else:
        await a_group_with_tasks()


async def a_stubborn_task() -> None:
    """A task that takes a while to end."""
    group = await anyio.create_task_group().__aenter__()
    group.start_soon(_stubborn)
    await anyio.sleep(0)


async def _fails() -> None:
    await anyio.sleep(0)
    raise ValueError("in a task")


async def _stubborn() -> None:
    with anyio.CancelScope(shield=True):
        await anyio.sleep(0.05)


async def _numbers() -> AsyncIterator[int]:
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep, 60)
        yield 1


HANDLERS: Final[tuple[Handler, ...]] = (
    a_scope,
    a_deadline,
    a_deadline_that_is_over,
    a_cancelled_scope,
    three_scopes,
    a_group,
    a_group_with_tasks,
    a_group_and_an_error,
    a_generator,
    a_nursery,
    a_stubborn_task,
)
