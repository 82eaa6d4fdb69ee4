"""Tasks: declared functions, with the types of their arguments and results."""

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from functools import update_wrapper
from importlib import import_module
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    TypeVar,
    Unpack,
    cast,
    overload,
)

import attrs

from disque_trio.worker.arguments import Arguments
from disque_trio.worker.context import Job, current_job
from disque_trio.worker.enqueue import Call, Enqueuer, OpenCall
from disque_trio.worker.enqueued import Enqueued
from disque_trio.worker.handles import BlockingJobHandle, JobHandle
from disque_trio.worker.options import Definition, JobOptions, check_options, unique_key

if TYPE_CHECKING:
    from disque_trio.worker.operating.asking import Asking

P = ParamSpec("P")
R = TypeVar("R")
State = TypeVar("State")
Iterated = Callable[P, AsyncIterator[Any]]
"""An `async def` that yields checkpoints."""


@attrs.define(eq=False, repr=False, slots=False)
class Prepared(Generic[P, R]):
    """A task with options for its next jobs (`using`)."""

    definition: Definition
    arguments: Arguments
    enqueuer: Enqueuer
    changes: Mapping[str, Any]

    def using(self, **options: Unpack[JobOptions]) -> "Prepared[P, R]":
        """A copy with these options. Raises `ValueError` for invalid options, and `TypeError` for
        unknown ones."""
        definition = self.definition.using(options)
        return Prepared(definition, self.arguments, self.enqueuer, {**self.changes, **options})

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """A call with these arguments, for `App.enqueue_many`, chains, batches and flows."""
        return Call(self.definition, self.arguments, args, kwargs, self.enqueuer, self.changes)

    def partial(self, *args: Any, **kwargs: Any) -> "OpenCall[P, R]":
        """A later step of a chain: its first argument is the return value of the previous step.
        Type checkers check its type. The other arguments are checked when the chain is added."""
        step: Any = self.call
        return cast("OpenCall[P, R]", attrs.evolve(step(*args, **kwargs), is_open=True))

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Enqueued[R]:
        """Add a job. The app must be open. Raises `NotEncodableError` for arguments that do not
        fit, `ValueError` for invalid options, `NotOpenError`, `EnqueueUnknownError`, and errors of
        the client and of hooks."""
        return await self.enqueuer.add(self.enqueuer.request(self.call(*args, **kwargs)))

    async def find(self, unique: str) -> JobHandle | None:
        """The job with this `unique` key of the task, in the task's queue; None if no reachable
        node has one. The app must be open. Raises `ValueError` for an empty key."""
        return await _find(self, unique, self.enqueuer.client)

    @property
    def blocking(self) -> "Blocking[P, R]":
        """The same methods for threads and code without an event loop."""
        return Blocking(self)


@attrs.frozen(eq=False)
class Blocking(Generic[P, R]):
    """Adds jobs with the client of the current thread."""

    _prepared: Prepared[P, R]

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Enqueued[R]:
        """Add a job (`Prepared.enqueue`)."""
        enqueuer = self._prepared.enqueuer
        return enqueuer.add_blocking(enqueuer.request(self._prepared.call(*args, **kwargs)))

    def find(self, unique: str) -> BlockingJobHandle | None:
        """The job with this key (`Prepared.find`)."""
        asking = import_module("disque_trio.worker.operating.asking")
        client = asking.InSteps(self._prepared.enqueuer.blocking_client)
        found: JobHandle | None = asking.finished(_find(self._prepared, unique, client))
        return None if found is None else found.blocking


async def _find(prepared: Prepared[..., Any], unique: str, client: "Asking") -> JobHandle | None:
    check_options({"unique": unique})
    definition = prepared.definition
    found = definition.options.queue, unique_key(definition.name, unique, b"")
    key_holders = import_module("disque_trio.worker.operating.key_holders")
    holder = await key_holders.key_holder(client, found)
    if holder is None:
        return None
    return JobHandle(holder.id, enqueuer=prepared.enqueuer, places=(found,))


@attrs.define(eq=False, repr=False, slots=False)
class Task(Prepared[P, R]):
    """A declared function (`App.task`). Call it to run the function here, or `enqueue` it to add a
    job."""

    fn: Callable[..., Any]

    def __attrs_post_init__(self) -> None:
        wrapped: Any = self
        update_wrapper(wrapped, self.fn, updated=())

    @property
    def name(self) -> str:
        """The name of the task in bodies."""
        return self.definition.name

    def _call(self, args: Any, kwargs: Mapping[str, Any]) -> Any:
        first = (current_job(),) if self.definition.is_bound else ()
        return self.fn(*first, *args, **kwargs)


@attrs.define(eq=False, repr=False, slots=False)
class AsyncTask(Task[P, R]):
    """A declared `async def`."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Call the function directly. A function with `bind` receives the current job."""
        called: Coroutine[Any, Any, R] = self._call(args, kwargs)
        return called


@attrs.define(eq=False, repr=False, slots=False)
class SyncTask(Task[P, R]):
    """A declared `def`."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function directly. A function with `bind` receives the current job."""
        returned: R = self._call(args, kwargs)
        return returned


class Declare(Protocol):
    """Makes a task of a function."""

    @overload
    def __call__(  # type: ignore[overload-overlap]  # the first that fits applies
        self, fn: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncTask[P, R]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, fn: Iterated[P], /
    ) -> AsyncTask[P, None]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> SyncTask[P, R]: ...


class DeclareBound(Protocol[State]):
    """Makes a task of a function whose first argument is the job."""

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, fn: Callable[Concatenate[Job[State], P], Coroutine[Any, Any, R]], /
    ) -> AsyncTask[P, R]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, fn: Callable[Concatenate[Job[State], P], AsyncIterator[Any]], /
    ) -> AsyncTask[P, None]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[Job[State], P], R], /) -> SyncTask[P, R]: ...


def declare(
    enqueuer: Enqueuer, definition: Definition, fn: Callable[..., Any], *, is_async: bool
) -> Task[..., Any]:
    """The task of a function. Raises `UnfitTypeError`."""
    arguments = Arguments(definition.name, fn, int(definition.is_bound))
    arguments.check_declared(enqueuer.form)
    kind = AsyncTask if is_async else SyncTask
    return kind(definition, arguments, enqueuer, {}, fn)
