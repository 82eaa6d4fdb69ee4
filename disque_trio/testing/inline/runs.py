"""Runs jobs with the handler of an app, without a worker."""

import contextlib
import math
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Final, Literal

import anyio
import attrs
from anyio.abc import TaskGroup

from disque_trio.client.errors import DisqueError
from disque_trio.statemachine.base import Reply
from disque_trio.testing.inline.node import HOST, MemoryNode
from disque_trio.worker import codec
from disque_trio.worker.app import App
from disque_trio.worker.batches import COLLECT
from disque_trio.worker.context import Job
from disque_trio.worker.describing import leaves
from disque_trio.worker.engine import words
from disque_trio.worker.engine.records import (
    NEVER,
    SECOND,
    Dead,
    Done,
    Node,
    Outcome,
    Reason,
    Release,
    Retry,
    Start,
)
from disque_trio.worker.engine.records import Job as Held
from disque_trio.worker.enqueue import Call
from disque_trio.worker.exceptions import Cancel, Snooze
from disque_trio.worker.handler import Entry, JobHandler
from disque_trio.worker.middleware import Body
from disque_trio.worker.protocol import Run

End = Literal["done", "retried", "snoozed", "cancelled", "dead"]

_FEATURES: Final = frozenset((
    words.META, words.TOKENS, words.RELEASE, words.RELEASE_DELAY, words.DELAY, words.BURY,
    words.LAST_ERROR, words.LONG_WAITS, words.RESULTS,
))  # fmt: skip
_NODE: Final = Node(HOST, features=_FEATURES)
_PERFORMED: Final = b"D-11111111-performedperformedperfor-05a1"


@attrs.frozen
class Ran:
    """A run, and the outcome of its job."""

    task: str
    queue: str
    key: str | None
    attempt: int
    end: End
    result: Any = None
    """The return value of the handler; with `result_ttl`, as a waiting client receives it."""
    error: BaseException | None = None
    """The error of the handler; for a job that is done, why its result cannot be received."""
    after: float | None = None
    """Seconds until the retry, if the task's policy retries the job."""
    reason: str = ""
    """Why it is dead; empty if it is not."""

    def __str__(self) -> str:
        text = f"{self.task}, attempt {self.attempt}: {self.end}"
        if self.after is not None:
            text += f", again in {self.after:g} s"
        return text + (f", {self.reason}" if self.reason else "")


@attrs.define(eq=False)
class _Driver:
    """The driver of a run, in place of a worker."""

    lease_ends: float
    tasks: TaskGroup
    scope: anyio.CancelScope = attrs.Factory(anyio.CancelScope)
    is_stopping: bool = False
    slots: int = 1
    is_over: bool = False
    """Does the node have the outcome?"""
    run: Run = attrs.field(init=False)

    def lease_end(self, id: bytes) -> float:  # noqa: ARG002
        """When the lease ends; it is never lost."""
        return self.lease_ends

    def node_of(self, id: bytes) -> str:  # noqa: ARG002
        """The node; empty after the job has ended."""
        return "" if self.is_over else HOST

    def has(self, feature: bytes) -> bool:
        """Does the node have this feature?"""
        return words.has(_NODE, feature)

    def has_slot_for(self, queue: bytes) -> bool:  # noqa: ARG002
        """Always True: each job starts immediately."""
        return True

    def limit(self, id: bytes, seconds: float) -> float:  # noqa: ARG002
        """Cancel the handler after this time, by the clock of the event loop. Returns the time of
        the cancellation."""
        self.tasks.start_soon(self._end, seconds)
        return anyio.current_time() + seconds

    async def _end(self, seconds: float) -> None:
        await anyio.sleep(seconds)
        self.run.why = Reason.TOO_LONG
        (self.run.scope or self.scope).cancel()


@attrs.define(eq=False)
class _Seen:
    """The job, the result and the error of a function that has run."""

    job: Job[Any] | None = None
    result: Any = None
    error: BaseException | None = None


