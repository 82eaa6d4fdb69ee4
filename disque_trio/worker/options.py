"""Options of tasks and jobs: queue, times, replicas, keys. Times are in seconds.

Invalid options raise an error when the task is declared. Each option is a field of `Options` or
`Definition`; its `Row` has its kind and its meaning. Checks, the table in docs/worker.md and the
headers of jobs are derived from the rows.
"""

import difflib
import math
from collections.abc import Callable, Container, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final, Literal, TypedDict, get_args

import attrs

from disque_trio.client.command import is_encodable
from disque_trio.statemachine.joboptions import BY_WORD
from disque_trio.terminal.escapes import printable
from disque_trio.worker import kinds
from disque_trio.worker.checks import shown
from disque_trio.worker.codec import Step
from disque_trio.worker.copies import Copies
from disque_trio.worker.envelope import MAX_NAME
from disque_trio.worker.exceptions import LONGEST_S
from disque_trio.worker.kinds import Kind, check_kinds
from disque_trio.worker.policies import MAX_CRASHES, Backoff, Policy
from disque_trio.worker.precedence import LEASE_S, SHORTEST_LEASE_S, TTL_S, life, settled
from disque_trio.worker.runtime import runtime

RESERVED: Final = "disque-trio."
"""The prefix of queues of this library."""
NOTES: Final = RESERVED + "checkpoints"
"""The queue of notes, which are jobs with the checkpoints and trials of other jobs."""
LOOKS: Final = RESERVED + "looks."
"""The prefix of the second queue beside a queue with limits, for coordinators of flows and
collectors of batches: their runs must not use up the limits of the members."""
OWN_HEADERS: Final = frozenset((
    "added", "attempts", "batch", "due", "hops", "keep", "lease", "priority", "replicate",
    "reply_codecs", "reply_key", "reply_to", "result_ttl", "snoozes", "sync", "then", "tries",
    "ttl", "unique", "unkept",
))  # fmt: skip
"""Headers that this library writes."""
UNKEPT: Final = "unkept"
"""The header of a job whose result nodes do not keep, although its producer waits for it."""


def without_own(headers: Mapping[str, Any]) -> dict[str, Any]:
    """The headers that the producer has set."""
    return {name: value for name, value in headers.items() if name not in OWN_HEADERS}


_TOO_LATE: Final = "{}: a job waits for ten years (" + f"{LONGEST_S} s) at most"
_MAX_UNIQUE: Final = 256
"""The maximum size of a key on nodes, in bytes."""
_PRIORITY: Final = BY_WORD[b"PRIORITY"]
_GROUP: Final = BY_WORD[b"GROUP"]
_REPLICATE: Final = BY_WORD[b"REPLICATE"]
_RETRY: Final = BY_WORD[b"RETRY"]
_TTL: Final = BY_WORD[b"TTL"]
_KEEP: Final = BY_WORD[b"KEEP"]
_ROW: Final = "row"

Conflict = Literal["return", "reject", "again", "replace"]
EXECUTORS: Final = ("loop", "thread", "process")
"""The built-in executors."""
GroupOf = Callable[..., str | None]
"""Returns the group of a job from its arguments; None or an empty text for none."""
Decide = Callable[[Any, BaseException], float | None]
"""A retry policy as a function of the job and the error. Returns the wait in seconds; None makes
the job dead."""


# Where an option may be set. Type checkers cannot derive these from the rows below.


class Defaults(TypedDict, total=False):
    """Options of an app, a task, or a job."""

    queue: str
    lease: int
    ttl: int
    priority: int
    replicate: int
    sync: int
    maxlen: int
    result_ttl: int


class Shared(Defaults, total=False):
    """Options of a task or a job."""

    group: str | GroupOf
    unique: str | bool
    unique_for: Literal["until-done"] | float
    on_conflict: Conflict


class JobOptions(Shared, total=False):
    """Options of `using`."""

    delay: float | timedelta
    at: datetime
    key: str
    headers: Mapping[str, Any]
    repeat: bool


class RunDefaults(TypedDict, total=False):
    """Options of an app, a task, or a consumer."""

    timeout: float
    retry: Policy | Decide
    max_crashes: int


class RunOptions(RunDefaults, total=False):
    """Options of `App.consumer`."""

    executor: str


