"""Jobs of tasks into queues: a call becomes an ADDJOB, and its answer an `Enqueued`.

If an answer is lost, the job is added once more, with the same key in its body. If nodes refuse it
because one of them does not answer, it is added again until the others have given that node up.
"""

import contextlib
import itertools
import math
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from inspect import unwrap
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
from disque_trio.client import commands
from disque_trio.client.address import Cluster
from disque_trio.client.command import Command
from disque_trio.client.errors import DisqueError, LostError
from disque_trio.client.nodes import NoNodeError
from disque_trio.client.refusals import NotReplicatedError
from disque_trio.client.settings import WINDOW
from disque_trio.statemachine.base import ORIGINAL_PERIOD_S
from disque_trio.terminal.counting import counted
from disque_trio.terminal.escapes import printable
from disque_trio.worker import codec
from disque_trio.worker.arguments import Arguments, Packed
from disque_trio.worker.checks import iterated, shown
from disque_trio.worker.codec import Form
from disque_trio.worker.codecs import Codecs
from disque_trio.worker.copies import NO_COPIES, Copies
from disque_trio.worker.describing import type_and_text
from disque_trio.worker.enqueued import Enqueued, Follow, R_co, Wait
from disque_trio.worker.envelope import write
from disque_trio.worker.events import JobEnqueued
from disque_trio.worker.hooks import Hooks
from disque_trio.worker.opened import OpenedApp
from disque_trio.worker.options import (
    OF_STEPS,
    OWN_HEADERS,
    RESERVED,
    Definition,
    Options,
    Place,
    carried_by,
    place_of,
    queue_of_looks,
    unique_key,
    without_own,
)
from disque_trio.worker.runtime import Runtime, runtime

P = ParamSpec("P")
S = TypeVar("S")
A = TypeVar("A")
A_contra = TypeVar("A_contra", contravariant=True)
S_co = TypeVar("S_co", covariant=True)

_DEFAULTS: Final = attrs.asdict(Options())
ADD_PATIENCE_S: Final = 30.0
"""For so long a job is added again that nodes refuse because one of them does not answer: twice the
time after which they give it up (`cluster-node-timeout`, by default)."""
ADD_PAUSE_S: Final = 0.2


class EnqueueUnknownError(DisqueError):
    """No reply arrived, neither to the first request nor to its repetition: the outcome is
    unknown."""


class NotEnqueuedError(DisqueError):
    """A call was not added, because a hook or its options raised an error, which is the cause."""


class EnqueueManyError(DisqueError):
    """`enqueue_many` was interrupted. The cause is the error, for example of the calls' own
    iterator. Calls after those in `results` were not added."""

    def __init__(self, text: str, results: list[Any]) -> None:
        super().__init__(text)
        self.results = results
        """As `enqueue_many` returns them: `Enqueued` or the error of each call, in order."""


def not_enqueued(what: str, error: Exception) -> NotEnqueuedError:
    """The error of one call, in place of one that is none of this library's."""
    found = NotEnqueuedError(f"{printable(what)} was not added: {type_and_text(error)}")
    found.__cause__ = error
    return found


