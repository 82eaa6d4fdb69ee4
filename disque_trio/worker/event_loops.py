"""Event loops of asyncio and Trio: which one runs here, the way into it, and what lives as long."""

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
    """The event loop that runs here: a loop of asyncio, or a token of Trio. Raises `RuntimeError`
    if none does."""
    return anyio.lowlevel.current_token().native_token


def in_loop() -> Callable[..., Any]:
    """Of the event loop that runs here: calls a function in it soon, from anywhere."""
    loop = current_loop()
    called: Callable[..., Any] = getattr(loop, "run_sync_soon", None) or loop.call_soon_threadsafe
    return called


def keep(thing: object) -> Callable[[], object]:
    """Keep this alive as long as the event loop that runs here; the result ends that earlier.

    A loop of asyncio has no place for it but its timers, which it drops when it is closed. From
    anywhere else the thing would keep the loop alive that it refers to.
    """
    loop = current_loop()
    if hasattr(loop, "call_later"):
        timer = ref(loop.call_later(_EVER_S, _nothing, thing))  # so that the thing is in no cycle
        return lambda: None if (found := timer()) is None else found.cancel()
    kept = _kept_by_trio.setdefault(loop, [])
    kept.append(thing)
    return partial(kept.remove, thing)


def _nothing(_: object) -> None:
    """When 30 years have passed."""


def stray_cancellations() -> Callable[[], int]:
    """Of the task that runs here: how often `asyncio.Task.cancel` was called for it, which scopes
    undo. On Trio nothing but a scope cancels a task."""
    loop = current_loop()
    if not isinstance(loop, asyncio.AbstractEventLoop):
        return int
    task = asyncio.current_task(loop)
    assert task is not None
    return task.cancelling


def references() -> Callable[[], int]:
    """Of the task that runs here, on asyncio: how many references there are to it. A job that has
    left one more behind may cancel the task later: so do `asyncio.timeout` and `asyncio.TaskGroup`
    that were entered and not left. On Trio nobody can, and the number is always the same."""
    loop = current_loop()
    if not isinstance(loop, asyncio.AbstractEventLoop):
        return int
    return partial(sys.getrefcount, asyncio.current_task(loop))


async def absorb_cancellations() -> None:
    """Undo the cancellations of this task that no scope has asked for, on asyncio: code of users
    has cancelled the task that it ran in. Raises those of scopes."""
    task = asyncio.current_task()
    assert task is not None
    while task.cancelling():
        task.uncancel()
    try:
        await asyncio.sleep(0)  # one that is under way arrives here
    except asyncio.CancelledError:
        if anyio.current_effective_deadline() == -math.inf:
            raise
