"""What a handler may ask while its job runs."""

import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextvars import ContextVar
from typing import Any, Final, Generic, TypeVar

import attrs

from disque_trio.worker.copies import NO_COPIES, Copies
from disque_trio.worker.exceptions import InterruptedJobError
from disque_trio.worker.handling import Run
from disque_trio.worker.once import TABLE, Connection, claim
from disque_trio.worker.outside import outside

State = TypeVar("State")
"""What the app's lifespan yields."""

logger: Final = logging.getLogger("disque_trio.worker.jobs")
current: Final[ContextVar["Job[Any]"]] = ContextVar("disque_trio.worker.job")


class NoJobError(LookupError):
    """No job runs here."""


@attrs.define(eq=False)
class Job(Generic[State]):
    """The job that a handler works on, in this run of it."""

    run: Run
    """What the driver knows of this run."""
    task: str
    key: str | None
    """Names it, also if it was added twice; None if its producer gave no key. A producer whose
    system has keys and that gave none (a body of Sidekiq without `jid`) has an empty one: `id`."""
    headers: Mapping[str, Any]
    state: State
    """What the app's lifespan has yielded."""
    _tell: "Callable[[Job[Any], float, str], Awaitable[None]] | None" = None
    _usual: Copies = NO_COPIES
    """Of the jobs of its task."""

    def __attrs_post_init__(self) -> None:
        if self.key == "":
            self.key = self.id

    @property
    def id(self) -> str:
        """The node's name for it."""
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
        """The failed attempts before this one, and one."""
        return self.run.start.nacks + number(self.headers, "tries") + 1

    @property
    def delivery(self) -> int:
        """How often it was delivered under its id, this time included."""
        return self.run.start.nacks + self.run.start.additional_deliveries + 1

    @property
    def interrupted(self) -> int:
        """How often it was delivered and nobody answered: its workers may have died."""
        return self.run.start.additional_deliveries

    @property
    def snoozes(self) -> int:
        """How often a handler has asked for a later time. The wish of its producer is none."""
        by_producer = number(self.headers, "hops") or int("due" in self.headers)
        counted = self.run.start.snoozes - by_producer
        return max(counted, 0) + number(self.headers, "snoozes")

    @property
    def copies(self) -> Copies:
        """How safe it is, as its producer has asked or its task says."""
        own = Copies.of(self.headers)
        return attrs.evolve(self._usual, **own.told()) if own != NO_COPIES else self._usual

    @property
    def deadline(self) -> float:
        """When it is cancelled, by `anyio.current_time`: the end of its time limit, or of its
        lease, which is renewed while the worker can."""
        return min(self.run.lease_end(), self.run.ends)

    @property
    def stopping(self) -> bool:
        """Does the worker stop? A long handler may end early, by `Snooze(0)`, for example."""
        return self.run.is_stopping

    def check(self) -> None:
        """For `def` handlers, which nothing can end from outside: raises `InterruptedJobError` if
        the run is over."""
        if self.run.why is not None:
            raise InterruptedJobError(self.run.why)

    async def progress(self, percent: float, text: str = "") -> None:
        """Tell the client that waits for the result how far it is, from 0 to 100; nothing if none
        does. Raises `ValueError` for another number. What no node takes is logged."""
        if not 0 <= percent <= 100:
            raise ValueError(f"progress is {percent}: it is from 0 to 100")
        if self._tell is not None:
            await self._tell(self, percent, text)

    def once(
        self, connection: Connection, *, paramstyle: str = "qmark", table: str = TABLE
    ) -> bool:
        """Is this the first run of the job whose effect is committed in this database? Ask it in
        the transaction of the effect, and do nothing if it is not (`once.claim`)."""
        name = f"{self.task}:{self.key or self.id}"
        return claim(connection, name, outside().now(), paramstyle=paramstyle, table=table)

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