@attrs.define(eq=False)
class Runner:
    """Runs jobs of an app, one after another."""

    app: App[Any]
    node: MemoryNode
    handler: JobHandler
    seen: _Seen = attrs.Factory(_Seen)

    @classmethod
    @contextlib.asynccontextmanager
    async def of(cls, app: App[Any], node: MemoryNode) -> "AsyncIterator[Runner]":
        """A runner in the lifespan of the app. Waits between attempts are the longest that the
        policies allow."""
        handler = app.handler(has_cron=False, draw=lambda: 1.0)
        runner = cls(app, node, handler)
        handler.tasks = {name: runner._watched(each) for name, each in handler.tasks.items()}
        handler.consumers = {
            name: runner._watched(each) for name, each in handler.consumers.items()
        }
        async with handler:
            yield runner

    def _watched(self, entry: Entry) -> Entry:
        return attrs.evolve(entry, body=partial(self._watch, entry.body))

    async def _watch(self, body: Body, job: Job[Any], args: Any, kwargs: dict[str, Any]) -> object:
        self.seen.job = job
        try:
            self.seen.result = await body(job, args, kwargs)
        except BaseException as error:
            self.seen.error = error
            raise
        return self.seen.result

    # Runs.

    async def perform(self, call: Call[Any], nacks: int, interrupted: int) -> Ran:
        """Run a call, which is encoded as a body and decoded."""
        [request] = await call.enqueuer.encoded([call.enqueuer.request(call)])
        if isinstance(request, DisqueError):
            raise request
        _, queue, body, *_ = request.command.words
        start = Start(_PERFORMED, queue, body, nacks, interrupted)
        return self._ran(start, await self._outcome(start, math.inf))

    @property
    def queues(self) -> list[bytes]:
        """The queues from which jobs are taken."""
        return [name.encode(errors="surrogateescape") for name in self.app.queues]

    async def run_next(self) -> Ran | None:
        """Run the next job of the app's queues; None if none is due."""
        if not self.queues:
            return None
        reply = self.node.ask((b"GETJOB", b"NOHANG", b"WITHMETA", b"FROM", *self.queues))
        for queue, id, body, facts in words.jobs(reply):
            nacks, crashes = (
                words.number(facts, name) for name in (b"nacks", b"additional-deliveries")
            )
            snoozes = words.number(facts, b"snoozes")
            start = Start(id, queue, body, nacks, crashes, snoozes)
            outcome = await self._outcome(start, words.number(facts, b"lease-ms") / 1000)
            self._settle(start, facts, outcome)
            return self._ran(start, outcome)
        return None

    async def _outcome(self, start: Start, lease_s: float) -> Outcome:
        self.seen = _Seen()
        outcome: Outcome | None = None
        async with anyio.create_task_group() as tasks:
            driver = _Driver(anyio.current_time() + (lease_s or math.inf), tasks)
            driver.run = run = Run(start, driver)
            with driver.scope:
                outcome = await self.handler(run)
            driver.is_over = True
            tasks.cancel_scope.cancel()
        assert outcome is not None
        return outcome

    def _settle(self, start: Start, facts: dict[bytes, Reply], outcome: Outcome) -> None:
        """Report the outcome to the node, with the commands of a worker."""
        is_once = words.is_once(start.id)
        if is_once and isinstance(outcome, Retry | Release):
            outcome = Done()  # it is never delivered again
        token = facts.get(b"token")
        held = Held(
            start.id,
            start.queue,
            start.body,
            HOST,
            0,
            token if isinstance(token, bytes) else b"",
            start.nacks,
            start.additional_deliveries,
            is_once,
            0,
            NEVER,
            NEVER,
            knows_lease=True,
            outcome=outcome,
        )
        before, behind = words.settle(_NODE, held)
        id = words.named(_NODE, held) if before[0] in (b"NACK", b"RELEASE") else start.id
        self.node.ask((*before, id, *behind))

    def _ran(self, start: Start, outcome: Outcome) -> Ran:
        job, error = self.seen.job, self.seen.error
        end = _end_of(outcome, error) if job else _end_unrun(outcome)
        result = self.seen.result
        if isinstance(outcome, Done) and outcome.result is not None and end == "done":
            try:
                result = self._arriving(outcome.result)
            except DisqueError as failed:
                result, error = None, failed
        after = outcome.delay if isinstance(outcome, Retry) else None
        return Ran(
            task=job.task if job else "",
            queue=start.queue.decode(errors="surrogateescape"),
            key=job.key if job else None,
            attempt=job.attempt if job else start.nacks + 1,
            end=end,
            result=result,
            error=error,
            after=None if after is None else after / SECOND,
            reason=outcome.reason.decode(errors="replace") if isinstance(outcome, Dead) else "",
        )

    def _arriving(self, body: bytes) -> Any:
        """The value that a client reads from the kept result. Raises `DisqueError`."""
        enqueuer = self.app._enqueuer
        found = codec.read_result(enqueuer.codecs.decoded(body))
        if found.next:
            return None if found.task == COLLECT else self.seen.result
        return enqueuer.read_kept(found)


def _end_unrun(outcome: Outcome) -> End:
    """The end of a job that cannot be run, or is not due yet."""
    return {Dead: "dead", Done: "snoozed", Release: "snoozed"}.get(type(outcome), "retried")  # type: ignore[return-value]


def _end_of(outcome: Outcome, error: BaseException | None) -> End:
    if isinstance(outcome, Dead):
        return "dead"
    if isinstance(outcome, Retry):
        return "retried"
    if error is None:
        return "done"
    parts = leaves(error)
    if any(isinstance(each, Snooze) for each in parts):
        return "snoozed"
    if isinstance(outcome, Release):
        return "retried"
    return "cancelled" if any(isinstance(each, Cancel) for each in parts) else "done"