class AppOptions(Defaults, RunDefaults, total=False):
    """Options of `App`: defaults of its tasks and consumers."""


class TaskOptions(Shared, RunOptions, total=False):
    """Options of `App.task`."""

    name: str
    aliases: Iterable[str]


GIVEN_TO: Final = {
    "app": AppOptions, "task": TaskOptions, "consumer": RunOptions, "job": JobOptions
}  # fmt: skip


# The rows.


@attrs.frozen(kw_only=True)
class Row:
    """The properties of an option besides its name and default."""

    kind: Kind
    meaning: str
    """The description for docs/worker.md, in Markdown."""
    shown: str
    is_of_steps: bool = False
    """Does a later step of a chain keep it? If so, its value must be JSON."""
    is_carried: bool = False
    """Does a job that is added again keep it in its headers? If so, its value must be an int."""


def option(
    kind: Kind,
    meaning: str,
    default: Any = None,
    shown: str | None = None,
    converter: Callable[[Any], Any] | None = None,
    **more: Any,
) -> Any:
    """An attrs field with a `Row`. `shown` is the default in the documentation, if it differs from
    `str(default)`."""
    if shown is None:
        shown = "" if default is None else str(default)
    row = Row(kind=kind, meaning=meaning, shown=shown, **more)
    return attrs.field(default=default, converter=converter, metadata={_ROW: row})


def rows(record: type) -> dict[str, Row]:
    """The options among the fields of a class."""
    return {
        field.name: field.metadata[_ROW] for field in attrs.fields(record) if _ROW in field.metadata
    }


