"""`Job`: the job that a handler runs, and its API for the handler."""

import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextvars import ContextVar
from typing import Any, Final, Generic, TypeVar

import attrs

from disque_trio.worker.copies import NO_COPIES, Copies
from disque_trio.worker.events import RunEnded
from disque_trio.worker.exceptions import InterruptedJobError
from disque_trio.worker.once import TABLE, Connection, claim
from disque_trio.worker.protocol import Run
from disque_trio.worker.runtime import runtime

State = TypeVar("State")
"""The value that the app's lifespan yields."""

logger: Final = logging.getLogger("disque_trio.worker.jobs")
current: Final[ContextVar["Job[Any]"]] = ContextVar("disque_trio.worker.job")


class NoJobError(LookupError):
    """`current_job` was called outside of a handler."""


@attrs.define(eq=False)
class Job(Generic[State]):
    """The job that a handler runs, in the current run."""

    run: Run
    """The driver's record of this run."""
    task: str
    key: str | None
    """The key that identifies the job, even if it was added twice. None without one, for example in
    consumers and for plain jobs of Resque. For a job of Sidekiq without `jid` it is the `id`."""
    headers: Mapping[str, Any]
    state: State
    """The value that the app's lifespan has yielded."""
    _tell: "Callable[[Job[Any], float, str], Awaitable[None]] | None" = None
    _usual: Copies = NO_COPIES
    """The replicas and confirmations of the task's jobs."""
    checkpoint: Any = attrs.field(init=False, default=None)
    """The last checkpoint that the handler has yielded, in this run or an earlier one; None before
    the first."""
    ends: "list[Callable[[RunEnded], object]]" = attrs.field(init=False, factory=list)
    """The functions passed to `on_end`."""

    def __attrs_post_init__(self) -> None:
        if self.key == "":
            self.key = self.id

    @property
    def id(self) -> str:
        """The id of the job on the nodes."""
        return self.run.start.id.decode(errors="backslashreplace")

    @property
    def queue(self) -> str:
        """The queue from which the job was taken."""
        return self.run.start.queue.decode(errors="surrogateescape")

    @property
    def node(self) -> str:
        """The node that delivered the job."""
        return self.run.node

    @property
    def attempt(self) -> int:
        """The number of this attempt: 1, plus the failed attempts before it."""
        return self.run.start.nacks + number(self.headers, "tries") + 1

    @property
    def delivery(self) -> int:
        """The number of deliveries under this id, including this one."""
        return self.run.start.nacks + self.run.start.additional_deliveries + 1

    @property
    def interrupted(self) -> int:
        """The number of deliveries that ended without an outcome, for example because a worker
        died."""
        return self.run.start.additional_deliveries

    @property
    def snoozes(self) -> int:
        """The number of times a handler has snoozed the job. A delay set by the producer does not
        count."""
        by_producer = number(self.headers, "hops") or int("due" in self.headers)
        counted = self.run.start.snoozes - by_producer
        return max(counted, 0) + number(self.headers, "snoozes")

    @property
    def parents(self) -> list[str]:
        """The ids of the job's predecessors in its flow, in the order of `after`. Empty unless it
        was added to the flow with `parents=True`."""
        match self.headers.get("batch"):
            case {"parents": [*ids]}:
                return [each for each in ids if isinstance(each, str)]
        return []

    @property
    def copies(self) -> Copies:
        """The number of replicas and confirmations of the job, as set by its producer or its
        task."""
        own = Copies.of(self.headers)
        return attrs.evolve(self._usual, **own.as_options()) if own != NO_COPIES else self._usual

    @property
    def deadline(self) -> float:
        """When this run is cancelled, on the clock of `anyio.current_time`: when its time limit or
        its lease ends. The worker renews the lease while it can."""
        return min(self.run.lease_end(), self.run.ends)

    @property
    def stopping(self) -> bool:
        """Is the worker stopping? A long handler may then end early, for example by `Snooze(0)`."""
        return self.run.is_stopping

    def check(self) -> None:
        """Raise `InterruptedJobError` if the run is over. Call it in long `def` handlers, because a
        thread cannot be interrupted."""
        if self.run.why is not None:
            raise InterruptedJobError(self.run.why)

    def on_end(self, call: "Callable[[RunEnded], object]") -> None:
        """Call a `def` with the event that describes how this run has ended, for example from
        middleware. It is called in the event loop; its errors are logged."""
        self.ends.append(call)

    async def progress(self, percent: float, text: str = "") -> None:
        """Report progress, from 0 to 100 percent, to the client that waits for the result, if any.
        Raises `ValueError` for another number. If no node accepts the update, a warning is
        logged."""
        if not 0 <= percent <= 100:
            raise ValueError(f"progress is {percent}: it must be from 0 to 100")
        if self._tell is not None:
            await self._tell(self, percent, text)

    def once(
        self, connection: Connection, *, paramstyle: str = "qmark", table: str = TABLE
    ) -> bool:
        """Is this the first run of the job whose effect is committed in this database? Call it in
        the transaction of the effect, and skip the effect if it returns False (`once.claim`)."""
        name = f"{self.task}:{self.key or self.id}"
        return claim(connection, name, runtime().now(), paramstyle=paramstyle, table=table)

    @property
    def log(self) -> "JobLog":
        """A logger whose records have `job`, `task`, `key` and `attempt`."""
        known = {"job": self.id, "task": self.task, "key": self.key, "attempt": self.attempt}
        return JobLog(logger, known)


class JobLog(logging.LoggerAdapter[logging.Logger]):
    """Adds the fields of the job to each record, in addition to its own `extra`."""

    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        """The message, and keyword arguments with both."""
        extra = {**(self.extra or {}), **(kwargs.get("extra") or {})}
        return msg, {**kwargs, "extra": extra}


def current_job() -> Job[Any]:
    """The job that runs in this task or thread. Raises `NoJobError` outside of a handler."""
    try:
        return current.get()
    except LookupError:
        raise NoJobError("no job is running here: call it inside a handler") from None


def number(headers: Mapping[str, Any], name: str) -> int:
    """The value of a header that contains a count; 0 if it contains none."""
    value = headers.get(name)
    return value if isinstance(value, int) and 0 <= value < 1 << 31 else 0
