"""Runs the jobs of an app: from a body to a handler, and from its end to an outcome.

`JobHandler` is what a driver asks for (`handling.Handler`).
"""

import math
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from typing import Any, Final, Self

import anyio
import attrs

from disque_trio.client.errors import DisqueError
from disque_trio.worker import collecting, followups
from disque_trio.worker.arguments import Arguments
from disque_trio.worker.carrying import carried
from disque_trio.worker.codec import Envelope
from disque_trio.worker.context import Job, current, logger, number
from disque_trio.worker.cron.declaring import Crons
from disque_trio.worker.cron.loop import keep_time
from disque_trio.worker.engine import records
from disque_trio.worker.engine.records import SECOND, Outcome, Why
from disque_trio.worker.engine.words import LONGEST_REASON
from disque_trio.worker.enqueue import Enqueuer, Request
from disque_trio.worker.envelope import (
    BadBodyError,
    NewerBodyError,
    created_at,
    read,
)
from disque_trio.worker.exceptions import LONGEST_S, Cancel, Dead, JobTimeoutError, Retry, Snooze
from disque_trio.worker.executing import Executor, body_of, executors, inline
from disque_trio.worker.executors.processes import ProcessExecutor
from disque_trio.worker.executors.threads import ThreadExecutor
from disque_trio.worker.handling import Run
from disque_trio.worker.middleware import Body, Middleware, compose
from disque_trio.worker.options import Definition
from disque_trio.worker.outside import outside
from disque_trio.worker.policies import (
    Again,
    Buried,
    Cancelled,
    Later,
    Policy,
    Tries,
    Verdict,
    crashed,
    describe,
    judge,
    leaves,
    unknown_task,
)
from disque_trio.worker.task import Task

DONE: Final = records.Done()
_TOO_LATE: Final = f"and a job waits {LONGEST_S} s at most"
_ASKED: Final = (Cancel, Dead, Retry, Snooze)
Lifespan = Callable[[], AbstractAsyncContextManager[Any]]
Read = Callable[[bytes], Envelope]


class UnknownTaskError(DisqueError):
    """No task of the app has this name."""


class CrashedError(DisqueError):
    """It was delivered too often without an answer."""


@attrs.frozen(eq=False)
class Entry:
    """How the jobs of a task, or of a consumer, are run."""

    definition: Definition
    body: Body
    arguments: Arguments | None = None
    """None for a consumer, which gets the body."""


