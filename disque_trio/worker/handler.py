"""Runs the jobs of an app: from the body of a job to its handler, and from the handler's end to an
outcome.

`JobHandler` implements `protocol.Handler` for the driver.
"""

import os
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from importlib import import_module
from logging import DEBUG, INFO
from typing import TYPE_CHECKING, Any, Final, Literal, Self

import anyio
import attrs

from disque_trio.client.errors import DisqueError
from disque_trio.statemachine.base import ORIGINAL_PERIOD_S
from disque_trio.worker import (
    batch_collector,
    continuations,
    deciding,
    open_scopes,
    other_loop,
    snoozing,
)
from disque_trio.worker.arguments import Arguments
from disque_trio.worker.codec import Envelope
from disque_trio.worker.context import Job, current
from disque_trio.worker.copies import Copies
from disque_trio.worker.deciding import End
from disque_trio.worker.decoding import Decoding
from disque_trio.worker.engine import records
from disque_trio.worker.engine.records import Outcome, Reason
from disque_trio.worker.engine.suspects import ALONE_FROM
from disque_trio.worker.enqueue import Enqueuer
from disque_trio.worker.envelope import NewerBodyError, read
from disque_trio.worker.events import WorkerStarted, WorkerStopped
from disque_trio.worker.exceptions import JobTimeoutError, Snooze
from disque_trio.worker.executors.dispatch import Executor, body_of, executors, inline, of_app
from disque_trio.worker.executors.forks import end_fork
from disque_trio.worker.executors.threads import ThreadExecutor
from disque_trio.worker.flows import coordinator
from disque_trio.worker.middleware import Body, Middleware, compose
from disque_trio.worker.notifier import Notifier
from disque_trio.worker.options import Definition
from disque_trio.worker.pace import Pace
from disque_trio.worker.policies import DEFAULT, crashed
from disque_trio.worker.protocol import Run
from disque_trio.worker.runlog import RunLog
from disque_trio.worker.runtime import runtime
from disque_trio.worker.task import Task

if TYPE_CHECKING:
    from disque_trio.worker.cron.declaring import Crons
    from disque_trio.worker.limits import QueueLimit

_TICK_S: Final = 0.001
"""Nodes count in milliseconds: a job that is due by the node's clock is due by this one, too."""
Stage = Literal["reading", "running", "keeping"]
"""How far a run has come: its body is read, its handler runs, or what follows it is added."""
Lifespan = Callable[[], AbstractAsyncContextManager[Any]]
Read = Callable[[bytes], Envelope]
Begin = Callable[[Job[Any]], Awaitable[int]]


class UnknownTaskError(DisqueError):
    """No task of the app has this name."""


class CrashedError(DisqueError):
    """Too many runs of the job ended without an outcome while it ran alone in its worker."""


@attrs.frozen(eq=False)
class Entry:
    """How the jobs of a task or of a consumer are run."""

    definition: Definition
    body: Body
    arguments: Arguments | None = None
    """None for a consumer, which receives the body."""
    copies: Copies = attrs.field(
        init=False,
        default=attrs.Factory(lambda self: self.definition.options.copies, takes_self=True),
    )


