"""Calls of tasks, and the `Enqueuer` of an app, which adds their jobs."""

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Generic,
    ParamSpec,
    Protocol,
    TypeVar,
    overload,
)
from weakref import WeakKeyDictionary

import attrs

from disque_trio import client as clients
from disque_trio.client.address import Cluster
from disque_trio.client.errors import DisqueError
from disque_trio.client.settings import WINDOW
from disque_trio.worker import codec
from disque_trio.worker.addjob import addjob
from disque_trio.worker.arguments import Arguments, Packed
from disque_trio.worker.checks import iterated, shown
from disque_trio.worker.codec import Form
from disque_trio.worker.codecs import Codecs
from disque_trio.worker.copies import NO_COPIES, Copies
from disque_trio.worker.enqueue_many import with_results
from disque_trio.worker.enqueued import Enqueued, Follow, R_co, Wait
from disque_trio.worker.envelope import write
from disque_trio.worker.hooks import Adding, Hooks
from disque_trio.worker.opened import OpenedApp
from disque_trio.worker.options import (
    OF_STEPS,
    Definition,
    Options,
    Place,
    carried_by,
    place_of,
    queue_of_looks,
    unique_key,
)
from disque_trio.worker.requests import Exchange, Request, Result, not_enqueued
from disque_trio.worker.runtime import Runtime, runtime

_OfThread = WeakKeyDictionary[Runtime, tuple[str | Cluster, "clients.BlockingClient"]]
P = ParamSpec("P")
S = TypeVar("S")
A = TypeVar("A")
A_contra = TypeVar("A_contra", contravariant=True)
S_co = TypeVar("S_co", covariant=True)

_DEFAULTS: Final = attrs.asdict(Options())


@attrs.frozen
class Call(Generic[R_co]):
    """A task with its arguments, to be added as a job (`Task.call`). Calls are combined into chains
    by `|`."""

    definition: Definition
    arguments: Arguments
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    enqueuer: "Enqueuer" = attrs.field(repr=False)
    changes: Mapping[str, Any] = attrs.field(factory=dict)
    """Options that differ from those of the task."""
    then: tuple["Call[Any]", ...] = ()
    """The later steps of the chain."""
    is_open: bool = False
    """Is the first argument the return value of the previous step?"""
    headers: Mapping[str, Any] = attrs.field(factory=dict)
    """Headers that this library sets."""

    @property
    def name(self) -> str:
        """The name of the task."""
        return self.definition.name

    @overload
    def __or__(self: "Call[A]", following: "After[A, S]") -> "Call[S]": ...
    @overload
    def __or__(self, following: "Call[S]") -> "Call[S]": ...
    def __or__(self, following: Any) -> Any:
        """Make a chain: `following` is added when this call is done. If `following` is a `partial`
        call, its first argument is the return value of this call; type checkers check its type.
        Raises `ValueError` if a later step has headers of its own."""
        check_call(following)
        one = attrs.evolve(following, then=())
        if one.definition.options.headers:
            raise ValueError(
                f"{one.name}: a later step of a chain has the headers of the first step: set "
                "headers there"
            )
        return attrs.evolve(self, then=(*self.then, one, *following.then))

    def options(self) -> Options:
        """The options of its job, with the group that its arguments determine. Raises
        `ValueError`."""
        options = self.definition.options
        if options.group is None or isinstance(options.group, str):
            return options
        if self.is_open:
            raise ValueError(
                f"{self.name}: the group of a later step that gets a result is unknown until "
                "then: set it with using(group=…)"
            )
        found = options.group(*self.args, **self.kwargs) or None
        try:
            return attrs.evolve(options, group=found)
        except ValueError as error:
            raise ValueError(f"{self.name}: its function has returned {error}") from error

    async def enqueue(self) -> Enqueued[R_co]:
        """Add the job. For a chain this adds the first step; the result is that of the last step.
        Raises as `Task.enqueue`."""
        return await self.enqueuer.add(self.enqueuer.request(self))

    def step(self, form: Form) -> codec.Step:
        """The call as a step of a chain. Raises `NotEncodableError`, and `ValueError` for options
        that a later step cannot have."""
        options, name = self.options(), self.definition.name
        if options.at is not None or options.unique:
            raise ValueError(
                f"{name}: a later step of a chain, or a member of a flow, has neither at nor unique"
            )
        args, kwargs = self.arguments.pack(self.args, dict(self.kwargs), form, int(self.is_open))
        return codec.Step(
            task=name,
            key=options.key or runtime().new_key(),
            args=[codec.read_plain(bytes(each), form) for each in args],
            kwargs={each: codec.read_plain(bytes(part), form) for each, part in kwargs.items()},
            options=step_options(options),
            is_open=self.is_open,
            once=runtime().new_key() if options.key else "",
        )