@attrs.frozen
class Call(Generic[R_co]):
    """A task with its arguments, to be added."""

    definition: Definition
    arguments: Arguments
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    enqueuer: "Enqueuer" = attrs.field(repr=False)
    changes: Mapping[str, Any] = attrs.field(factory=dict)
    """Options that differ from the task's."""
    then: tuple["Call[Any]", ...] = ()
    """The next steps, if it begins a chain."""
    is_open: bool = False
    """The first argument is what the step before it returns."""
    headers: Mapping[str, Any] = attrs.field(factory=dict)
    """Those of this library."""

    @property
    def name(self) -> str:
        """That of the task."""
        return self.definition.name

    @overload
    def __or__(self: "Call[A]", following: "After[A, S]") -> "Call[S]": ...
    @overload
    def __or__(self, following: "Call[S]") -> "Call[S]": ...
    def __or__(self, following: Any) -> Any:
        """Make a chain: when this call is done, the other one is added. An open call takes what
        this one returns, which type checkers check."""
        check_call(following)
        one = attrs.evolve(following, then=())
        if one.definition.options.headers:
            raise ValueError(
                f"{one.name}: a later step of a chain has the headers of the first step: give "
                "headers to that one"
            )
        return attrs.evolve(self, then=(*self.then, one, *following.then))

    def options(self) -> Options:
        """Those of its job, with the group that its arguments have. Raises `ValueError`."""
        options = self.definition.options
        if options.group is None or isinstance(options.group, str):
            return options
        if self.is_open:
            raise ValueError(
                f"{self.name}: the group of a later step that gets a result is not known before: "
                "name it by using(group=…)"
            )
        found = options.group(*self.args, **self.kwargs) or None
        try:
            return attrs.evolve(options, group=found)
        except ValueError as error:
            raise ValueError(f"{self.name}: its function has returned {error}") from error

    async def enqueue(self) -> Enqueued[R_co]:
        """Add the job. For a chain this adds the first step; the result is that of the last one.
        Raises as `Task.enqueue`."""
        return await self.enqueuer.add(self.enqueuer.request(self))

    def step(self, form: Form) -> codec.Step:
        """What a chain says of it. Raises `NotEncodableError`, and `ValueError` for options that
        cannot be carried along."""
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
    """Raises `ValueError` for what is no `Call`."""
    if not isinstance(value, Call):
        raise ValueError(f"{shown(value)} is no call: write task.call(…)")


if TYPE_CHECKING:

    class OpenCall(Generic[P, R_co]):
        """A call that lacks its first argument, which the step before it returns
        (`Task.partial`). `P` are all arguments of the task."""

        @overload
        def __or__(self: "OpenCall[P, A]", following: "After[A, S]") -> "OpenCall[P, S]": ...
        @overload
        def __or__(self, following: "Call[S]") -> "OpenCall[P, S]": ...
        def __or__(self, following: Any) -> Any:
            """Make a chain of what follows (`Call`)."""

        @property
        def takes(self) -> Callable[P, R_co]:
            """For type checkers: they compare parameters of functions, but not those of classes,
            by what may be given."""

    class After(Protocol[A_contra, S_co]):
        """An open call whose first argument may be an `A_contra`."""

        @property
        def takes(self) -> Callable[Concatenate[A_contra, ...], S_co]:
            """As of `OpenCall`."""

else:
    OpenCall = Call  # one kind of step when it runs


def step_options(options: Options, more: Sequence[str] = ()) -> dict[str, Any]:
    """Those of a job that is added later, and more of them, without the defaults."""
    values = {each: getattr(options, each) for each in (*OF_STEPS, *more)}
    return {each: value for each, value in values.items() if value != _DEFAULTS[each]}


@attrs.define
class Adding:
    """A job that is about to be added, for hooks."""

    task: str
    queue: str
    key: str
    headers: dict[str, Any]
    """Mutable: handlers get them as `job.headers`."""

    def check(self) -> None:
        """Raises `ValueError` for what a hook has made of it that no job can have."""
        if not isinstance(self.key, str):
            raise ValueError(f"a hook has set key={shown(self.key)}: it must be text")
        if not isinstance(self.headers, dict) or not all(
            isinstance(each, str) for each in self.headers
        ):
            raise ValueError(f"a hook has set headers={shown(self.headers)}: give each a name")
        if own := sorted(OWN_HEADERS & self.headers.keys()):
            raise ValueError(
                f"a hook has set header {', '.join(own)}: the library writes it; take another name"
            )


Hook = Callable[[Adding], object]
Read = Callable[[codec.Part], R_co]