@attrs.define(eq=False, kw_only=True)
class JobHandler:
    """Runs jobs of an app, inside `async with`, which opens the client and the lifespan."""

    tasks: Mapping[str, Entry]
    consumers: Mapping[bytes, Entry]
    """By queue."""
    readers: Mapping[bytes, Read] = attrs.Factory(dict)
    """Readers of bodies of other systems, by queue."""
    enqueuer: Enqueuer
    executors: Mapping[str, Executor] = attrs.Factory(dict)
    lifespan: Lifespan | None = None
    beside: Callable[[], Coroutine[Any, Any, None]] | None = None
    """Runs in the background, for example cron schedules."""
    is_strict: bool = False
    """Is a job of an unknown task dead immediately?"""
    draw: Callable[[], float] = random.random
    """A random number from 0 to 1, for jitter."""
    now: Callable[[], float] = time.time
    """Unix time."""
    _tell: Callable[[Job[Any], float, str], Awaitable[None]] = attrs.field(
        init=False,
        default=attrs.Factory(
            lambda self: partial(continuations.report_progress, self.enqueuer), takes_self=True
        ),
    )
    worker: str = ""
    """The name of the worker, in events."""
    in_threads: bool = True
    """Are hooks that are not coroutine functions called in threads?"""
    logs_done: bool = False
    """Are jobs that succeed logged at the level INFO? Otherwise it is DEBUG."""
    _log: RunLog = attrs.field(
        init=False,
        default=attrs.Factory(
            lambda self: RunLog(INFO if self.logs_done else DEBUG), takes_self=True
        ),
    )
    _notifier: Notifier = attrs.field(
        init=False,
        default=attrs.Factory(
            lambda self: Notifier(self.worker, self.enqueuer.hooks, self.now, self.in_threads),
            takes_self=True,
        ),
    )
    _decoding: Decoding = attrs.field(
        init=False,
        default=attrs.Factory(lambda self: Decoding(self.enqueuer.codecs), takes_self=True),
    )
    _state: Any = attrs.field(init=False, default=None)
    _process: int = attrs.field(init=False, factory=os.getpid)
    _stack: AsyncExitStack = attrs.field(init=False, factory=AsyncExitStack)

    async def __aenter__(self) -> Self:
        self._process = os.getpid()
        async with AsyncExitStack() as stack:
            await self.enqueuer.open()
            stack.push_async_callback(self.enqueuer.close)
            for executor in self.executors.values():
                if isinstance(executor, AbstractAsyncContextManager):
                    await stack.enter_async_context(executor)
                elif isinstance(executor, ThreadExecutor):
                    stack.callback(executor.close)
            await self._notifier.open(stack)
            await self._decoding.open(stack)
            if self.lifespan is not None:
                self._state = await stack.enter_async_context(self.lifespan())
            if self.beside is not None:
                tasks = await stack.enter_async_context(anyio.create_task_group())
                stack.callback(tasks.cancel_scope.cancel)
                tasks.start_soon(self.beside)
            self._notifier.worker_has(WorkerStarted)
            stack.callback(self._notifier.worker_has, WorkerStopped)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *raised: Any) -> bool | None:
        return await self._stack.__aexit__(*raised)

    # A run.

    def __call__(self, run: Run) -> Coroutine[Any, Any, Outcome]:
        """Run a job and return its outcome, however the run ends. Raises the worker's cancellation,
        and nothing else."""
        if run.start.additional_deliveries < ALONE_FROM:
            return self._run(run)
        trials = import_module("disque_trio.worker.trials")  # few jobs need it
        on_trial: Coroutine[Any, Any, Outcome] = trials.on_trial(self.enqueuer, self._run, run)
        return on_trial

    async def _run(self, run: Run, begin: Begin | None = None) -> Outcome:
        """`begin` returns how many trials of the job ended without an outcome."""
        entry: Entry | None = None
        job: Job[Any] | None = None
        stage: Stage = "reading"
        args: Sequence[Any]
        kwargs: dict[str, Any]
        scopes = run.scopes or open_scopes.here()
        try:
            if run.start.body[:1] != b"{" and run.start.queue not in self.consumers:
                await self._decoding.decode(run)
            entry, job, envelope = self._known(run)
            if begin is not None:
                _check_crashes(entry, await begin(job))
            args, kwargs = _arguments(entry, envelope, run)
            stage = "running"
            self._check_due(job)
            timeout = entry.definition.timeout
            if timeout is not None:
                run.limit(timeout)
            token = current.set(job)
            self._notifier.started(job)
            try:
                value = await entry.body(job, args, kwargs)
                end_fork(self._process)
                if scopes.innermost() is not scopes.outer:
                    await scopes.leave()
                stage = "keeping"
                outcome = continuations.DONE
                if job.headers:
                    outcome = await continuations.keep(self.enqueuer, job, value)
            finally:
                current.reset(token)
        except BaseException as error:  # of handlers, policies, executors, encoders, middleware
            end_fork(self._process, error)
            other_loop.add_note(error)
            if scopes.innermost() is not scopes.outer:
                try:
                    await scopes.leave(error)
                except open_scopes.LeftOpenError as left:
                    error = left
            if deciding.is_interrupted(run, error):
                self._notifier.interrupted(job)
                raise deciding.cancellation(error) or error from None
            return await self._ended(run, entry, job, stage, error)
        self._log.done(job)
        self._notifier.succeeded(job)
        self._decoding.ended(run)
        return outcome

    def _known(self, run: Run) -> tuple[Entry, Job[Any], Envelope | None]:
        """The entry that runs the job, and its envelope; a job of a consumer has none."""
        start = run.start
        entry = self.consumers.get(start.queue)
        if entry is not None:
            envelope, name, key, headers = None, entry.definition.name, None, {}
        else:
            envelope = self.readers.get(start.queue, self._read)(start.body)
            entry = self.tasks.get(envelope.task)
            if entry is None or entry.arguments is None:
                raise UnknownTaskError(f"unknown task: {envelope.task:.200}")
            name, key, headers = entry.definition.name, envelope.key, envelope.headers
        run.task = name
        known = run, name, key, headers, self._state
        return entry, Job(*known, tell=self._tell, usual=entry.copies), envelope

    def _read(self, body: bytes) -> Envelope:
        return read(body, self.enqueuer.codecs.longest)

    def _check_due(self, job: Job[Any]) -> None:
        """Raise `Snooze` for a job that a node has enqueued too early."""
        if "due" in job.headers and (wait := _due(job) - self.now()) > 0:
            raise Snooze(min(wait + _TICK_S, ORIGINAL_PERIOD_S), reason="it is not due yet")

    # Its end.

    async def _ended(
        self,
        run: Run,
        entry: Entry | None,
        job: Job[Any] | None,
        stage: Stage,
        error: BaseException,
    ) -> Outcome:
        """Decide what happens to a job whose run has not simply returned, log it, and report it to
        hooks and waiting clients. No other function does."""
        job = job or self._as_far_as_read(run)
        try:
            end = self._decide(run, entry, job, stage, error)
        except BaseException as bug:
            end = deciding.last_resort(run, bug)
        if end.how == "snoozed" and not snoozing.can_wait(run):
            options = entry.definition.options if entry and entry.arguments else None
            end = await snoozing.add_again(self.enqueuer, self._reader(run), options, job, end)
        self._notifier.ended(job, end)  # first: log handlers may mark the error as seen
        self._log.ended(job, end, has_begun=stage != "reading")
        if isinstance(end.outcome, records.Done):
            self._decoding.ended(run)
        if end.is_final:
            return await continuations.ended(self.enqueuer, job, end)
        return end.outcome

    def _decide(
        self,
        run: Run,
        entry: Entry | None,
        job: Job[Any],
        stage: Stage,
        error: BaseException,
    ) -> End:
        if stage == "reading" and isinstance(error, DisqueError):
            may_wait = isinstance(error, UnknownTaskError | NewerBodyError) and not self.is_strict
            return deciding.of_unread(run, error, may_wait=may_wait)
        failure = deciding.failure(error)
        if failure is None and run.why is Reason.TOO_LONG:
            failure = JobTimeoutError(_too_long(entry, stage))
        retry = DEFAULT if entry is None else entry.definition.retry
        return deciding.of_failure(
            run, job, retry, error if failure is None else failure, self.draw
        )

    def _reader(self, run: Run) -> Read:
        return self.readers.get(run.start.queue, self._read)

    def _as_far_as_read(self, run: Run) -> Job[Any]:
        """The job of a body that cannot be run: its headers may name a client that waits for it."""
        try:
            envelope = self._reader(run)(run.start.body)
        except BaseException:
            return Job(run, run.task, None, {}, self._state)
        known = run, run.task or envelope.task, envelope.key, envelope.headers, self._state
        entry = self.tasks.get(envelope.task)
        return Job(*known, usual=self.enqueuer.copies if entry is None else entry.copies)


