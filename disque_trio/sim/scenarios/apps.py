"""The app of a plan: its tasks, its jobs, and the faults of its processes.

These are data; `testing.apps` makes a real `App` of them. Times are in microseconds, except in
names ending in `_s`.
"""

from typing import Final

import attrs

Micros = int

HANDLER_ACTIONS: Final[dict[str, str]] = {
    "return": "returns",
    "error": "raises an ordinary error",
    "group": "raises a group of errors",
    "retry": "raises `Retry(after)`",
    "snooze": "raises `Snooze(after)`",
    "dead": "raises `Dead`",
    "cancel": "raises `Cancel`",
    "cancelled": "raises the CancelledError of a task that it has cancelled itself",
    "base": "raises a BaseException of its own",
    "generator-exit": "raises GeneratorExit",
    "exit": "raises SystemExit",
    "mute": "raises an error whose text cannot be made",
    "surrogate": "raises an error whose text cannot be encoded",
    "unencodable": "returns what cannot be encoded",
    "late": "runs longer than the time limit of its task",
    "stubborn": "does, and swallows the cancellation for a while",
    "block": "blocks the event loop",
    "kill": "kills its process",
}
"""By name: the behaviour of a handler in one run."""

POLICIES: Final = ("fixed", "backoff", "polynomial", "function", "raises", "nonsense")
"""Kinds of `retry=`. The last two are functions that raise an exception, or return no valid
delay."""

APP_FAULTS: Final[dict[str, str]] = {
    "kill": "a process is killed; another one comes after `hold`",
    "stop": "a worker is ordered to stop; another one comes after `hold`",
    "pause": "a process stands still",
    "cut": "a process cannot reach a node, which hears nothing of it",
    "reset": "all connections of a process break",
}
"""By name: the faults of workers and producers."""


@attrs.frozen(kw_only=True)
class HandlerAction:
    """The actions of a handler in one run: it works, and then does one of `HANDLER_ACTIONS`."""

    kind: str = "return"
    work: Micros = 0
    after_s: float = 0.0
    """The delay of retry and snooze; the duration for block and stubborn."""


@attrs.frozen(kw_only=True)
class AppTask:
    """A task, or the consumer of a queue."""

    name: str
    queue: str
    executor: str = "loop"
    """`loop`, `thread` or `process`."""
    policy: str = "fixed"
    """One of `POLICIES`."""
    attempts: int = 3
    wait_s: float = 1.0
    """The wait of fixed and function, and the base of backoff and polynomial."""
    timeout_s: float | None = None
    lease_s: int = 20
    max_crashes: int = 5
    priority: int | None = None
    conflict: str = ""
    """`on_conflict` of jobs with a key; empty if its jobs have no key."""
    keep_s: float = 0.0
    """`unique_for`; 0 is until the job is done."""
    has_result: bool = False
    is_consumer: bool = False


@attrs.frozen(kw_only=True)
class AppJob:
    """A job of an app, identified by its number."""

    number: int
    task: str
    actions: tuple[HandlerAction, ...] = ()
    """By run, in the order of their starts; later runs return."""
    key: str = ""
    delay_s: float = 0.0
    after: tuple[int, ...] = ()
    """For a member of a flow: the indexes of its predecessors among the jobs of the call."""


@attrs.frozen(kw_only=True)
class AppCall:
    """One call of a producer.

    Kinds: single, many (`enqueue_many`), chain, batch (the producer awaits the results if `waits`),
    then (a batch with `then`, the last of the jobs), flow.
    """

    at: Micros
    producer: int
    kind: str = "single"
    jobs: tuple[AppJob, ...] = ()
    waits: bool = False
    """Does the producer wait for the result?"""
    cancel_s: float = 0.0
    """How long after its addition the flow is cancelled; 0 is never."""


@attrs.frozen(kw_only=True)
class AppFault:
    """A fault of a process of the app: one of `APP_FAULTS`."""

    kind: str
    at: Micros
    process: str
    """w1, w2 … are workers, p1, p2 … producers."""
    hold: Micros = 0
    node: int = 0
    """The node from which the process is cut off; 0 is all."""


@attrs.frozen(kw_only=True)
class AppCron:
    """A task that adds a job at each tick."""

    task: str
    every_s: int


@attrs.frozen(kw_only=True)
class AppsPlan:
    """The app of a run."""

    tasks: tuple[AppTask, ...] = ()
    calls: tuple[AppCall, ...] = ()
    faults: tuple[AppFault, ...] = ()
    crons: tuple[AppCron, ...] = ()
    workers: int = 1
    producers: int = 1
    concurrency: int = 4
    prefetch: int = 0
