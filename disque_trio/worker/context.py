"""The job of a handler, as the handler sees it."""

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
    """No job runs here."""


@attrs.define(eq=False)
class Job(Generic[State]):
    """The job that a handler runs, in this run of it."""

    run: Run
    """What the driver knows of this run."""
    task: str
    key: str | None
    """Identifies the job, also if it was added twice; None without a key of its producer. If the
    producer's system has keys but this body has none (a body of Sidekiq without `jid`), it is
    empty; use `id` then."""
    headers: Mapping[str, Any]
    state: State
    """The value that the app's lifespan has yielded."""
    _tell: "Callable[[Job[Any], float, str], Awaitable[None]] | None" = None
    _usual: Copies = NO_COPIES
    """Of the jobs of its task."""
    checkpoint: Any = attrs.field(init=False, default=None)
    """What a handler that yields has yielded last, also in an earlier run; None before the
    first."""
    ends: "list[Callable[[RunEnded], object]]" = attrs.field(init=False, factory=list)
    """What `on_end` was given."""

    def __attrs_post_init__(self) -> None:
        if self.key == "":
            self.key = self.id

    @property
    def id(self) -> str:
        """Its id at the nodes."""
        return self.run.start.id.decode(errors="backslashreplace")

    @property
    def queue(self) -> str:
        """The queue from which it was taken."""
        return self.run.start.queue.decode(errors="surrogateescape")

    @property
    def node(self) -> str:
        """The node that has delivered it."""
        return self.run.node

    @property
    def attempt(self) -> int:
        """The number of this attempt: failed attempts before it + 1."""
        return self.run.start.nacks + number(self.headers, "tries") + 1

    @property
    def delivery(self) -> int:
        """How often it was delivered under its id, including this delivery."""
        return self.run.start.nacks + self.run.start.additional_deliveries + 1

    @property
    def interrupted(self) -> int:
        """How often it was delivered without an outcome: its workers may have died."""
        return self.run.start.additional_deliveries

    @property
    def snoozes(self) -> int:
        """How often a handler has snoozed it. A delay of its producer does not count."""
        by_producer = number(self.headers, "hops") or int("due" in self.headers)
        counted = self.run.start.snoozes - by_producer
        return max(counted, 0) + number(self.headers, "snoozes")

    @property
    def parents(self) -> list[str]:
        """The ids of the jobs before it in its flow, in the order of `after`, if it was added to
        the flow with `parents=True`."""
        match self.headers.get("batch"):
            case {"parents": [*ids]}:
                return [each for each in ids if isinstance(each, str)]
        return []

    @property
    def copies(self) -> Copies:
        """Its replicas and confirmations, as set by its producer or its task."""
        own = Copies.of(self.headers)
        return attrs.evolve(self._usual, **own.as_options()) if own != NO_COPIES else self._usual

    @property
    def deadline(self) -> float:
        """When it is cancelled, on the clock of `anyio.current_time`: the end of its time limit, or
        of its lease, which is renewed while the worker can."""
        return min(self.run.lease_end(), self.run.ends)

    @property
    def stopping(self) -> bool:
        """Is the worker stopping? A long handler may end early, for example by `Snooze(0)`."""
        return self.run.is_stopping

    def check(self) -> None:
        """Raise `InterruptedJobError` if the run is over. For long `def` handlers, because a thread
        cannot be interrupted."""
        if self.run.why is not None:
            raise InterruptedJobError(self.run.why)

    def on_end(self, call: "Callable[[RunEnded], object]") -> None:
        """Call a function with the event that says how this run has ended, for example from
        middleware: a `def`, which is called in the event loop. What it raises is logged."""
        self.ends.append(call)

    async def progress(self, percent: float, text: str = "") -> None:
        """Report the progress, from 0 to 100, to the client that waits for the result, if any.
        Raises `ValueError` for another number. If no node accepts the update, that is logged."""
        if not 0 <= percent <= 100:
            raise ValueError(f"progress is {percent}: it is from 0 to 100")
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
    """Adds what is known of the job to each record, beside its own `extra`."""

    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        """The record with both."""
        extra = {**(self.extra or {}), **(kwargs.get("extra") or {})}
        return msg, {**kwargs, "extra": extra}


def current_job() -> Job[Any]:
    """The job of this task or thread. Raises `NoJobError` outside of a handler."""
    try:
        return current.get()
    except LookupError:
        raise NoJobError("no job runs here: call it inside of a handler") from None


def number(headers: Mapping[str, Any], name: str) -> int:
    """A header that counts; 0 for what is no count."""
    value = headers.get(name)
    return value if isinstance(value, int) and 0 <= value < 1 << 31 else 0
