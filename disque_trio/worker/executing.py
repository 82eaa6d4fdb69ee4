"""Where a handler runs: in the event loop, or in a thread."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, Final, Protocol

import anyio.to_thread

from disque_trio.worker.handling import Run


class Executor(Protocol):
    """Runs handlers."""

    async def run(
        self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], run: Run, /
    ) -> object:
        """The result of the function. Raises what it raises."""
        ...


class LoopExecutor:
    """Runs them in the event loop: `async def`, and `def` that is quick."""

    async def run(
        self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], _: Run, /
    ) -> object:
        """The result of the function."""
        result = fn(*args, **kwargs)
        return await result if iscoroutinefunction(fn) else result


class ThreadExecutor:
    """Runs `def` in threads. A thread cannot be ended: its run ends when the function does."""

    async def run(
        self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], _: Run, /
    ) -> object:
        """The result of the function."""
        return await anyio.to_thread.run_sync(partial(fn, *args, **kwargs))


EXECUTORS: Final[Mapping[str, Executor]] = {"loop": LoopExecutor(), "thread": ThreadExecutor()}
