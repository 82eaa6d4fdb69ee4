"""The app of a plan: what it declares, adds and runs, and what its processes suffer.

These are data. `testing.apps` makes a real `App` of them. Times are microseconds, except where a
name ends in `_s`.
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
"""How a handler may behave in one run, by name."""

POLICIES: Final = ("fixed", "backoff", "polynomial", "function", "raises", "nonsense")
"""Kinds of `retry=`. The last two are functions that raise, and that return what is no delay."""

APP_FAULTS: Final[dict[str, str]] = {
    "kill": "a process is killed; another one comes after `hold`",
    "stop": "a worker is ordered to stop; another one comes after `hold`",
    "pause": "a process stands still",
    "cut": "a process cannot reach a node, which hears nothing of it",
    "reset": "all connections of a process break",
}
"""Faults of workers and producers."""


@attrs.frozen(kw_only=True)
class HandlerAction:
    """What a handler does in one run: it works, and then one of `HANDLER_ACTIONS`."""

    kind: str = "return"
    work: Micros = 0
    after_s: float = 0.0
    """Of retry and snooze; how long block blocks and stubborn swallows."""


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
    """The wait of fixed and function, the base of backoff and polynomial."""
    timeout_s: float | None = None
    lease_s: int = 20
    max_crashes: int = 5
    priority: int | None = None
    conflict: str = ""
    """`on_conflict` of jobs with a key; empty: its jobs have none."""
    keep_s: float = 0.0
    """`unique_for`; 0 is until done."""
    has_result: bool = False
    is_consumer: bool = False


@attrs.frozen(kw_only=True)
class AppJob:
    """A job of an app, told apart by its number."""

    number: int
    task: str
    actions: tuple[HandlerAction, ...] = ()
    """By run, the first begun first; the runs after these return."""
    key: str = ""
    delay_s: float = 0.0
    after: tuple[int, ...] = ()
    """Of a member of a flow: the places of those before it among the jobs of the call."""


@attrs.frozen(kw_only=True)
class AppCall:
    """What a producer does at once.

    Kinds: single, many (`enqueue_many`), chain, batch (whose results are awaited if `waits`), then
    (a batch with `then`, the last of the jobs), flow.
    """

    at: Micros
    producer: int
    kind: str = "single"
    jobs: tuple[AppJob, ...] = ()
    waits: bool = False
    """Does the producer wait for the result?"""
    cancel_s: float = 0.0
    """When the flow is cancelled after it was added; 0 is never."""


@attrs.frozen(kw_only=True)
class AppFault:
    """What a process of the app suffers: one of `APP_FAULTS`."""

    kind: str
    at: Micros
    process: str
    """w1, w2 … are workers, p1, p2 … producers."""
    hold: Micros = 0
    node: int = 0
    """From which node it is cut; 0 is all."""


@attrs.frozen(kw_only=True)
class AppCron:
    """A task of which a job is added at each tick."""

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
