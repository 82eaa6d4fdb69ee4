"""Whether work lets others have their turn."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

Result = TypeVar("Result")


async def turns_beside(work: Callable[[], Awaitable[Result]]) -> tuple[int, Result]:
    """How many turns another task has while this is done, and the result."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        result = await work()
        nursery.cancel_scope.cancel()
    return turns, result
