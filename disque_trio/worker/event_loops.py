"""Event loops of asyncio and Trio: the current one, calls into it from other threads, and objects
that live as long as it does."""

import asyncio
import math
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary, ref

import anyio
import anyio.lowlevel

_EVER_S: Final = 1e9
_kept_by_trio: Final[WeakKeyDictionary[Any, list[object]]] = WeakKeyDictionary()


def current_loop() -> Any:
    """The current event loop: a loop of asyncio, or a token of Trio. Raises `RuntimeError` if none
    is running."""
    return anyio.lowlevel.current_token().native_token


def in_loop() -> Callable[..., Any]:
    """A function that calls another one in the current event loop soon, from any thread."""
    loop = current_loop()
    called: Callable[..., Any] = getattr(loop, "run_sync_soon", None) or loop.call_soon_threadsafe
    return called


def keep(thing: object) -> Callable[[], object]:
    """Keep an object alive as long as the current event loop. The returned function ends that
    earlier.

    On asyncio, the object is kept by a timer, which the loop drops when it is closed. Any other
    reference would keep the loop alive, because the object refers to the loop.
    """
    loop = current_loop()
    if hasattr(loop, "call_later"):
        timer = ref(loop.call_later(_EVER_S, _nothing, thing))  # weak, to avoid a cycle
        return lambda: None if (found := timer()) is None else found.cancel()
    kept = _kept_by_trio.setdefault(loop, [])
    kept.append(thing)
    return partial(kept.remove, thing)


def _nothing(_: object) -> None:
    """Called after 30 years."""


def stray_cancellations() -> Callable[[], int]:
    """A function that counts the calls of `asyncio.Task.cancel` for the current task; cancel scopes
    undo theirs. On Trio only scopes cancel tasks, and it returns 0."""
    loop = current_loop()
    if not isinstance(loop, asyncio.AbstractEventLoop):
        return int
    task = asyncio.current_task(loop)
    assert task is not None
    return task.cancelling


def references() -> Callable[[], int]:
    """A function that counts the references to the current task, on asyncio. A job that leaves
    another reference behind may cancel the task later, as `asyncio.timeout` and `asyncio.TaskGroup`
    do if they are entered and not left. On Trio this is impossible, and the number is constant."""
    loop = current_loop()
    if not isinstance(loop, asyncio.AbstractEventLoop):
        return int
    return partial(sys.getrefcount, asyncio.current_task(loop))


async def absorb_cancellations() -> None:
    """Undo the cancellations of this task that no scope has requested, on asyncio: code of users
    has cancelled the task in which it ran. Raises cancellations of scopes."""
    task = asyncio.current_task()
    assert task is not None
    while task.cancelling():
        task.uncancel()
    try:
        await asyncio.sleep(0)  # a pending cancellation is raised here
    except asyncio.CancelledError:
        if anyio.current_effective_deadline() == -math.inf:
            raise