@attrs.define(eq=False, kw_only=True)
class JobHandler:
    """Runs jobs of an app, inside of `async with`, which opens the client and the lifespan."""

    tasks: Mapping[str, Entry]
    consumers: Mapping[bytes, Entry]
    """By queue."""
    readers: Mapping[bytes, Read] = attrs.Factory(dict)
    """By queue: what else reads bodies there."""
    enqueuer: Enqueuer
    executors: Mapping[str, Executor] = attrs.Factory(dict)
    lifespan: Lifespan | None = None
    beside: Callable[[], Coroutine[Any, Any, None]] | None = None
    """Runs meanwhile."""
    is_strict: bool = False
    """Is a job of an unknown task dead at once?"""
    draw: Callable[[], float] = random.random
    """A random number from 0 to 1, for jitter."""
    now: Callable[[], float] = time.time
    """Unix time."""
    _tell: Callable[[Job[Any], float, str], Awaitable[None]] = attrs.field(
        init=False,
        default=attrs.Factory(lambda self: partial(followups.tell, self.enqueuer), takes_self=True),
    )
    _state: Any = attrs.field(init=False, default=None)
    _stack: AsyncExitStack = attrs.field(init=False, factory=AsyncExitStack)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await self.enqueuer.open()
            stack.push_async_callback(self.enqueuer.close)
            for executor in self.executors.values():
                if isinstance(executor, ProcessExecutor):
                    await stack.enter_async_context(executor)
                elif isinstance(executor, ThreadExecutor):
                    stack.callback(executor.close)
            if self.lifespan is not None:
                self._state = await stack.enter_async_context(self.lifespan())
            if self.beside is not None:
                tasks = await stack.enter_async_context(anyio.create_task_group())
                stack.callback(tasks.cancel_scope.cancel)
                tasks.start_soon(self.beside)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *raised: Any) -> bool | None:
        return await self._stack.__aexit__(*raised)

    # A run.

    async def __call__(self, run: Run) -> Outcome:
        """Run a job, and say what becomes of it."""
        try:
            entry, job, args, kwargs = self._begin(run)
        except DisqueError as error:
            return self._unreadable(run, error)
        if "due" in job.headers and (wait := _due(job) - self.now()) > 0:
            if wait > LONGEST_S:
                return self._unreadable(run, BadBodyError(f"due in {wait:.0f} s, {_TOO_LATE}"))
            return await self._snooze(entry, job, run, wait)
        timeout = entry.definition.timeout
        if timeout is not None:
            run.limit(timeout)
            job.ends = anyio.current_time() + timeout
        token = current.set(job)
        try:
            value = await entry.body(job, args, kwargs)
            if job.headers:
                await followups.keep(self.enqueuer, job, value)
        except (Exception, BaseExceptionGroup, SystemExit, KeyboardInterrupt) as error:
            return await self._failed(entry, job, run, _without_cancellation(error))
        finally:
            current.reset(token)
        return DONE

    def overrun(self, run: Run) -> Outcome:
        """The run was cancelled because it took too long: a failed attempt."""
        try:
            entry, job, _, _ = self._begin(run)
        except DisqueError as error:
            return self._unreadable(run, error)
        late = JobTimeoutError(f"ran longer than {entry.definition.timeout} s")
        return self._outcome(entry, job, late, self._verdict(entry, job, late))

    def _begin(self, run: Run) -> tuple[Entry, Job[Any], Sequence[Any], dict[str, Any]]:
        start = run.start
        entry = self.consumers.get(start.queue)
        if entry is not None:
            _check_crashes(entry, run)
            run.task = entry.definition.name
            job = Job(run, entry.definition.name, None, {}, self._state, tell=self._tell)
            return entry, job, (start.body,), {}
        envelope = self.readers.get(start.queue, self._read)(start.body)
        entry = self.tasks.get(envelope.task)
        if entry is None or entry.arguments is None:
            raise UnknownTaskError(f"unknown task: {envelope.task:.200}")
        if start.additional_deliveries:
            _check_crashes(entry, run)
        args, kwargs = entry.arguments.unpack(envelope)
        name, headers = entry.definition.name, envelope.headers
        run.task = name
        job = Job(run, name, envelope.key, headers, self._state, tell=self._tell)
        return entry, job, args, kwargs

    def _read(self, body: bytes) -> Envelope:
        return read(body, self.enqueuer.max_body)

    def _unreadable(self, run: Run, error: DisqueError) -> Outcome:
        if isinstance(error, UnknownTaskError | NewerBodyError) and not self.is_strict:
            wait = unknown_task(run.start.nacks)
            if wait is not None:
                return _retry(wait)
        job = run.start.id.decode(errors="backslashreplace")
        logger.error("dead, not run: %s", error, extra={"job": job})
        return records.Dead(_reason(str(error)))

    # Failures.

    async def _failed(self, entry: Entry, job: Job[Any], run: Run, error: BaseException) -> Outcome:
        if not _may_say(run, error):
            job.log.info("interrupted: %s", run.why and run.why.value)
            return records.Release()
        verdict = self._verdict(entry, job, error)
        if isinstance(verdict, Later):
            return await self._snooze(entry, job, run, verdict.after)
        outcome = self._outcome(entry, job, error, verdict)
        if isinstance(outcome, records.Dead | records.Done):
            await followups.fail(self.enqueuer, job, error)
        return outcome

    def _verdict(self, entry: Entry, job: Job[Any], error: BaseException) -> Verdict:
        retry = entry.definition.retry
        policy = retry if isinstance(retry, Policy) else partial(retry, job)
        tries = Tries(
            attempt=job.attempt,
            snoozes=job.snoozes,
            attempts=number(job.headers, "attempts") or None,
        )
        return judge(policy, error, tries, self.draw())

    def _outcome(
        self, entry: Entry, job: Job[Any], error: BaseException, verdict: Verdict
    ) -> Outcome:
        if isinstance(verdict, Again) and not self._lives(entry, job, verdict.after):
            verdict = Buried(
                f"its life ends before the next attempt, in {verdict.after:.0f} s: "
                f"{describe(error)}"
            )
        match verdict:
            case Again(after, is_expected):
                traceback = None if is_expected else error
                job.log.warning(
                    "failed, runs again in %.1f s: %s", after, describe(error), exc_info=traceback
                )
                return _retry(after)
            case Buried(reason, is_expected):
                job.log.error("dead: %s", reason, exc_info=None if is_expected else error)
                return records.Dead(_reason(reason))
            case Cancelled(reason):
                job.log.info("cancelled: %s", reason)
        return DONE

    def _lives(self, entry: Entry, job: Job[Any], after: float) -> bool:
        """Does it live long enough for another attempt, as far as its key tells?"""
        added = job.headers.get("added") or created_at(job.key)
        if not isinstance(added, int | float):
            return True
        ttl = number(job.headers, "ttl") or entry.definition.options.ttl
        age = self.now() - added
        return age + after < ttl or age > ttl  # an older one has been queued again by REDRIVE

    # Snoozes.

    async def _snooze(self, entry: Entry, job: Job[Any], run: Run, after: float) -> Outcome:
        """Add it again, with its attempts and snoozes in its headers, and acknowledge this one: a
        NACK would count as a failure (decision 78)."""
        if entry.arguments is None:
            return _retry(after)  # the body of a consumer has no headers
        try:
            await self.enqueuer.add(self._snoozed(entry, job, run, after))
        except (DisqueError, ValueError) as error:
            job.log.warning("cannot be snoozed, so this counts as an attempt: %s", error)
            return _retry(after)
        job.log.info("snoozed for %.1f s", after)
        return DONE

    def _snoozed(self, entry: Entry, job: Job[Any], run: Run, after: float) -> Request[Any]:
        body = self.readers.get(run.start.queue, self._read)(run.start.body)
        headers = {
            **job.headers,
            "tries": job.attempt - 1,
            "snoozes": job.snoozes + ("due" not in job.headers),  # its producer's wish is none
            "added": round(self.now() + after, 3),
        }
        headers.pop("due", None)
        options = carried(entry.definition.options, headers)
        options = attrs.evolve(
            options,
            queue=job.queue,
            delay=after,
            at=None,
            ttl=options.ttl + math.ceil(after),
            maxlen=None,
            on_conflict="again",
        )
        name, key, packed = (
            entry.definition.name,
            body.key or outside().new_key(),
            (body.args, body.kwargs),
        )
        return self.enqueuer.packed(name, key, packed, options, body.form, headers)