@attrs.frozen
class Request(Generic[R_co]):
    """An ADDJOB, and what is known of its job."""

    command: Command[str]
    key: str
    task: str
    queue: str
    repeat: bool
    steps: Sequence[Place] = ()
    wait: Wait[R_co] | None = None
    follow: Follow | None = None
    enqueuer: "Enqueuer" = attrs.field(kw_only=True)
    unique: Place | None = None
    headers: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    options: Options | None = attrs.field(default=None, repr=False)
    is_encoded: bool = False
    """Have codecs seen its body?"""

    def announce(self, id: str) -> None:
        """Tell the hooks that it was added under this id."""
        if not self.queue.startswith(RESERVED) and not self.task.startswith(RESERVED):
            own = without_own(self.headers)
            at = runtime().now()
            self.enqueuer.hooks.enqueued(
                JobEnqueued(
                    at=at, id=id, task=self.task, queue=self.queue, key=self.key, headers=own
                )
            )

    @property
    def repeated(self) -> "Request[R_co]":
        """The same, to be sent once more."""
        return attrs.evolve(self, command=attrs.evolve(self.command, is_repeatable=True))

    def result(self, answer: str | DisqueError, *, is_second: bool) -> "Result[R_co]":
        """What became of the job; `is_second` if the answer to an earlier request was lost."""
        if isinstance(answer, str):
            details = self.key, self.task, self.queue, self.wait, self.follow, self.steps
            places = (self.unique, *self.steps)
            return Enqueued(answer, *details, enqueuer=self.enqueuer, places=places)
        nothing_known = (LostError, NoNodeError) if is_second else (LostError,)
        return self.unknown(answer) if isinstance(answer, nothing_known) else answer

    def unknown(self, error: DisqueError) -> EnqueueUnknownError:
        """Nothing is known of the job because of this."""
        key, task, queue = map(printable, (self.key, self.task, self.queue))
        found = EnqueueUnknownError(
            f"whether job {key} of {task} was added to {queue} is not known: {error}"
        )
        found.__cause__ = error
        return found


Result = Enqueued[R_co] | DisqueError
_OfThread = WeakKeyDictionary[Runtime, tuple[str | Cluster, "clients.BlockingClient"]]
Answers = Sequence[str | DisqueError]
Exchange = Generator["Round", Answers, list[Result[R_co]]]
"""Yields what to send, is sent the answers, and returns what became of each job."""


@attrs.frozen
class Round:
    """Requests that are sent together."""

    asked: Sequence[Command[str]]
    pause_s: float = 0.0
    """So long before."""


def exchange(asked: Sequence[Request[R_co] | DisqueError]) -> Exchange[R_co]:
    """Add jobs together. What could not be made a request keeps its error."""
    requests = {place: each for place, each in enumerate(asked) if isinstance(each, Request)}
    results: dict[int, Result[R_co]] = {
        place: each for place, each in enumerate(asked) if isinstance(each, DisqueError)
    }
    ends = runtime().monotonic() + ADD_PATIENCE_S
    lost: set[int] = set()
    left, pause_s = requests, 0.0
    while True:
        answers = yield Round([request.command for request in left.values()], pause_s)
        again: dict[int, Request[R_co]] = {}
        pause_s = 0.0
        for (place, request), answer in zip(left.items(), answers, strict=True):
            if request.repeat and isinstance(answer, LostError) and place not in lost:
                lost.add(place)
                again[place] = request.repeated
            elif request.repeat and _may_pass(answer) and runtime().monotonic() < ends:
                again[place], pause_s = request.repeated, ADD_PAUSE_S
            else:
                results[place] = request.result(answer, is_second=place in lost)
        if not again:
            break
        left = again
    for place, request in requests.items():
        found = results[place]
        if request.enqueuer.hooks.wants_enqueued and isinstance(found, Enqueued):
            request.announce(found.id)
    return [results[place] for place in range(len(asked))]


def _may_pass(answer: str | DisqueError) -> bool:
    """Was it refused because a node does not answer, which the others give up soon?"""
    return isinstance(answer, NotReplicatedError) and answer.may_pass


