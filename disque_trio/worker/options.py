"""How a job is added: its queue, its times, its copies, its key. Seconds.

What cannot work is refused where it is said, not when a job is lost.
"""

import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, Literal, TypedDict

import attrs

from disque_trio.worker.envelope import MAX_NAME
from disque_trio.worker.policies import MAX_CRASHES, Backoff, Policy

LEASE_S: Final = 300
TTL_S: Final = 7 * 24 * 3600
SHORTEST_LEASE_S: Final = 3
"""A lease is spread by a quarter of a second, and its last half second is not defended."""
RESERVED: Final = "disque-trio."
"""Queues of this library begin so."""
OWN_HEADERS: Final = frozenset((
    "added", "attempts", "batch", "due", "keep", "lease", "priority", "replicate", "reply_key",
    "reply_to", "result_ttl", "snoozes", "then", "tries", "ttl", "unique",
))  # fmt: skip
"""Headers that this library writes."""
_MAX_UNIQUE: Final = 256
"""Bytes that a node takes as a key."""

Conflict = Literal["return", "reject", "again", "replace"]
Executor = Literal["loop", "thread", "process"]
Decide = Callable[[Any, BaseException], float | None]
"""A policy that is a function of the job and the error: the wait, or None if the job is dead."""


class Shared(TypedDict, total=False):
    """Options of a task, and of one of its jobs."""

    queue: str
    lease: int
    ttl: int
    priority: int
    replicate: int
    maxlen: int
    unique: str | bool
    unique_for: Literal["until-done"] | float
    on_conflict: Conflict
    result_ttl: int


class JobOptions(Shared, total=False):
    """Options of `using`."""

    delay: float
    at: datetime
    key: str
    headers: Mapping[str, Any]
    repeat: bool


class RunOptions(TypedDict, total=False):
    """Options of `App.consumer`."""

    timeout: float
    retry: Policy | Decide
    executor: Executor
    max_crashes: int


class TaskOptions(Shared, RunOptions, total=False):
    """Options of `App.task`."""

    name: str
    aliases: Iterable[str]


@attrs.frozen(kw_only=True)
class Options:
    """How a job is added."""

    queue: str = "default"
    lease: int = LEASE_S
    """RETRY: a job that is not acknowledged is delivered again after so long. 0: it is delivered
    once at most."""
    ttl: int = TTL_S
    """How long it lives, done or not."""
    delay: float = 0
    at: datetime | None = None
    """When it is to be queued, in place of `delay`."""
    priority: int | None = None
    replicate: int | None = None
    maxlen: int | None = None
    """Refuse it if the queue has so many jobs on the node."""
    unique: str | bool | None = None
    """Add it only if no other job of the task in the queue has this key; True stands for its
    arguments."""
    unique_for: Literal["until-done"] | float = "until-done"
    """The key is taken until the job has ended, and for so many seconds after."""
    on_conflict: Conflict = "return"
    result_ttl: int | None = None
    """Its result is sent to the client that adds it, and kept there for so long."""
    key: str | None = None
    """Names the job, also if it is added again; None makes a new one."""
    headers: Mapping[str, Any] = attrs.field(factory=dict, converter=dict)
    repeat: bool = True
    """Add it again, with the same key, if the node's answer was lost?"""

    def __attrs_post_init__(self) -> None:
        for is_wrong, text in self._mistakes():
            if is_wrong:
                raise ValueError(text)

    def _mistakes(self) -> Iterable[tuple[bool, str]]:
        yield not self.queue, "queue is empty"
        yield self.queue.startswith(RESERVED), f"queue {self.queue}: {RESERVED} is reserved"
        yield (
            self.lease != 0 and self.lease < SHORTEST_LEASE_S,
            f"lease is {self.lease} s: a lease is {SHORTEST_LEASE_S} s or longer, or 0",
        )
        yield (
            self.lease == 0 and self.replicate not in (None, 1),
            f"replicate is {self.replicate}: a job with lease 0 has one copy",
        )
        yield (
            self.ttl <= self.lease,
            f"ttl is {self.ttl} s, and the lease {self.lease} s: raise ttl",
        )
        yield (
            not 0 <= self.delay < self.ttl,
            f"delay is {self.delay} s: it is 0 or more, and less than ttl ({self.ttl} s)",
        )
        yield (
            self.at is not None and self.at.tzinfo is None,
            f"at is {self.at}, without a time zone: give one, as datetime.now(UTC) has",
        )
        yield self.at is not None and self.delay != 0, "give delay or at, not both"
        yield (
            self.priority is not None and not -100 <= self.priority <= 100,
            f"priority is {self.priority}: it is from -100 to 100",
        )
        yield (
            self.result_ttl is not None and self.result_ttl < 1,
            f"result_ttl is {self.result_ttl} s: it is 1 or more",
        )
        own = sorted(OWN_HEADERS & self.headers.keys())
        yield bool(own), f"header {', '.join(own)}: the library writes it; take another name"

    def changed(self, changes: Mapping[str, Any]) -> "Options":
        """With these changes. Raises `TypeError` for an unknown one."""
        check_names(changes, JobOptions)
        if "at" in changes and "delay" not in changes:
            changes = {**changes, "delay": 0}
        return attrs.evolve(self, **changes)

    def wait(self, now: float) -> float:
        """How long it waits before it is queued; `now` is Unix time. Raises `ValueError`."""
        if self.at is None:
            return self.delay
        # Whole seconds: nodes of the original take no others.
        wait = max(math.ceil(self.at.astimezone(UTC).timestamp() - now), 0)
        if wait >= self.ttl:
            raise ValueError(f"at is {self.at}, in {wait} s: it is before ttl ({self.ttl} s)")
        return wait


