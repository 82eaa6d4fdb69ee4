"""Cancel scopes, nurseries and task groups that a function has entered and not left.

The task that ran it goes on within them: their deadlines cancel what runs there next, and nothing
around them can be left. Neither Trio nor anyio tells what is open, so their tasks are asked, by
names that are not public (`tests/worker/test_open_scopes.py`).
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
    """A handler has returned within a cancel scope, nursery or task group that it has entered."""


_LOOK_S: Final = 0.001


class OpenScopes:
    """Where a task is among its cancel scopes."""

    __slots__ = ("_held", "_name", "outer")

    def __init__(self, held: object, name: str) -> None:
        self._held = held
        self._name = name
        self.outer = self.innermost()

    def innermost(self) -> Any:
        """The innermost scope, to be compared."""
        return getattr(self._held, self._name, None)

    async def leave(self, error: BaseException | None = None) -> None:
        """Leave all that was entered since, and cancel what runs there. Raises `LeftOpenError`; but
        if this error was raised, and is no cancellation by what was left open, it gets a note."""
        left: list[str] = []
        while (inner := self.innermost()) is not self.outer and inner is not None:
            left.append(await (_leave_trio if hasattr(inner, "_scope") else _leave_asyncio)(inner))
        text = _TEXT.format(" and ".join(left))
        if error is not None and not _is_stray(error):
            with suppress(BaseException):  # code of users
                error.add_note(text)
            return
        raise LeftOpenError(text) from error  # no variable: it would be in a cycle


def _is_stray(error: BaseException) -> bool:
    is_cancellation = is_of(error, anyio.get_cancelled_exc_class())
    return is_cancellation and anyio.current_effective_deadline() > -math.inf


def here() -> OpenScopes:
    """Where the task is that runs here."""
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
    # Trio may leave it, too, in another task, if it was entered in an asynchronous generator that
    # nobody has closed. So it gets another parent, of which that is the last nursery.
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