@attrs.define(eq=False, repr=False)
class Enqueuer:
    """Adds the jobs of an app's tasks."""

    url: str | Cluster
    form: Form
    max_body: int
    app: Any = None
    """Whose tasks these are."""
    copies: Copies = NO_COPIES
    """Of jobs whose task is not known."""
    hooks: Hooks = attrs.Factory(Hooks)
    codecs: Codecs = attrs.Factory(lambda self: Codecs(max_body=self.max_body), takes_self=True)
    opened: OpenedApp = attrs.field(
        init=False, default=attrs.Factory(lambda self: OpenedApp(self.codecs), takes_self=True)
    )
    _threads: threading.local = attrs.field(init=False, factory=threading.local)

    @property
    def longest(self) -> int:
        """Bytes of an envelope at most, before codecs change it."""
        return self.codecs.longest if self.codecs.written else self.max_body

    def queue_of_looks(self, queue: str) -> str:
        """Where the coordinators and collectors wait that a worker of this queue runs."""
        return queue if self.app is None else queue_of_looks(queue, self.app.limits)

    # Clients.

    async def open(self) -> None:
        """Have a client, in this event loop, until `close` was called as often."""
        await self.opened.open(self.url)

    async def close(self) -> None:
        """Give it back."""
        await self.opened.close()

    @property
    def client(self) -> "clients.Client":
        """The client of the event loop. Raises `NotOpenError`."""
        return self.opened.get().client

    @property
    def blocking_client(self) -> "clients.BlockingClient":
        """The client of this thread."""
        world = runtime()
        kept: _OfThread | None = getattr(self._threads, "clients", None)
        if kept is None:
            kept = self._threads.clients = WeakKeyDictionary()
        url, client = kept.get(world, (None, None))
        if client is None or url != self.url:  # `App.use` has named other nodes since
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
        return _only(self._carry_out_blocking(exchange(self.encoded_blocking([request]))))

    async def add_requests(
        self, asked: Sequence[Request[R_co] | DisqueError]
    ) -> list[Result[R_co]]:
        """Add these in pipelines. What became of each."""
        return await self._carry_out(exchange(await self.encoded(asked)))

    async def add_many(self, calls: Iterable[Call[R_co]]) -> list[Result[R_co]]:
        """Add jobs in pipelines. What became of each, in their order. Raises `NotOpenError`, and
        `EnqueueManyError` for what the iterator of the calls raises."""
        self.opened.get()
        results: list[Result[R_co]] = []
        under_way: list[Result[R_co]] = []
        each = iterated(calls, "calls")
        with with_results(results, under_way):
            while some := self._window(each):
                under_way[:] = map(_under_way, some)
                results += await self._carry_out(exchange(await self.encoded(some)))
                under_way.clear()
        return results

    def add_many_blocking(self, calls: Iterable[Call[R_co]]) -> list[Result[R_co]]:
        """The same, by the client of this thread."""
        results: list[Result[R_co]] = []
        under_way: list[Result[R_co]] = []
        each = iterated(calls, "calls")
        with with_results(results, under_way):
            while some := self._window(each):
                under_way[:] = map(_under_way, some)
                results += self._carry_out_blocking(exchange(self.encoded_blocking(some)))
                under_way.clear()
        return results

    def add_requests_blocking(
        self, asked: Sequence[Request[R_co] | DisqueError]
    ) -> list[Result[R_co]]:
        """Add these in one pipeline, by the client of this thread. What became of each."""
        return self._carry_out_blocking(exchange(self.encoded_blocking(asked)))

    async def _carry_out(self, exchange: Exchange[R_co]) -> list[Result[R_co]]:
        client, sending = self.client, next(exchange)
        while True:
            answers: Answers
            try:
                if sending.pause_s:
                    await import_module("anyio").sleep(sending.pause_s)
                answers = [*await client.run_all(sending.asked)]
            except DisqueError as error:  # no node takes any of them
                answers = [error] * len(sending.asked)
            try:
                sending = exchange.send(answers)
            except StopIteration as ended:
                return _results(ended)

    def _carry_out_blocking(self, exchange: Exchange[R_co]) -> list[Result[R_co]]:
        client, sending = self.blocking_client, next(exchange)
        while True:
            answers: Answers
            try:
                if sending.pause_s:
                    time.sleep(sending.pause_s)
                answers = [*client.run_all(sending.asked)]
            except DisqueError as error:
                answers = [error] * len(sending.asked)
            try:
                sending = exchange.send(answers)
            except StopIteration as ended:
                return _results(ended)

    async def encoded(
        self, asked: Sequence[Request[R_co] | DisqueError]
    ) -> Sequence[Request[R_co] | DisqueError]:
        """The requests, with bodies as the app's codecs write them, or what a codec raised."""
        if not self.codecs.blocks:
            return self.encoded_blocking(asked)
        in_thread: Any = import_module("anyio.to_thread").run_sync  # who adds jobs needs no anyio
        found: list[Request[R_co] | DisqueError] = await in_thread(
            self.encoded_blocking, asked, abandon_on_cancel=True
        )
        return found

    def encoded_blocking(
        self, asked: Sequence[Request[R_co] | DisqueError]
    ) -> Sequence[Request[R_co] | DisqueError]:
        """The same in a thread."""
        if not self.codecs.written:
            return asked
        return [each if isinstance(each, DisqueError) else self._encode(each) for each in asked]

    def _encode(self, request: Request[R_co]) -> Request[R_co] | DisqueError:
        if request.is_encoded:
            return request
        command, seen = request.command, dict[bytes, bytes]()

        def coded(words: tuple[bytes, ...]) -> tuple[bytes, ...]:
            body = words[2]
            if body not in seen:
                seen[body] = self.codecs.encode(request.task, request.key, body)
            return (*words[:2], seen[body], *words[3:])

        try:
            plain = None if command.plain is None else coded(command.plain)
            command = attrs.evolve(command, words=coded(command.words), plain=plain)
        except DisqueError as error:
            return error
        except Exception as error:  # codecs of users may raise anything
            return not_enqueued(request.task, error)
        return attrs.evolve(request, command=command, is_encoded=True)

    def _window(self, calls: Iterator[Call[R_co]]) -> list[Request[R_co] | DisqueError]:
        return [self._request(call) for call in list(itertools.islice(calls, WINDOW))]

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
            arguments = bytes(codec.part(packed, self.form))  # in whatever order they were named
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
        """The job of a task as hooks leave it. Raises `ValueError`, and what hooks raise."""
        found = Adding(task, options.queue, key, dict(options.headers))
        for hook in self.hooks.adding:
            hook(found)
            found.check()
        return found

    def awaited(
        self, last: Call[R_co], key: str, steps: Sequence[Place] = ()
    ) -> tuple[dict[str, Any], Wait[R_co] | None, Follow | None]:
        """Headers that ask for the result of a call under this key, and what waits for it; of a
        chain for the last of its later `steps`."""
        options = last.definition.options
        if options.result_ttl is None:
            return {}, None, None
        if options.key:
            key = runtime().new_key()  # other jobs may have it
        return self.awaited_by(last.arguments.read_result, options.result_ttl, key, steps)

    def awaited_by(
        self, read: Read[R_co], result_ttl: int, key: str, steps: Sequence[Place] = ()
    ) -> tuple[dict[str, Any], Wait[R_co] | None, Follow | None]:
        """The same for a result that is read so."""
        kept, opened = self.kept(result_ttl), self.opened.find()
        if opened is None:
            return kept, partial(self._kept, read), None
        since = opened.results.now()
        wait = partial(self.opened.wait, opened.results, key, read, steps=steps, since=since)
        follow = partial(self.opened.updates, opened.results, key, steps=steps, since=since)
        return {**kept, **opened.results.ask(result_ttl), "reply_key": key}, wait, follow

    def kept(self, result_ttl: int) -> dict[str, Any]:
        """Headers of a job whose result nodes are to keep."""
        names = [each.name for each in self.codecs.of_results]
        return {"result_ttl": result_ttl} | ({"reply_codecs": names} if names else {})

    async def _kept(self, read: Read[R_co], job: str, timeout: float | None) -> R_co:
        """The result that nodes keep of a job, for who has added it without an open app."""
        kept = import_module("disque_trio.worker.kept")
        found: R_co = kept.value_of(await kept.wait(self.client, self.codecs, job, timeout), read)
        return found

    def read_kept(self, result: codec.Result) -> Any:
        """The value of a result. Raises `JobFailedError`."""
        read = self.reader(result.task)
        return import_module("disque_trio.worker.kept").value_of(result, read)

    def reader(self, task: str) -> "Read[Any]":
        """Reads results of this task: of the type that it returns, if the app has the task."""
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
        """The ADDJOB of a call whose arguments are parts of a body already."""
        args, kwargs = packed

        def body(more: Mapping[str, Any]) -> bytes:
            fields = {"args": args, "kwargs": kwargs, "key": key, "headers": {**headers, **more}}
            return write(codec.envelope(form, task=task, **fields), self.longest)

        unique = headers.get("unique")
        command = addjob(options, body, unique, headers.get("keep"))
        # If the first one was added, its key would refuse the second.
        repeat = options.repeat and not (unique and options.on_conflict == "reject")
        found = (options.queue, unique) if isinstance(unique, str) else None
        return Request(
            command, key, task, options.queue, repeat,
            enqueuer=self, unique=found, headers=headers, options=options,
        )  # fmt: skip