def _arguments(
    entry: Entry, envelope: Envelope | None, run: Run
) -> tuple[Sequence[Any], dict[str, Any]]:
    """The arguments of the function; a consumer receives the body."""
    if envelope is None or entry.arguments is None:
        return (run.start.body,), {}
    return entry.arguments.unpack(envelope)


def _due(job: Job[Any]) -> float:
    due = job.headers["due"]
    return due if isinstance(due, int | float) else 0


def _too_long(entry: Entry | None, stage: Stage) -> str:
    if stage == "keeping":
        return f"its continuation could not be added within {continuations.PATIENCE_S:.0f} s"
    limit = entry and entry.definition.timeout
    return f"ran longer than {limit} s" if limit else "ran longer than its timeout"


def _check_crashes(entry: Entry, crashes: int) -> None:
    reason = crashed(crashes, entry.definition.max_crashes)
    if reason is not None:
        raise CrashedError(reason)


def _own(definition: Definition, fn: Callable[..., Any], known: Mapping[str, Executor]) -> Entry:
    """The entry of a task of this library."""
    return Entry(definition, body_of(definition, fn, known), Arguments(definition.name, fn, 1))


def make_handler(
    tasks: Iterable[Task[..., Any]],
    consumers: Mapping[str, tuple[Definition, Callable[..., Any]]],
    layers: Sequence[Middleware],
    *,
    threads: int,
    processes: int,
    own_executors: "Mapping[str, int | Executor]",
    is_inline: bool,
    crons: "Crons | None",
    limits: "Sequence[QueueLimit]",
    enqueuer: Enqueuer,
    now: Callable[[], float],
    draw: Callable[[], float],
    **more: Any,
) -> JobHandler:
    """The handler of an app (`App.handler`)."""
    own = of_app(own_executors)
    known: dict[str, Executor] = (
        inline() if is_inline else {**(runtime().executors or executors)(threads, processes)}
    )
    if is_inline or runtime().executors is not None:  # virtual time: no executor of users
        known |= dict.fromkeys(own, known["thread"])
    else:
        known |= own
    entries: dict[str, Entry] = {}
    for task in tasks:
        task.arguments.check()
        body = compose(layers, body_of(task.definition, task.fn, known, is_within=bool(layers)))
        names = (task.name, *task.definition.aliases)
        entries |= dict.fromkeys(names, Entry(task.definition, body, task.arguments))
    pace = Pace()
    for module, make in (
        (batch_collector, batch_collector.collector),
        (coordinator, coordinator.coordinator),
    ):
        definition = module.definition()
        entries[definition.name] = _own(definition, make(enqueuer, now, pace), known)
    beside = None
    if crons is not None and crons.schedules:
        beside = import_module("disque_trio.worker.cron.known").keeping(enqueuer, crons, now, draw)
    if limits:
        beside = import_module("disque_trio.worker.limits").applying(enqueuer, limits, beside)
    return JobHandler(
        tasks=entries,
        consumers={
            queue.encode(errors="surrogateescape"): Entry(
                definition,
                compose(layers, body_of(definition, fn, known, is_within=bool(layers))),
            )
            for queue, (definition, fn) in consumers.items()
        },
        executors=known,
        in_threads=not is_inline and runtime().executors is None,
        beside=beside,
        enqueuer=enqueuer,
        now=now,
        draw=draw,
        **more,
    )
