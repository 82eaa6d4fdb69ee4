"""Selects the executor of a task: the event loop, a thread, or a process."""

import asyncio
import concurrent.futures
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from inspect import iscoroutinefunction
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, Final, Protocol

import anyio

from disque_trio.client.errors import DisqueError
from disque_trio.worker import open_scopes
from disque_trio.worker.context import Job
from disque_trio.worker.engine.records import Reason
from disque_trio.worker.exceptions import InterruptedJobError, JobTimeoutError
from disque_trio.worker.executors.frames import name_of
from disque_trio.worker.executors.processes import ProcessExecutor
from disque_trio.worker.executors.threads import ThreadExecutor
from disque_trio.worker.middleware import Body
from disque_trio.worker.options import Definition
from disque_trio.worker.protocol import Run

_UNRUN: Final[dict[type, str]] = {
    CoroutineType: "a coroutine",
    GeneratorType: "a generator",
    AsyncGeneratorType: "an asynchronous generator",
    asyncio.Future: "a future",
    asyncio.Task: "a task that runs",
    concurrent.futures.Future: "a future",
}
"""Return values that show that a function has not done its work, by exact type."""


class UnrunError(DisqueError):
    """A function has returned a coroutine, a generator or a future, which nothing runs or
    awaits."""


class Executor(Protocol):
    """Runs functions."""

    async def run(
        self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], run: Run, /
    ) -> object:
        """Run the function and return its result. Raises its errors."""
        ...


class LoopExecutor:
    """Runs quick functions in the event loop."""

    async def run(
        self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], _: Run, /
    ) -> object:
        """Run the function and return its result."""
        result: object = fn(*args, **kwargs)
        return result


def of_app(declared: Mapping[str, "int | Executor"]) -> dict[str, Executor]:
    """The executors of an app; a number is a number of threads."""
    return {
        name: ThreadExecutor(each) if isinstance(each, int) else each
        for name, each in declared.items()
    }


def executors(threads: int, processes: int) -> dict[str, Executor]:
    """The built-in executors, by name."""
    return {
        "loop": LoopExecutor(),
        "thread": ThreadExecutor(threads),
        "process": ProcessExecutor(processes),
    }


def inline() -> dict[str, Executor]:
    """Built-in executors that all run functions in the event loop."""
    return dict.fromkeys(("loop", "thread", "process"), LoopExecutor())


def body_of(
    definition: Definition,
    fn: Callable[..., Any],
    executors: Mapping[str, Executor],
    *,
    is_within: bool = False,
) -> Body:
    """The function that runs a task, with its time limit. `is_within` is true if middleware wraps
    it. Raises `ValueError` for an executor that cannot run it."""
    body = _body_of(definition, fn, executors)
    is_in_loop = iscoroutinefunction(fn) or definition.executor == "loop"
    if is_in_loop and (is_within or definition.timeout is not None):
        body = _closed(body)
    return _limited(definition, body)


def _body_of(
    definition: Definition, fn: Callable[..., Any], executors: Mapping[str, Executor]
) -> Body:
    is_bound = definition.is_bound

    async def called(job: Job[Any], args: Any, kwargs: dict[str, Any]) -> object:
        result: object = await fn(*((job, *args) if is_bound else args), **kwargs)
        return result if type(result) not in _UNRUN else _unrun(result)

    if iscoroutinefunction(fn):
        if definition.executor not in (None, "loop"):
            raise _cannot(definition, "`async def` runs in the loop")
        return called
    name = definition.executor or "thread"
    if name not in executors:
        raise _cannot(definition, f"the executors are {', '.join(executors)}: App(executors=…)")
    if name == "process":
        if is_bound:
            raise _cannot(definition, "bind is impossible there; omit bind")
        name_of(fn)
    run = executors[name].run

    async def body(job: Job[Any], args: Any, kwargs: dict[str, Any]) -> object:
        result = await run(fn, (job, *args) if is_bound else args, kwargs, job.run)
        return result if type(result) not in _UNRUN else _unrun(result)

    return body


def _unrun(result: Any) -> Any:
    """Raise `UnrunError` for a return value that nothing will run: the job is not done. A future
    that has ended is an ordinary value."""
    kind = _UNRUN[type(result)]
    if isinstance(result, asyncio.Future | concurrent.futures.Future):
        if result.done():
            return result
        with suppress(RuntimeError):  # its event loop is closed
            result.cancel()
    elif not isinstance(result, AsyncGeneratorType):
        result.close()
    raise UnrunError(
        f"the function has returned {kind}, so it has not run: declare an `async def` that awaits "
        "all it does; a decorator around it must be an `async def`, too"
    )


def _closed(body: Body) -> Body:
    """The body, which leaves every cancel scope or task group that it has entered (`open_scopes`):
    otherwise outer code could not leave its own. Raises `LeftOpenError`."""

    async def within(job: Job[Any], args: Any, kwargs: dict[str, Any]) -> object:
        scopes = open_scopes.here()
        try:
            value = await body(job, args, kwargs)
        except BaseException as error:
            if scopes.innermost() is not scopes.outer:
                await scopes.leave(error)
            raise
        if scopes.innermost() is not scopes.outer:
            await scopes.leave()
        return value

    return within


def _limited(definition: Definition, body: Body) -> Body:
    """The body, which raises `JobTimeoutError` when the time limit of its task is exceeded:
    middleware receives an error, and is not cancelled itself.

    A value that the body returns after that is dropped. An `async def` has been cancelled, or has
    ignored that; a `def` cannot be interrupted, and the job may have been reported as failed
    meanwhile.
    """
    if definition.timeout is None:
        return body
    text = f"ran longer than {definition.timeout} s"

    async def within(job: Job[Any], args: Any, kwargs: dict[str, Any]) -> object:
        run = job.run
        try:
            with anyio.CancelScope() as run.scope:
                value = await body(job, args, kwargs)
                if run.why is not Reason.TOO_LONG:
                    return value
        except InterruptedJobError as error:
            if run.why is Reason.TOO_LONG:
                raise JobTimeoutError(text) from error
            raise
        finally:
            run.scope = None
        raise JobTimeoutError(text)

    return within


def _cannot(definition: Definition, why: str) -> ValueError:
    return ValueError(f"task {definition.name}: executor {definition.executor}: {why}")
