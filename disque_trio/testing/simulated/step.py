"""Runs a coroutine step by step: a step lasts from one wait to the next. Between two steps it can
be ended as by SIGKILL, so that none of its code runs any more, not even `finally`.

Tasks that the coroutine has started are only cancelled.
"""

import sysconfig
from collections.abc import Callable, Coroutine, Generator
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar

import attrs
import trio

from disque_trio.worker.stacks import frames_of

Result = TypeVar("Result")
NOT_OF_USERS: Final = (
    str(Path(__file__).parents[2]), sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"),
)  # fmt: skip
"""The directories of code that is not the user's: this package, the standard library, and other
packages."""


class Process(Protocol):
    """The process that runs the steps."""

    @property
    def may_step(self) -> bool:
        """Is the process alive and not suspended?"""
        ...

    async def stepping(self) -> None:
        """Wait until the process may continue. This cannot be cancelled. Raises `trio.Cancelled`
        when the scenario has ended: after that only cancellation handlers may run."""
        ...


@attrs.define(eq=False)
class Steps(Generic[Result]):
    """A coroutine that is run in steps. `before` is called with the number of each step, and once
    more after the coroutine has ended."""

    coroutine: Coroutine[Any, Any, Result]
    process: Process
    before: Callable[["Steps[Any]", int], BaseException | None]
    """May kill or suspend the process. An exception that it returns is raised in the coroutine,
    where it waits."""
    number: int = 0

    def __await__(self) -> Generator[Any, Any, Result]:
        error: BaseException | None = None
        value: Any = None
        while True:
            error = (yield from self._begin_step()) or error
            try:
                trap = self.coroutine.send(value) if error is None else self.coroutine.throw(error)
            except StopIteration as ended:
                yield from self._begin_step()
                result: Result = ended.value
                return result
            error = value = None
            try:
                value = yield trap
            except BaseException as raised:
                error = raised

    def _begin_step(self) -> Generator[Any, Any, BaseException | None]:
        self.number += 1
        injected = self.before(self, self.number)
        if self.process.may_step:
            return injected
        try:
            yield from self.process.stepping().__await__()
        except BaseException as raised:
            return raised
        return injected

    def where(self) -> str:
        """The innermost line of the user's code, where it waits; empty before its start."""
        lines = [
            f"{'/'.join(frame.f_code.co_filename.split('/')[-2:])}:{frame.f_lineno}"
            for frame in frames_of(self.coroutine)
            if not frame.f_code.co_filename.startswith(NOT_OF_USERS)
        ]
        return lines[-1] if lines else ""


@attrs.define(eq=False)
class Brake:
    """Tasks that wait until the process may continue, even if they are cancelled."""

    tasks: list[trio.lowlevel.Task] = attrs.Factory(list)

    async def wait(self) -> None:
        """Wait until `release`."""
        self.tasks.append(trio.lowlevel.current_task())
        await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.FAILED)

    def release(self) -> None:
        """Let all tasks continue."""
        tasks, self.tasks = self.tasks, []
        for task in tasks:
            trio.lowlevel.reschedule(task)
