"""`App`: the tasks and consumers of an application, its client, and the handler of its jobs."""

import os
import random
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from importlib import import_module
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    Literal,
    ParamSpec,
    Self,
    TypeVar,
    Unpack,
    get_args,
    overload,
)

from disque_trio import client as clients
from disque_trio.client.address import Cluster
from disque_trio.client.settings import DEFAULT_URL
from disque_trio.client.url import parse_url
from disque_trio.terminal.escapes import printable
from disque_trio.worker import kinds
from disque_trio.worker.checks import shown
from disque_trio.worker.codec import Envelope, Form
from disque_trio.worker.codecs import MAX_DECODED, Codec, Codecs
from disque_trio.worker.copies import Copies
from disque_trio.worker.enqueue import Call, Enqueuer
from disque_trio.worker.envelope import MAX_BODY
from disque_trio.worker.events import Event
from disque_trio.worker.handles import BlockingJobHandle, JobHandle
from disque_trio.worker.hooks import AddingHook
from disque_trio.worker.interop import System
from disque_trio.worker.middleware import Middleware
from disque_trio.worker.options import (
    EXECUTORS,
    AppOptions,
    Definition,
    Options,
    RunOptions,
    TaskOptions,
    check_names,
    check_options,
    queue_of_looks,
)
from disque_trio.worker.policies import Policy
from disque_trio.worker.requests import Result
from disque_trio.worker.runtime import runtime
from disque_trio.worker.task import (
    AsyncTask,
    Declare,
    DeclareBound,
    Iterated,
    SyncTask,
    Task,
    declare,
)

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from disque_trio.worker.batches import Batch, IfFailed
    from disque_trio.worker.cron.declaring import CronOptions, Crons
    from disque_trio.worker.cron.schedule import Schedule
    from disque_trio.worker.enqueue import After
    from disque_trio.worker.executors.dispatch import Executor
    from disque_trio.worker.flows.building import Flow
    from disque_trio.worker.flows.handles import BlockingEnqueuedFlow, EnqueuedFlow
    from disque_trio.worker.handler import JobHandler
    from disque_trio.worker.interop.producer import Producer
    from disque_trio.worker.limits import QueueLimit
    from disque_trio.worker.operating.admin import Admin
    from disque_trio.worker.tally import BatchEnds
    from disque_trio.worker.timetable.schedules import BlockingSchedules, Schedules

DAY_S: Final = 86_400
NO_EXECUTORS: Final[Mapping[str, Any]] = {}
State = TypeVar("State")
P = ParamSpec("P")
R = TypeVar("R")
_Async = Callable[P, Coroutine[Any, Any, R]]
Fn = TypeVar("Fn", bound=Callable[..., Any])
AnyTask = TypeVar("AnyTask", bound=Task[..., Any])
Heard = TypeVar("Heard", bound=Event)
Listener = Callable[[Heard], object]


