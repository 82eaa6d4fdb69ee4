"""Finds cancel scopes, nurseries and task groups that a function has entered and not left.

The task that ran the function continues inside of them: their deadlines cancel what runs there
next, and no outer scope can be left. Trio and anyio have no public API for open scopes, so this
reads private attributes (`tests/worker/test_open_scopes.py`).
"""

import asyncio
import math
from contextlib import suppress
from functools import cache
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Final

import anyio

from disque_trio.client.errors import DisqueError
from disque_trio.worker.describing import is_of

_TEXT: Final = (
    "the handler has left {} open, which would cancel other jobs: leave each cancel scope, nursery "
    "and task group that you enter, by `with` or `async with`"
)


class LeftOpenError(DisqueError):
    """A handler has returned without leaving a cancel scope, nursery or task group that it
    entered."""


_LOOK_S: Final = 0.001


class OpenScopes:
    """The current position of a task in its cancel scopes."""

    __slots__ = ("_held", "_name", "outer")

    def __init__(self, held: object, name: str) -> None:
        self._held = held
        self._name = name
        self.outer = self.innermost()

    def innermost(self) -> Any:
        """The innermost scope, for comparison."""
        return getattr(self._held, self._name, None)

    async def leave(self, error: BaseException | None = None) -> None:
        """Leave all scopes that were entered since, and cancel what runs in them. Raises
        `LeftOpenError`. If `error` was raised, and is not a cancellation by an open scope, add a
        note to it instead."""
        left: list[str] = []
        while (inner := self.innermost()) is not self.outer and inner is not None:
            left.append(await (_leave_trio if hasattr(inner, "_scope") else _leave_asyncio)(inner))
        text = _TEXT.format(" and ".join(left))
        if error is not None and not _is_stray(error):
            with suppress(BaseException):  # code of users
                error.add_note(text)
            return
        raise LeftOpenError(text) from error  # no variable, which would make a cycle


def _is_stray(error: BaseException) -> bool:
    is_cancellation = is_of(error, anyio.get_cancelled_exc_class())
    return is_cancellation and anyio.current_effective_deadline() > -math.inf


def here() -> OpenScopes:
    """The position of the current task."""
    loop = asyncio._get_running_loop()
    task: Any = None if loop is None else asyncio.current_task(loop)
    if task is None:
        return OpenScopes(_trio().current_task(), "_cancel_status")
    return OpenScopes(_states().get(task), "cancel_scope")


@cache
def _trio() -> Any:
    return import_module("trio").lowlevel


@cache
def _states() -> Any:
    return import_module("anyio._backends._asyncio")._task_states


async def _leave_trio(status: Any) -> str:
    task, scope = _trio().current_task(), status._scope
    nursery = task.child_nurseries[-1] if task.child_nurseries else None
    if nursery is None or nursery.cancel_scope is not scope:
        scope.__exit__(None, None, None)
        return "a cancel scope"
    count = len(nursery.child_tasks)
    # If the nursery was entered in an asynchronous generator that was not closed, Trio may leave it
    # again in another task. So it gets another parent, of which it is the last nursery.
    nursery._closed, nursery._parent_task = True, SimpleNamespace(_child_nurseries=[nursery])
    task._child_nurseries.pop()
    scope.cancel()
    with anyio.CancelScope(shield=True):
        while nursery.child_tasks:
            await anyio.sleep(_LOOK_S)
    scope.__exit__(None, None, None)
    return f"a nursery (tasks in it: {count})"


async def _leave_asyncio(scope: Any) -> str:
    tasks = [each for each in scope._tasks if each is not asyncio.current_task()]
    if tasks:
        scope.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait(tasks)
    scope.__exit__(None, None, None)
    return f"a task group (tasks in it: {len(tasks)})" if tasks else "a cancel scope"