def check_call(value: object) -> None:
    """Raise `ValueError` if it is no `Call`."""
    if not isinstance(value, Call):
        raise ValueError(f"{shown(value)} is not a call: write task.call(…)")


if TYPE_CHECKING:

    class OpenCall(Generic[P, R_co]):
        """A call whose first argument is the return value of the previous step (`Task.partial`).
        `P` are all parameters of the task."""

        @overload
        def __or__(self: "OpenCall[P, A]", following: "After[A, S]") -> "OpenCall[P, S]": ...
        @overload
        def __or__(self, following: "Call[S]") -> "OpenCall[P, S]": ...
        def __or__(self, following: Any) -> Any:
            """Make a chain (`Call`)."""

        @property
        def takes(self) -> Callable[P, R_co]:
            """For type checkers: they compare the parameters of functions by assignability, but not
            those of classes."""

    class After(Protocol[A_contra, S_co]):
        """A partial call whose first argument may be an `A_contra`."""

        @property
        def takes(self) -> Callable[Concatenate[A_contra, ...], S_co]:
            """As of `OpenCall`."""

else:
    OpenCall = Call  # at run time there is one class of steps


def step_options(options: Options, more: Sequence[str] = ()) -> dict[str, Any]:
    """The options of a job that is added later, and the options in `more`, without defaults."""
    values = {each: getattr(options, each) for each in (*OF_STEPS, *more)}
    return {each: value for each, value in values.items() if value != _DEFAULTS[each]}


Read = Callable[[codec.Part], R_co]