def _due(job: Job[Any]) -> float:
    due = job.headers["due"]
    return due if isinstance(due, int | float) else 0


def _may_say(run: Run, error: BaseException) -> bool:
    """May a node learn of the error? Once the lease is lost only that the job is not needed, for
    another worker may have it. What a handler raises because the worker stops is no failure."""
    if run.why is Why.SHUTDOWN:
        return isinstance(error, _ASKED)
    return run.why in (None, Why.TOO_LONG) or isinstance(error, Cancel)


def _check_crashes(entry: Entry, run: Run) -> None:
    reason = crashed(run.start.additional_deliveries, entry.definition.max_crashes)
    if reason is not None:
        raise CrashedError(reason)


def _without_cancellation(error: BaseException) -> BaseException:
    """Raises the cancellation that is in a group: it is no failure."""
    if isinstance(error, BaseExceptionGroup):
        cancelled, _ = error.split(anyio.get_cancelled_exc_class())
        if cancelled is not None:
            raise next(leaves(cancelled))
    return error


def _retry(after: float) -> records.Retry:
    return records.Retry(round(after * SECOND))


def _reason(text: str) -> bytes:
    return text.encode(errors="backslashreplace")[:LONGEST_REASON]


def make_handler(
    tasks: Iterable[Task[..., Any]],
    consumers: Mapping[str, tuple[Definition, Callable[..., Any]]],
    layers: Sequence[Middleware],
    *,
    threads: int,
    processes: int,
    is_inline: bool,
    crons: Crons | None,
    enqueuer: Enqueuer,
    now: Callable[[], float],
    draw: Callable[[], float],
    **more: Any,
) -> JobHandler:
    """The handler of an app (`App.handler`)."""
    known = inline() if is_inline else (outside().executors or executors)(threads, processes)
    entries: dict[str, Entry] = {}
    for task in tasks:
        task.arguments.check()
        body = compose(layers, body_of(task.definition, task.fn, known))
        names = (task.name, *task.definition.aliases)
        entries |= dict.fromkeys(names, Entry(task.definition, body, task.arguments))
    collect, definition = collecting.collector(enqueuer, now), collecting.definition()
    body = body_of(definition, collect, known)
    entries[definition.name] = Entry(definition, body, Arguments(definition.name, collect, 1))
    beside = None
    if crons is not None and crons.schedules:
        beside = partial(keep_time, crons.schedules, crons.add, wall=now, draw=draw)
    return JobHandler(
        tasks=entries,
        consumers={
            queue.encode(errors="surrogateescape"): Entry(
                definition, compose(layers, body_of(definition, fn, known))
            )
            for queue, (definition, fn) in consumers.items()
        },
        executors=known,
        beside=beside,
        enqueuer=enqueuer,
        now=now,
        draw=draw,
        **more,
    )