def _plain(value: codec.Part) -> Any:
    return codec.read_plain(bytes(value), "json")


def _under_way(asked: Request[R_co] | DisqueError) -> DisqueError:
    if isinstance(asked, DisqueError):
        return asked
    return asked.unknown(DisqueError("adding it was interrupted"))


def _results(ended: StopIteration) -> list[Result[R_co]]:
    results: list[Result[R_co]] = ended.value
    return results


def _only(results: list[Result[R_co]]) -> Enqueued[R_co]:
    (result,) = results
    if isinstance(result, DisqueError):
        raise result
    return result


@contextlib.contextmanager
def with_results(results: list[Any], under_way: Sequence[Any]) -> Iterator[None]:
    """Let an error of the block have the results so far, and an error for each call that is under
    way, which may have been added. What is no `Exception`, such as a cancellation, gets them as its
    attribute `results`."""
    try:
        yield
    except BaseException as error:
        outcomes = [*results, *under_way]
        if not isinstance(error, Exception):
            error.__dict__["results"] = outcomes
            raise
        added = sum(not isinstance(each, DisqueError) for each in outcomes)
        raise EnqueueManyError(
            f"interrupted after {counted(len(outcomes), 'call')}, {added} of them added "
            f"(see `results`): {type_and_text(error)}",
            outcomes,
        ) from error