@attrs.define(eq=False, repr=False)
class Enqueuer:
    """Adds the jobs of an app's tasks, with one client per event loop and per thread."""

    url: str | Cluster
    form: Form
    max_body: int
    app: Any = None
    """The app of the tasks."""
    copies: Copies = NO_COPIES
    """The replicas and confirmations of jobs whose task is unknown."""
    hooks: Hooks = attrs.Factory(Hooks)
    codecs: Codecs = attrs.Factory(lambda self: Codecs(max_body=self.max_body), takes_self=True)
    opened: OpenedApp = attrs.field(
        init=False, default=attrs.Factory(lambda self: OpenedApp(self.codecs), takes_self=True)
    )
    _threads: threading.local = attrs.field(init=False, factory=threading.local)

    @property
    def longest(self) -> int:
        """The maximum size of an envelope in bytes, before codecs encode it."""
        return self.codecs.longest if self.codecs.written else self.max_body

    def queue_of_looks(self, queue: str) -> str:
        """The queue of the coordinators and collectors that a worker of this queue runs."""
        return queue if self.app is None else queue_of_looks(queue, self.app.limits)

    # Clients.

    async def open(self) -> None:
        """Open the client of this event loop. Each call needs a call of `close`."""
        await self.opened.open(self.url)

    async def close(self) -> None:
        """Undo one `open`. The last `close` closes the client."""
        await self.opened.close()

    @property
    def client(self) -> "clients.Client":
        """The client of this event loop. Raises `NotOpenError`."""
        return self.opened.get().client

    @property
    def blocking_client(self) -> "clients.BlockingClient":
        """The client of this thread."""
        world = runtime()
        kept: _OfThread | None = getattr(self._threads, "clients", None)
        if kept is None:
            kept = self._threads.clients = WeakKeyDictionary()
        url, client = kept.get(world, (None, None))
        if client is None or url != self.url:  # `App.use` has changed the nodes
            if client is not None:
                client.close()
            kept[world] = self.url, (client := world.blocking_client(self.url))
        return client

    # Jobs.

    async def add(self, request: Request[R_co]) -> Enqueued[R_co]:
        """Add a job. Raises errors of the client, and `EnqueueUnknownError`."""
        return _only(await self.add_requests([request]))

    def add_blocking(self, request: Request[R_co]) -> Enqueued[R_co]:
        """The same, by the client of this thread."""
        return _only(self.add_requests_blocking([request]))

    async def add_requests(
        self, asked: Sequence[Request[R_co] | DisqueError]
    ) -> list[Result[R_co]]:
        """Add these in one pipeline. Returns the results in order."""
        exchange = Exchange(await self.encoded(asked))
        client = self.client
        while commands := exchange.commands:
            try:
                if exchange.pause_s:
                    await import_module("anyio").sleep(exchange.pause_s)
                answers = await client.run_all(commands)
            except DisqueError as error:
                exchange.failed(error)
            else:
                exchange.answered(answers)
        return exchange.results()

    def add_requests_blocking(
        self, asked: Sequence[Request[R_co] | DisqueError]
    ) -> list[Result[R_co]]:
        """The same, by the client of this thread."""
        exchange = Exchange(self.encoded_blocking(asked))
        client = self.blocking_client
        while commands := exchange.commands:
            try:
                if exchange.pause_s:
                    time.sleep(exchange.pause_s)
                answers = client.run_all(commands)
            except DisqueError as error:
                exchange.failed(error)
            else:
                exchange.answered(answers)
        return exchange.results()

    async def add_many(self, calls: Iterable[Call[R_co]]) -> list[Result[R_co]]:
        """Add jobs in pipelines. Returns the results in order. Raises `NotOpenError`, and
        `EnqueueManyError` if it is interrupted by an error, such as one of the calls' iterator."""
        self.opened.get()
        results: list[Result[R_co]] = []
        with with_results(self._windows(iterated(calls, "calls")), results) as windows:
            for some in windows:
                results += await self.add_requests(some)
        return results

    def add_many_blocking(self, calls: Iterable[Call[R_co]]) -> list[Result[R_co]]:
        """The same, by the client of this thread."""
        results: list[Result[R_co]] = []
        with with_results(self._windows(iterated(calls, "calls")), results) as windows:
            for some in windows:
                results += self.add_requests_blocking(some)
        return results

    async def encoded(
        self, asked: Sequence[Request[R_co] | DisqueError]
    ) -> Sequence[Request[R_co] | DisqueError]:
        """The requests with encoded bodies, or the error of a codec."""
        if not self.codecs.blocks:
            return self.encoded_blocking(asked)
        in_thread: Any = import_module("anyio.to_thread").run_sync  # adding needs no anyio
        found: list[Request[R_co] | DisqueError] = await in_thread(
            self.encoded_blocking, asked, abandon_on_cancel=True
        )
        return found

    def encoded_blocking(
        self, asked: Sequence[Request[R_co] | DisqueError]
    ) -> Sequence[Request[R_co] | DisqueError]:
        """The same, without an event loop."""
        if not self.codecs.written:
            return asked
        return [
            each if isinstance(each, DisqueError) else each.encoded(self.codecs) for each in asked
        ]

    def _windows(
        self, calls: Iterator[Call[R_co]]
    ) -> Iterator[Sequence[Request[R_co] | DisqueError]]:
        while some := list(itertools.islice(calls, WINDOW)):
            yield [self._request(call) for call in some]

    def _request(self, call: Call[R_co]) -> Request[R_co] | DisqueError:
        try:
            return self.request(call)
        except DisqueError as error:
            return error
        except Exception as error:  # hooks and values of users may raise anything
            what = call.name if isinstance(call, Call) else f"a {type(call).__qualname__}"
            return not_enqueued(what, error)

    # Requests.

    def request(self, call: Call[R_co]) -> Request[R_co]:
        """The ADDJOB of a call. Raises `NotEncodableError` or `ValueError`."""
        check_call(call)
        options, name = call.options(), call.definition.name
        if call.is_open:
            raise ValueError(f"{name}: `partial` is for later steps of a chain")
        packed = call.arguments.pack(call.args, dict(call.kwargs), self.form)
        adding = self.adding(name, options, options.key or runtime().new_key())
        headers = {
            **adding.headers,
            **call.headers,
            **carried_by(call.definition, call.changes),
        }
        if options.unique:
            arguments = bytes(codec.part(packed, self.form))  # in any order of keywords
            headers["unique"] = unique_key(name, options.unique, arguments)
            if options.unique_for != "until-done":
                headers["keep"] = options.unique_for
        steps = [each.step(self.form) for each in call.then]
        if steps:
            headers["then"] = steps
        last = call.then[-1] if call.then else call
        key = steps[-1].key if steps else adding.key
        places = [place_of(step) for step in steps]
        asked, wait, follow = self.awaited(last, key, places)
        headers |= asked
        found = self.packed(name, adding.key, packed, options, self.form, headers)
        if not steps and wait is None:  # the usual case
            return found
        return attrs.evolve(found, steps=places, wait=wait, follow=follow)

    def adding(self, task: str, options: Options, key: str) -> Adding:
        """The job of a task after the `on_enqueue` hooks. Raises `ValueError`, and errors of the
        hooks."""
        found = Adding(task, options.queue, key, dict(options.headers))
        self.hooks.before_adding(found)
        return found

    def awaited(
        self, last: Call[R_co], key: str, steps: Sequence[Place] = ()
    ) -> tuple[dict[str, Any], Wait[R_co] | None, Follow | None]:
        """Headers that request the result of a call under this key, and functions that wait for it.
        For a chain, `steps` are its later steps."""
        options = last.definition.options
        if options.result_ttl is None:
            return {}, None, None
        if options.key:
            key = runtime().new_key()  # other jobs may have the same key
        return self.awaited_by(last.arguments.read_result, options.result_ttl, key, steps)

    def awaited_by(
        self, read: Read[R_co], result_ttl: int, key: str, steps: Sequence[Place] = ()
    ) -> tuple[dict[str, Any], Wait[R_co] | None, Follow | None]:
        """As `awaited`, with the function that decodes the result."""
        kept, opened = self.kept(result_ttl), self.opened.find()
        if opened is None:
            return kept, partial(self._kept, read), None
        since = opened.results.now()
        wait = partial(self.opened.wait, opened.results, key, read, steps=steps, since=since)
        follow = partial(self.opened.updates, opened.results, key, steps=steps, since=since)
        return {**kept, **opened.results.ask(result_ttl), "reply_key": key}, wait, follow

    def kept(self, result_ttl: int) -> dict[str, Any]:
        """Headers that make nodes keep the result of a job."""
        names = [each.name for each in self.codecs.of_results]
        return {"result_ttl": result_ttl} | ({"reply_codecs": names} if names else {})

    async def _kept(self, read: Read[R_co], job: str, timeout: float | None) -> R_co:
        """The result of a job that nodes keep, if the app was not open when the job was added."""
        kept = import_module("disque_trio.worker.kept")
        found: R_co = kept.value_of(await kept.wait(self.client, self.codecs, job, timeout), read)
        return found

    def read_kept(self, result: codec.Result) -> Any:
        """The value of a result. Raises `JobFailedError`."""
        read = self.reader(result.task)
        return import_module("disque_trio.worker.kept").value_of(result, read)

    def reader(self, task: str) -> "Read[Any]":
        """The decoder of results of this task: to the annotated type, if the app has the task."""
        found = None if self.app is None else self.app.find_task(task)
        return _plain if found is None else found.arguments.read_result

    def packed(
        self,
        task: str,
        key: str,
        packed: Packed,
        options: Options,
        form: Form,
        headers: dict[str, Any],
    ) -> Request[Any]:
        """The ADDJOB of a call whose arguments are already encoded."""
        args, kwargs = packed

        def body(more: Mapping[str, Any]) -> bytes:
            fields = {"args": args, "kwargs": kwargs, "key": key, "headers": {**headers, **more}}
            return write(codec.envelope(form, task=task, **fields), self.longest)

        unique = headers.get("unique")
        command = addjob(options, body, unique, headers.get("keep"))
        # If the first one was added, its key would make nodes reject the second.
        repeat = options.repeat and not (unique and options.on_conflict == "reject")
        found = (options.queue, unique) if isinstance(unique, str) else None
        return Request(
            command, key, task, options.queue, repeat,
            enqueuer=self, unique=found, headers=headers,
        )  # fmt: skip


def _plain(value: codec.Part) -> Any:
    return codec.read_plain(bytes(value), "json")


def _only(results: list[Result[R_co]]) -> Enqueued[R_co]:
    (result,) = results
    if isinstance(result, DisqueError):
        raise result
    return result