_TOO_LONG: Final = (
    "timeout is {} s, more than half of ttl ({} s), after which a lease is not renewed; "
    "raise ttl or lower timeout"
)
_TOO_MANY: Final = (
    "its attempts may wait {:.0f} s in all, and the job lives {} s; "
    "raise ttl, or lower attempts or the waits"
)


@attrs.frozen(kw_only=True)
class Definition:
    """A task, as it is declared."""

    name: str
    aliases: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    """Earlier names: jobs in the queues may have them."""
    timeout: float | None = None
    """How long one run may take."""
    retry: Policy | Decide = attrs.field(factory=Backoff)
    executor: Executor | None = None
    """Where it runs; None is the loop for `async def`, and a thread for `def`."""
    max_crashes: int = MAX_CRASHES
    """After so many deliveries without an answer the job is dead."""
    is_bound: bool = False
    """Does the function want the job first?"""
    options: Options = attrs.field(factory=Options)

    def __attrs_post_init__(self) -> None:
        for is_wrong, text in self._mistakes():
            if is_wrong:
                raise ValueError(f"task {self.name}: {text}")

    def _mistakes(self) -> Iterable[tuple[bool, str]]:
        ttl = self.options.ttl
        for name in (self.name, *self.aliases):
            size = len(name.encode())
            yield not 0 < size <= MAX_NAME, f"the name {name[:40]!r} has {size} bytes, not 1 to 200"
        if self.timeout is not None:
            yield self.timeout <= 0, f"timeout is {self.timeout} s"
            yield 2 * self.timeout > ttl, _TOO_LONG.format(self.timeout, ttl)
        yield self.max_crashes < 1, f"max_crashes is {self.max_crashes}: it is 1 or more"

    @classmethod
    def of(cls, name: str, is_bound: bool, given: TaskOptions) -> "Definition":
        """As `App.task` is told. Raises `TypeError` for an unknown option, and `ValueError` for
        what cannot work."""
        check_names(given, TaskOptions)
        shared = {key: value for key, value in given.items() if key in Shared.__annotations__}
        own: dict[str, Any] = {key: value for key, value in given.items() if key not in shared}
        own.setdefault("name", name)
        try:
            options = Options().changed(shared)
        except ValueError as error:
            raise ValueError(f"task {own['name']}: {error}") from error
        found = cls(**own, is_bound=is_bound, options=options)
        if "retry" in given:
            found.check_waits()
        return found

    def check_waits(self) -> None:
        """Raises `ValueError` if the job would not live until its last attempt. With the policy
        that nobody has chosen it is dead before."""
        if isinstance(self.retry, Policy) and self.options.lease != 0:
            longest, ttl = self.retry.longest(), self.options.ttl
            if longest > ttl:
                raise ValueError(f"task {self.name}: {_TOO_MANY.format(longest, ttl)}")


def check_names(given: Mapping[str, Any], known: type) -> None:
    """Raises `TypeError` for a name that is none of these, and says which one is near."""
    for name in given:
        if name not in known.__annotations__:
            near = difflib.get_close_matches(name, known.__annotations__, n=1)
            hint = f"; do you mean {near[0]}?" if near else ""
            raise TypeError(f"there is no option {name}{hint}")


def unique_key(task: str, unique: str | bool, arguments: bytes) -> str:
    """The key for a node: tasks of one queue do not share keys."""
    found = f"{task}:{sha256(arguments).hexdigest() if unique is True else unique}"
    size = len(found.encode())
    return found if size <= _MAX_UNIQUE else sha256(found.encode()).hexdigest()