LONG: Final = "long-periods"
"""The feature of nodes that take a longer DELAY."""
_ADDJOB: Final[Callable[..., Command[str]]] = unwrap(commands.addjob)  # `Options` has checked
Body = Callable[[Mapping[str, float]], bytes]
"""A body with these headers more."""


def addjob(
    options: Options, body: Body, unique: str | None = None, keep: float | None = None
) -> Command[str]:
    """The ADDJOB of a body.

    Nodes of earlier versions, and of the original, take a DELAY of 24.8 days at most. They get a
    longer one as that, and with the time in the body: a worker that receives the job too early
    postpones it.
    """
    now = runtime().now()
    delay, ttl = options.times(now)
    command = _addjob(options, body({}), unique, keep, delay, ttl)
    if delay <= ORIGINAL_PERIOD_S:  # the usual case
        return command
    early = body({"due": now + delay, "hops": math.ceil(delay / ORIGINAL_PERIOD_S) - 1})
    plain = _addjob(options, early, unique, keep, ORIGINAL_PERIOD_S, ttl).plain
    return attrs.evolve(command, plain=plain, features=(*command.features, LONG))


def _addjob(
    options: Options,
    body: bytes,
    unique: str | None,
    keep: float | None,
    delay: float,
    ttl: int,
) -> Command[str]:
    make = _ADDJOB if unique is None and keep is None else commands.addjob
    return make(
        options.queue,
        body,
        delay=delay,
        retry=options.lease,
        replicate=1 if options.lease == 0 else options.replicate,
        sync=None if options.lease == 0 else options.copies.awaited,
        ttl=ttl,
        maxlen=options.maxlen,
        priority=options.priority,
        group=options.group if isinstance(options.group, str) else None,
        unique=unique,
        keep=keep,
        if_exists=None if unique is None else options.on_conflict,
    )