class App(Generic[State]):
    """An application: its tasks, the consumers of its queues, its client, and the state that its
    handlers share."""

    @overload
    def __init__(
        self: "App[None]",
        url: str | Cluster = ...,
        *,
        lifespan: None = ...,
        form: Form = ...,
        max_body: int = ...,
        codec: Codec | Sequence[Codec] = ...,
        decodes: Sequence[Codec] = ...,
        max_decoded: int = ...,
        executors: "Mapping[str, int | Executor]" = ...,
        **defaults: Unpack[AppOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        url: str | Cluster = ...,
        *,
        lifespan: Callable[[], AbstractAsyncContextManager[State]],
        form: Form = ...,
        max_body: int = ...,
        codec: Codec | Sequence[Codec] = ...,
        decodes: Sequence[Codec] = ...,
        max_decoded: int = ...,
        executors: "Mapping[str, int | Executor]" = ...,
        **defaults: Unpack[AppOptions],
    ) -> None: ...
    def __init__(
        self,
        url: str | Cluster = DEFAULT_URL,
        *,
        lifespan: Callable[[], AbstractAsyncContextManager[Any]] | None = None,
        form: Form = "json",
        max_body: int = MAX_BODY,
        codec: Codec | Sequence[Codec] = (),
        decodes: Sequence[Codec] = (),
        max_decoded: int = MAX_DECODED,
        executors: "Mapping[str, int | Executor]" = NO_EXECUTORS,
        **defaults: Unpack[AppOptions],
    ) -> None:
        """`url` names the nodes (docs/client.md). A worker enters `lifespan` when it starts; the
        value that `lifespan` yields is `job.state`. `form` is the encoding of bodies. A body has at
        most `max_body` bytes, and at most `max_decoded` bytes before codecs encode it. The codecs
        in `codec` encode bodies, in this order; those in `decodes` only decode. `executors` maps
        names to places where functions run: a number of threads, or an object with the method `run`
        (docs/worker.md, "Executors"). The other options are defaults for tasks and consumers, as in
        `task`. Raises `ValueError` for invalid options."""
        arguments = {
            "url": url, "lifespan": lifespan, "form": form, "max_body": max_body,
            "max_decoded": max_decoded, "executors": executors,
        }  # fmt: skip
        kinds.check_kinds(arguments, kinds.OF_APP)
        _check_defaults(defaults)
        self._defaults = defaults
        self.tasks: dict[str, Task[..., Any]] = {}
        """By name, without aliases."""
        self._names: dict[str, str] = {}
        self._consumers: dict[str, tuple[Definition, Callable[..., Any]]] = {}
        self._readers: dict[bytes, Callable[[bytes], Envelope]] = {}
        self._layers: list[Middleware] = []
        self._executors = dict(executors)
        self._crons: Crons | None = None
        self.limits: dict[str, QueueLimit] = {}
        """The limits declared by `limit`, by queue."""
        self._lifespan = lifespan
        codecs = Codecs.of(codec, decodes, max_body, max_decoded)
        copies = Copies.of(defaults)
        self._enqueuer = Enqueuer(url, form, max_body, self, copies, codecs=codecs)

    # Declaring.

    @overload
    def task(self, fn: _Async[P, R], /) -> AsyncTask[P, R]: ...  # type: ignore[overload-overlap]
    @overload
    def task(self, fn: Iterated[P], /) -> AsyncTask[P, None]: ...  # type: ignore[overload-overlap]
    @overload
    def task(self, fn: Callable[P, R], /) -> SyncTask[P, R]: ...
    @overload
    def task(self, *, bind: Literal[False] = ..., **options: Unpack[TaskOptions]) -> Declare: ...
    @overload
    def task(
        self, *, bind: Literal[True], **options: Unpack[TaskOptions]
    ) -> DeclareBound[State]: ...
    def task(self, *fn: Any, bind: bool = False, **options: Unpack[TaskOptions]) -> Any:
        """Declare a function as a task: `@app.task` or `@app.task(queue="mail")`. With `bind` the
        function receives the job as its first argument. An `async def` that yields is run to its
        end; the values that it yields are checkpoints (docs/worker-iterating.md). Raises
        `ValueError` for invalid options, and `TypeError` for unknown ones."""

        def declared(fn: Callable[..., Any]) -> Task[..., Any]:
            if isasyncgenfunction(fn):
                fn = import_module("disque_trio.worker.iterating").iterated(self._enqueuer, fn)
            kinds.check_function(options.get("name") or shown(fn), fn)
            definition = Definition.of(_name_of(fn, options), bind, options, self._defaults)
            for name in (definition.name, *definition.aliases):
                if name in self._names:
                    raise ValueError(f"there are two tasks {name}: give one another name")
                self._names[name] = definition.name
            self._check_executor(definition)
            task = declare(self._enqueuer, definition, fn, is_async=iscoroutinefunction(fn))
            self.tasks[definition.name] = task
            return task

        return declared(*fn) if fn else declared

    def consumer(
        self, queue: str, *, bind: bool = False, **options: Unpack[RunOptions]
    ) -> Callable[[Fn], Fn]:
        """Declare a function that receives the body of every job of a queue, as bytes. With `bind`
        it receives the job first. Raises `ValueError` for invalid options, and `TypeError` for
        unknown ones."""
        check_options({"queue": queue})
        check_names(options, RunOptions)

        def declared(fn: Fn) -> Fn:
            if queue in self._consumers:
                raise ValueError(f"queue {queue} has two consumers")
            kinds.check_function(f"consumer of {queue}", fn)
            named = {**options, "queue": queue}
            definition = Definition.of(
                f"consumer of {printable(queue)}", bind, named, self._defaults
            )
            self._check_executor(definition)
            self._consumers[queue] = definition, fn
            return fn

        return declared

    def _check_executor(self, definition: Definition) -> None:
        name, known = definition.executor, (*EXECUTORS, *self._executors)
        if name is not None and name not in known:
            raise ValueError(
                f"task {printable(definition.name)}: executor={shown(name)} must be one of "
                f"{', '.join(map(repr, known))}"
            )

    def accept(self, queue: str, *systems: System) -> None:
        """Accept jobs of these systems in a queue, in addition to those of this library. The class
        that such a job names is the name or an alias of a task. Raises `ValueError` for an invalid
        queue or an unknown system."""
        check_options({"queue": queue})
        for system in systems:
            _check_system(system)
        payloads = import_module("disque_trio.worker.interop.payloads")  # few apps need it
        self._readers[queue.encode(errors="surrogateescape")] = partial(
            payloads.read_payload, max_body=self._enqueuer.codecs.longest, systems=systems
        )

    def limit(
        self,
        queue: str,
        *,
        concurrency: int | None = None,
        rate: tuple[int, float] | None = None,
        burst: int | None = None,
        loose: bool = False,
        group_concurrency: int | None = None,
        group_rate: tuple[int, float] | None = None,
        group_burst: int | None = None,
    ) -> None:
        """Limit a queue in the whole cluster. At most `concurrency` of its jobs are leased at the
        same time. `rate=(jobs, seconds)` is the number of jobs delivered per period; `burst` is how
        many of them may be delivered at once. The `group_` options limit each group of the queue in
        the same way. During a partition each side uses its share of the limit, or with `loose` the
        whole. Workers set the limits when they start, and replace earlier limits of the queue.
        Raises `ValueError` for invalid options."""
        Options(queue=queue)
        limits = import_module("disque_trio.worker.limits")  # few apps need it
        of_group = group_concurrency, group_rate, group_burst
        self.limits[queue] = limits.QueueLimit(queue, concurrency, rate, burst, loose, *of_group)

    def producer(self, system: System) -> "Producer":
        """A producer that adds jobs in the format of another system, for its workers."""
        _check_system(system)
        producer = import_module("disque_trio.worker.interop.producer")
        found: Producer = producer.Producer(system, self._enqueuer, self._defaults)
        return found

    def cron(
        self,
        fields: str | None = None,
        *,
        every: int | None = None,
        tz: "str | ZoneInfo" = "UTC",
        **options: "Unpack[CronOptions]",
    ) -> Callable[[AnyTask], AnyTask]:
        """Add one job of a task at each tick, whatever the number of workers. Write it above
        `app.task`: `@app.cron("30 2 * * *", tz="Europe/Berlin")` or `@app.cron(every=30)`, in
        seconds (docs/worker-cron.md lists the options). Raises `ValueError` for invalid options,
        and `TypeError` for unknown options and for values of a wrong type."""
        declaring = import_module("disque_trio.worker.cron.declaring")
        check_names(options, declaring.CronOptions)
        ticks = declaring.ticks_of(fields, every, tz)

        def declared(task: AnyTask) -> AnyTask:
            self.crons.declare(task, ticks, **options)
            return task

        return declared

    def middleware(self, layer: Middleware) -> Middleware:
        """Wrap each run of a job in a middleware; the first one declared is outermost. Raises
        `ValueError` for an object that cannot be called with a job and the rest of the run."""
        if not kinds.takes(layer, 2):
            raise ValueError(
                f"middleware {shown(layer)} must be called with a job and an `async def`"
            )
        self._layers.append(layer)
        return layer

    def on_enqueue(self, hook: AddingHook) -> AddingHook:
        """Call a function before each job is added, with an `Adding`, whose headers it may change.
        Raises `ValueError` for a function with another signature, and for a coroutine function."""
        if not kinds.takes(hook, 1) or iscoroutinefunction(hook):
            raise ValueError(f"hook {shown(hook)} must be a `def` of one argument")
        self._enqueuer.hooks.adding.append(hook)
        return hook

    @overload
    def on(self, kind: type[Heard], /) -> Callable[[Listener[Heard]], Listener[Heard]]: ...
    @overload
    def on(self, *kinds: type[Event]) -> Callable[[Fn], Fn]: ...
    def on(self, *kinds: Any) -> Any:
        """Call a function for each event of these classes and of their subclasses
        (`disque_trio.worker.events`): `@app.on(JobDead)`. Workers call it outside of their jobs. A
        hook for `JobEnqueued` is called where the job is added, and must be a `def`. Errors of the
        function are logged. Raises `ValueError` for a class that is not an event, and for a
        function that does not take one argument."""

        def declared(hook: Fn) -> Fn:
            self._enqueuer.hooks.declare(hook, kinds)
            return hook

        return declared

    @property
    def crons(self) -> "Crons":
        """The schedules declared by `cron`."""
        if self._crons is None:
            self._crons = import_module("disque_trio.worker.cron.declaring").Crons()
        return self._crons

    @property
    def declared_schedules(self) -> "Sequence[Schedule]":
        """The schedules declared by `cron`. Without any, this does not import the calendar
        modules."""
        return () if self._crons is None else self._crons.schedules

    @property
    def schedules(self) -> "Schedules":
        """Schedules that are added, paused and removed at run time, and kept by the cluster."""
        module = import_module("disque_trio.worker.timetable.schedules")  # it needs an event loop
        found: Schedules = module.Schedules(self._enqueuer)
        return found

    @property
    def attempts(self) -> dict[str, int]:
        """The number of attempts of each task's retry policy. Tasks whose policy is a function are
        omitted."""
        policies = {name: task.definition.retry for name, task in self.tasks.items()}
        return {name: each.attempts for name, each in policies.items() if isinstance(each, Policy)}

    @property
    def queues(self) -> list[str]:
        """The queues of all tasks and consumers, sorted. A queue with limits (`limit`) adds a
        second queue, for coordinators of flows and collectors of batches."""
        queues = {task.definition.options.queue for task in self.tasks.values()}
        queues |= self._consumers.keys()
        return sorted(queues | {queue_of_looks(each, self.limits) for each in queues})

    @property
    def cluster(self) -> Cluster:
        """The nodes and the password in the URL. Raises `ValueError` for an invalid URL."""
        url = self._enqueuer.url
        return parse_url(url) if isinstance(url, str) else url

    @property
    def codecs(self) -> Codecs:
        """The codecs that encode and decode bodies."""
        return self._enqueuer.codecs

    def use(self, url: str | Cluster) -> None:
        """Use these nodes instead of the previous ones. An event loop in which the app is open
        keeps the previous nodes until it closes the app. Raises `ValueError` if `url` is neither
        text nor a `Cluster`."""
        kinds.check_kinds({"url": url}, kinds.OF_APP)
        self._enqueuer.url = url

    # Adding jobs.

    async def __aenter__(self) -> Self:
        """Open the client of this event loop."""
        await self._enqueuer.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._enqueuer.close()

    @property
    def client(self) -> "clients.Client":
        """The client of this event loop, inside `async with app`. Raises `NotOpenError` outside of
        it."""
        return self._enqueuer.client

    def job(self, id: str) -> JobHandle:
        """A handle of the job with this id, which another process may have added. Raises
        `ValueError` for an id that is not text."""
        kinds.check_kinds({"id": id}, kinds.OF_APP)
        return JobHandle(id, enqueuer=self._enqueuer)

    async def result(self, id: str, timeout: float | None = None) -> Any:
        """The result of the job with this id (`JobHandle.result`). Another process may have added
        the job, and may have ended since."""
        return await self.job(id).result(timeout)

    def find_task(self, name: str) -> Task[..., Any] | None:
        """The task with this name or alias; None if the app has none."""
        return self.tasks.get(self._names.get(name, name))

    @property
    def admin(self) -> "Admin":
        """Operations on workers, jobs and queues of the cluster, inside `async with app`."""
        admin = import_module("disque_trio.worker.operating.admin")  # it needs an event loop
        found: Admin = admin.Admin(self.client)
        return found

    @property
    def blocking(self) -> "BlockingApp":
        """The methods of the app for threads and code without an event loop."""
        return BlockingApp(self._enqueuer)

    async def enqueue_many(self, calls: Iterable[Call[R]]) -> list[Result[R]]:
        """Add jobs in pipelines of 128. Returns for each call, in order, an `Enqueued` or the
        error; errors that are not a `DisqueError`, such as those of hooks, become
        `NotEnqueuedError`. If the iterator of the calls raises, this raises `EnqueueManyError`; its
        `results` are the results so far, and later calls were not added. If cancelled, the
        exception has `results`, too."""
        return await self._enqueuer.add_many(calls)

    async def batch(
        self,
        calls: Iterable[Call[R]],
        then: "Call[Any] | After[BatchEnds, Any] | None" = None,
        *,
        deadline: int = DAY_S,
        if_failed: "IfFailed" = "run",
    ) -> "Batch[R]":
        """Add jobs as a batch. Without `then`, nothing follows the batch; `Batch.wait` returns the
        results of its jobs. With `then`, that call or chain is added when all jobs have ended, or
        after `deadline` seconds. A `partial` call receives a `BatchEnds` with the outcomes. With
        `if_failed="skip"`, `then` is not added if a job is dead, has expired, could not be added,
        or has not ended by the deadline. `then` is never added if the producer ends before it has
        added all jobs. Raises `ValueError` for invalid options."""
        batches = import_module("disque_trio.worker.batches")  # it needs an event loop
        found: Batch[R] = await batches.add(self._enqueuer, calls, then, deadline, if_failed)
        return found

    def flow(self, *, deadline: int = DAY_S, queue: str | None = None) -> "Flow":
        """A new flow: `add` its members, then `enqueue` it. Each member is added when its
        predecessors are done. After `deadline` seconds no more members are added. A worker that
        serves `queue` adds them; the default is the queue of the first member. Raises `ValueError`
        for invalid options."""
        building = import_module("disque_trio.worker.flows.building")  # few apps need it
        found: Flow = building.Flow(self._enqueuer, deadline, queue)
        return found

    async def find_flow(self, id: str) -> "EnqueuedFlow | None":
        """The flow with this id, which another process may have added; None if no node holds it or
        it has ended. The app must be open. Raises `NoNodeError` if no node answers."""
        kinds.check_kinds({"id": id}, kinds.OF_APP)
        asking = import_module("disque_trio.worker.flows.asking")  # it needs an event loop
        found: EnqueuedFlow | None = await asking.find(self._enqueuer, self.client, id)
        return found

    # Running them.

    def handler(
        self,
        *,
        threads: int = 16,
        processes: int | None = None,
        worker: str = "",
        is_strict: bool = False,
        is_inline: bool = False,
        logs_done: bool = False,
        has_cron: bool = True,
        draw: Callable[[], float] = random.random,
        now: Callable[[], float] | None = None,
    ) -> "JobHandler":
        """The handler of the app's jobs, for a driver. It uses at most `threads` threads and
        `processes` processes (default: one per CPU). `worker` is the worker's name in events.
        Inside `async with` the handler adds the jobs of `cron`, unless `has_cron` is False. With
        `is_strict`, a job of an unknown task is dead immediately. With `is_inline`, every `def`
        runs in the event loop. With `logs_done`, jobs that succeed are logged at the level INFO
        instead of DEBUG. `draw` returns a random number from 0 to 1; `now` returns Unix time.
        Raises `UnfitTypeError` for annotations whose values cannot be encoded, and `ValueError` for
        an executor that cannot run its task."""
        performing = import_module("disque_trio.worker.handler")  # producers do not need it
        handler: JobHandler = performing.make_handler(
            self.tasks.values(),
            self._consumers,
            self._layers,
            crons=self._crons if has_cron else None,
            limits=tuple(self.limits.values()),
            readers=self._readers,
            enqueuer=self._enqueuer,
            lifespan=self._lifespan,
            threads=threads,
            processes=processes or os.cpu_count() or 1,
            own_executors=self._executors,
            worker=worker,
            is_strict=is_strict,
            is_inline=is_inline,
            logs_done=logs_done,
            draw=draw,
            now=now or runtime().now,
        )
        return handler


class BlockingApp:
    """The methods of an app that use the client of the current thread."""

    def __init__(self, enqueuer: Enqueuer) -> None:
        self._enqueuer = enqueuer

    @property
    def client(self) -> "clients.BlockingClient":
        """The client of this thread. Close it (`close`) before the thread ends."""
        return self._enqueuer.blocking_client

    def job(self, id: str) -> BlockingJobHandle:
        """A handle of the job with this id (`App.job`)."""
        kinds.check_kinds({"id": id}, kinds.OF_APP)
        return BlockingJobHandle(id, self._enqueuer)

    def result(self, id: str, timeout: float | None = None) -> Any:
        """The result of the job with this id (`App.result`)."""
        return self.job(id).result(timeout)

    @property
    def schedules(self) -> "BlockingSchedules":
        """Schedules that are added at run time (`App.schedules`)."""
        module = import_module("disque_trio.worker.timetable.schedules")
        found: BlockingSchedules = module.BlockingSchedules(self._enqueuer)
        return found

    def enqueue_many(self, calls: Iterable[Call[R]]) -> list[Result[R]]:
        """Add jobs (`App.enqueue_many`)."""
        return self._enqueuer.add_many_blocking(calls)

    def find_flow(self, id: str) -> "BlockingEnqueuedFlow | None":
        """The flow with this id (`App.find_flow`)."""
        kinds.check_kinds({"id": id}, kinds.OF_APP)
        asking = import_module("disque_trio.worker.operating.asking")
        flows = import_module("disque_trio.worker.flows.asking")
        client = asking.InSteps(self.client)
        found: EnqueuedFlow | None = asking.finished(flows.find(self._enqueuer, client, id))
        return None if found is None else found.blocking


def _name_of(fn: Callable[..., Any], options: TaskOptions) -> str:
    """The function's module and name. Producers and workers must use the same name."""
    if "name" in options:
        return options["name"]
    module = fn.__module__
    if module == "__main__":
        spec = getattr(sys.modules["__main__"], "__spec__", None)
        if spec is None:
            raise ValueError(
                f"task {fn.__qualname__} is declared in a script, whose module has no name: "
                "give it one, as name="
            )
        module = spec.name
    return f"{module}.{fn.__qualname__}"


def _check_defaults(defaults: AppOptions) -> None:
    check_names(defaults, AppOptions)
    try:
        Definition.of("of the app", False, defaults)
    except ValueError as error:
        raise ValueError(f"defaults {error}".replace("defaults task", "defaults", 1)) from error


def _check_system(system: str) -> None:
    if system not in get_args(System):
        raise ValueError(f"there is no system {system}; there are {', '.join(get_args(System))}")