def _copied(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return dict(value) if isinstance(value, Mapping) else value


@attrs.frozen(kw_only=True)
class Options:
    """The options of a job."""

    queue: str = option(kinds.NAME, "the queue", "default", "`default`", is_of_steps=True)
    delay: float = option(
        kinds.DELAY,
        "enqueue the job after this time: seconds, or a `timedelta`; at most ten years "
        "([long delays](#long-delays))",
        0,
        is_of_steps=True,
    )
    at: datetime | None = option(
        kinds.or_none(kinds.DATETIME),
        "in place of `delay`: enqueue the job at this `datetime`, which has a time zone",
    )
    priority: int | None = option(
        kinds.or_none(kinds.whole(_PRIORITY.least, _PRIORITY.most)),
        f"−{-_PRIORITY.least} to {_PRIORITY.most}; higher first, within one queue",
        shown="0",
        is_of_steps=True,
        is_carried=True,
    )
    group: str | GroupOf | None = option(
        kinds.or_none(kinds.group(_GROUP.most)),
        "the tenant, customer or host of the job, or a function of its arguments that returns it "
        "([groups](#groups))",
        is_of_steps=True,
    )
    lease: int = option(
        kinds.whole_seconds(_RETRY.most),
        "if [the worker dies](#when-a-worker-dies), the job is redelivered after this time at the "
        "latest; 0 is at-most-once delivery",
        LEASE_S,
        f"{LEASE_S} s",
        is_of_steps=True,
        is_carried=True,
    )
    ttl: int = option(
        kinds.whole_seconds(_TTL.most),
        "the job expires after this time, done or not",
        TTL_S,
        f"{TTL_S // 86_400} days",
        is_of_steps=True,
        is_carried=True,
    )
    replicate: int | None = option(
        kinds.or_none(kinds.whole(_REPLICATE.least, _REPLICATE.most)),
        "how many nodes hold the job. The default is the node's `default-replicate`",
        shown="3, or the size of a smaller cluster",
        is_of_steps=True,
        is_carried=True,
    )
    sync: int | None = option(
        kinds.or_none(kinds.whole(_REPLICATE.least, _REPLICATE.most)),
        "how many replicas are confirmed when `enqueue` returns ([replicas](#replicas))",
        shown="a majority: 2 of 3, 2 of 2, 1 of 1",
        is_of_steps=True,
        is_carried=True,
    )
    maxlen: int | None = option(
        kinds.or_none(kinds.whole()),
        "reject the job (`QueueFullError`) if its queue has this many jobs on the node",
        is_of_steps=True,
    )
    unique: str | bool | None = option(
        kinds.or_none(kinds.UNIQUE),
        "add the job only if no other job of the task in the queue has this key; `True` stands for "
        "its arguments ([unique jobs](#unique-jobs))",
    )
    unique_for: Literal["until-done"] | float = option(
        kinds.unique_for(_KEEP.most),
        "the key is taken until the job has ended, and this many seconds longer",
        "until-done",
        "`until-done`",
    )
    on_conflict: Conflict = option(
        kinds.one_of(*get_args(Conflict)),
        "what `enqueue` does if another job has the key ([unique jobs](#unique-jobs))",
        "return",
        "`return`",
    )
    result_ttl: int | None = option(
        kinds.or_none(kinds.whole(1, _KEEP.most)),
        "nodes keep the result for this many seconds, for any process that has the id of the job "
        "([results](worker-results.md))",
    )
    key: str | None = option(
        kinds.or_none(kinds.TEXT),
        "identifies the job (`job.key`), also if it is added twice",
        shown="a new UUID",
    )
    headers: Mapping[str, Any] = option(
        kinds.HEADERS,
        "available to handlers as `job.headers`; at most 8 kB",
        attrs.Factory(dict),
        "",
        _copied,
    )
    repeat: bool = option(
        kinds.FLAG,
        "add the job again, with the same key, if a reply or a node is lost "
        "([lost nodes](#lost-replies-and-lost-nodes))",
        True,
    )
    is_ttl_named: bool = True
    """Was `ttl` set explicitly? If so, a delay longer than `ttl` raises an error; otherwise `ttl`
    is extended."""

    def __attrs_post_init__(self) -> None:
        check_kinds({name: getattr(self, name) for name in _OF_JOB}, _OF_JOB)
        for is_wrong, text in self._mistakes():
            if is_wrong:
                raise ValueError(text)

    def _mistakes(self) -> Iterable[tuple[bool, str]]:
        yield not self.queue, "queue is empty"
        is_reserved = self.queue.startswith(RESERVED) and not self.queue.startswith(LOOKS)
        yield is_reserved, f"queue {self.queue}: {RESERVED} is reserved"
        yield (
            self.lease != 0 and self.lease < SHORTEST_LEASE_S,
            f"lease is {self.lease} s: a lease is at least {SHORTEST_LEASE_S} s, or 0",
        )
        yield (
            self.lease == 0 and self.replicate not in (None, 1),
            f"replicate is {self.replicate}: a job with lease 0 has one replica",
        )
        yield (
            self.sync is not None and self.replicate is not None and self.sync > self.replicate,
            f"sync is {self.sync}, and replicate {self.replicate}: raise replicate or lower sync",
        )
        yield (
            self.ttl <= self.lease,
            f"ttl is {self.ttl} s, and the lease {self.lease} s: raise ttl or lower the lease",
        )
        yield (
            not 0 <= self.delay < self.ttl,
            f"delay is {self.delay} s: it is 0 or more, and less than ttl ({self.ttl} s)",
        )
        yield self.delay > LONGEST_S, _TOO_LATE.format(f"delay is {self.delay} s")
        yield (
            self.at is not None and self.at.tzinfo is None,
            f"at is {self.at}, without a time zone: pass one with a zone, as datetime.now(UTC)",
        )
        yield self.at is not None and self.delay != 0, "give delay or at, not both"
        own = sorted(OWN_HEADERS & self.headers.keys())
        yield bool(own), f"header {', '.join(own)}: the library sets it; use another name"

    @property
    def copies(self) -> Copies:
        """The replicas and confirmations of the job."""
        return Copies(replicate=self.replicate, sync=self.sync)

    @classmethod
    def of(cls, defaults: Mapping[str, Any], named: Mapping[str, Any]) -> "Options":
        """The options from `named` and the app's defaults. Raises `ValueError`."""
        known = {name: each for name, each in settled(defaults, named).items() if name in _OF_JOB}
        return cls(**known, is_ttl_named="ttl" in named)

    def times(self, now: float) -> tuple[float, int]:
        """The delay and the TTL of a job that is added `now` (Unix time), in seconds. Raises
        `ValueError`."""
        if self.at is None:
            return self.delay, self.ttl
        # Whole seconds: nodes of the original take no others.
        wait = max(math.ceil(self.at.astimezone(UTC).timestamp() - now), 0)
        if wait > LONGEST_S:
            raise ValueError(_TOO_LATE.format(f"at is {self.at}, in {wait} s"))
        if self.is_ttl_named and wait >= self.ttl:
            raise ValueError(f"at is {self.at}, in {wait} s: it must be before ttl ({self.ttl} s)")
        return wait, self.ttl if self.is_ttl_named else max(self.ttl, life(wait))


_OF_JOB: Final = {name: row.kind for name, row in rows(Options).items()}
OF_STEPS: Final = [name for name, row in rows(Options).items() if row.is_of_steps]
CARRIED: Final = frozenset(name for name, row in rows(Options).items() if row.is_carried)

_TOO_LONG: Final = (
    "timeout is {} s, more than half of ttl ({} s), after which a lease is not renewed; "
    "raise ttl or lower timeout"
)
_TOO_MANY: Final = (
    "its attempts may wait {:.0f} s in total, but the job lives {} s; "
    "raise ttl, or lower attempts or the waits"
)


def queue_of_looks(queue: str, limits: Container[str]) -> str:
    """The queue of the coordinators and collectors that a worker of this queue runs; `limits` are
    the queues with limits."""
    return LOOKS + queue if queue in limits else queue


def _names(aliases: Iterable[str]) -> tuple[str, ...]:
    names = tuple(aliases)
    if not all(isinstance(each, str) for each in names):
        raise ValueError(f"aliases={shown(aliases)} must be {kinds.NAMES[1]}")
    return names


@attrs.frozen(kw_only=True)
class Definition:
    """The definition of a task."""

    name: str = option(
        kinds.TEXT,
        "the name of the task in bodies; must be the same in producers and workers",
        attrs.NOTHING,
        "module and name of the function",
    )
    aliases: tuple[str, ...] = option(
        kinds.NAMES,
        "earlier names of the task, which jobs in queues may still have",
        (),
        "",
        _names,
    )
    timeout: float | None = option(
        kinds.or_none(kinds.SECONDS),
        "a longer run is cancelled and has failed; the time for which a `def` waits for a free "
        "thread or process does not count",
    )
    retry: Policy | Decide = option(
        kinds.POLICY,
        "when a failed job is retried ([failures](#failures))",
        attrs.Factory(Backoff),
        "`Backoff()`",
    )
    executor: str | None = option(
        kinds.or_none(kinds.TEXT),
        "where the function runs: `loop`, `thread`, `process`, or an [executor of the "
        "app](#executors)",
        shown="the loop for an `async def`, a thread for a `def`",
    )
    max_crashes: int = option(
        kinds.whole(1),
        "the job is dead after this many runs that killed or blocked the worker while the job ran "
        "alone ([dying workers](#when-a-worker-dies))",
        MAX_CRASHES,
    )
    is_bound: bool = False
    """Does the function receive the job as its first argument?"""
    options: Options = attrs.field(factory=Options)
    defaults: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    """Options of the app."""
    named: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    """Options that were set for the task, or by `using` for its next jobs."""

    def __attrs_post_init__(self) -> None:
        for is_wrong, text in self._mistakes():
            if is_wrong:
                raise ValueError(f"task {printable(self.name)}: {text}")

    def _mistakes(self) -> Iterable[tuple[bool, str]]:
        ttl = self.options.ttl
        for name in (self.name, *self.aliases):
            size = len(name.encode(errors="surrogatepass"))
            yield (
                not is_encodable(name, "strict"),
                f"the name {name[:40]!r} has a lone surrogate",
            )
            yield not 0 < size <= MAX_NAME, f"the name {name[:40]!r} has {size} bytes, not 1 to 200"
        if self.timeout is not None:
            yield self.timeout <= 0, f"timeout is {self.timeout} s"
            yield 2 * self.timeout > ttl, _TOO_LONG.format(self.timeout, ttl)

    @classmethod
    def of(
        cls,
        name: str,
        is_bound: bool,
        named: Mapping[str, Any],
        defaults: Mapping[str, Any] | None = None,
    ) -> "Definition":
        """The definition for the options of `App.task`. Raises `TypeError` for an unknown option,
        and `ValueError` for invalid ones."""
        check_names(named, TaskOptions)
        _check(str(name), {**named, "name": name})
        begun = cls(name=name, is_bound=is_bound, defaults=defaults or {})
        found = begun._with({"name": name, **named})
        if "retry" in named:
            found.check_waits()
        return found

    def using(self, changes: Mapping[str, Any]) -> "Definition":
        """The definition with these options changed. Raises `TypeError` for an unknown option, and
        `ValueError` for invalid ones."""
        return self._with(with_changes(self.named, changes))

    def _with(self, named: Mapping[str, Any]) -> "Definition":
        _check(self.name, named)
        run = {
            name: each
            for name, each in settled(self.defaults, named).items()
            if name in _OF_DEFINITION
        }
        try:
            options = Options.of(self.defaults, named)
        except ValueError as error:
            raise ValueError(f"task {run['name']}: {error}") from error
        return attrs.evolve(self, **run, options=options, named=named)

    def check_waits(self) -> None:
        """Raise `ValueError` if a job would expire before its last attempt. With the default policy
        such a job is dead earlier instead."""
        if isinstance(self.retry, Policy) and self.options.lease != 0:
            longest, ttl = self.retry.longest(), self.options.ttl
            if longest > ttl:
                raise ValueError(f"task {self.name}: {_TOO_MANY.format(longest, ttl)}")


def _check(task: str, named: Mapping[str, Any]) -> None:
    try:
        check_options(named)
    except ValueError as error:
        raise ValueError(f"task {task}: {error}") from None


_OF_DEFINITION: Final = {name: row.kind for name, row in rows(Definition).items()}
_OTHER: Final[Mapping[str, dict[str, Any]]] = {"at": {"delay": 0}, "delay": {"at": None}}


def with_changes(named: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The options with later changes applied. Raises `TypeError` for an unknown option."""
    check_names(changes, JobOptions)
    changed = dict(named)
    for name in changes:
        changed |= _OTHER.get(name, {})
    delay = changes.get("delay")
    if isinstance(delay, timedelta):
        changes = {**changes, "delay": delay.total_seconds()}
    return {**changed, **changes}


def check_options(values: Mapping[str, Any]) -> None:
    """Raise `ValueError` for an invalid value of an option."""
    check_kinds(values, {**_OF_JOB, **_OF_DEFINITION})


def check_names(names: Mapping[str, Any], known: type) -> None:
    """Raise `TypeError` for an unknown name, and suggest a similar one."""
    for name in names:
        if name not in known.__annotations__:
            near = difflib.get_close_matches(name, known.__annotations__, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise TypeError(f"there is no option {name}{hint}")


def unique_key(task: str, unique: str | bool, arguments: bytes) -> str:
    """The key on nodes, which includes the task: tasks with the same queue do not share keys."""
    found = f"{task}:{sha256(arguments).hexdigest() if unique is True else unique}"
    size = len(found.encode())
    return found if size <= _MAX_UNIQUE else sha256(found.encode()).hexdigest()


Place = tuple[str, str]
"""The queue and the key by which nodes find a job."""


def place_of(step: Step) -> Place:
    """The queue of a step, and its key on nodes."""
    queue = step.options.get("queue", Options().queue)
    return queue, unique_key(step.task, step.once or step.key, b"")


_MOVING: Final = frozenset(("at", "delay", "lease", "ttl"))
"""Options that other options are adapted to (`precedence`)."""


def carried_by(definition: Definition, changes: Mapping[str, Any]) -> dict[str, int]:
    """The carried options that these changes set, and those that were adapted to them."""
    if not changes:  # the usual case
        return {}
    if not changes.keys() & _MOVING:
        return {name: changes[name] for name in changes.keys() & CARRIED}
    named = {name: each for name, each in definition.named.items() if name not in changes}
    before, now = Options.of(definition.defaults, named), definition.options
    now = attrs.evolve(now, ttl=now.times(runtime().now())[1])
    return {
        name: getattr(now, name)
        for name in sorted(CARRIED)
        if getattr(now, name) is not None
        if name in changes or getattr(now, name) != getattr(before, name)
    }


def carried(options: Options, headers: Mapping[str, Any]) -> Options:
    """The task's options with those in the headers of a job. Raises `ValueError`."""
    of_job = {name: headers[name] for name in sorted(CARRIED & headers.keys())}
    if not all(isinstance(value, int) for value in of_job.values()):
        raise ValueError(f"options of the job are not numbers: {of_job}")
    return attrs.evolve(options, **of_job)
