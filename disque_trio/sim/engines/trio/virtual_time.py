"""Trio with virtual time and a seeded scheduler (docs/engines.md, "heap and trio").

The scheduler's switch and its random source are private to Trio. Only this module uses them, and a
test fails if a new Trio does not have them.
"""

import contextlib
import math
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, TypeVar

import trio
from trio._core import _run

_Result = TypeVar("_Result")

_SWITCH: Final = "_ALLOW_DETERMINISTIC_SCHEDULING"
_SOURCE: Final = "_r"
_IDLE_S: Final = 0.001
"""How long the real thread sleeps, when no task can run, before it looks again."""
_LOOKS: Final = 3


class DeadlockError(Exception):
    """Every task waits for another one, and none for a deadline."""


class JumpClock(trio.abc.Clock):
    """Time that jumps to the next deadline when all tasks sleep.

    Trio asks how long to sleep only when no task can run: then the clock jumps.
    """

    def __init__(self) -> None:
        self._now = 0.0

    def start_clock(self) -> None:
        """Do nothing: the clock stands still until Trio asks for a sleep time."""

    def current_time(self) -> float:
        """Return the seconds since the run began."""
        return self._now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Advance the time to the deadline and sleep for 0 s. Sleep for real only if no task has a
        deadline."""
        if deadline == math.inf:
            return _IDLE_S
        self._now = max(self._now, deadline)
        return 0.0


class DeadlockDetector(trio.abc.Instrument):
    """Ends a run in which no task can run again, and which would sleep forever."""

    def __init__(self, scope: trio.CancelScope) -> None:
        self._scope = scope
        self._looks = 0
        self.waiting: list[str] = []
        """The tasks in the deadlock, once there is one."""

    def before_io_wait(self, timeout: float) -> None:
        """No task runs: count such looks."""
        self._looks = self._looks + 1 if timeout == _IDLE_S else 0
        if self._looks == _LOOKS:
            self.waiting = sorted(_names(trio.lowlevel.current_root_task()))
            self._scope.cancel()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:  # noqa: ARG002
        """A task runs."""
        self._looks = 0


def _names(task: trio.lowlevel.Task | None) -> Iterator[str]:
    if task is None:
        return
    yield task.name.rpartition(".")[2]
    for nursery in task.child_nurseries:
        for child in nursery.child_tasks:
            yield from _names(child)


@contextlib.contextmanager
def seeded_scheduler(seed: str) -> Iterator[None]:
    """Make the seed decide which of the ready tasks runs first."""
    source = getattr(_run, _SOURCE, None)
    if not hasattr(_run, _SWITCH) or not isinstance(source, random.Random):
        raise RuntimeError(f"Trio {trio.__version__} cannot be made deterministic in this way")
    was_on, state = getattr(_run, _SWITCH), source.getstate()
    setattr(_run, _SWITCH, True)
    source.seed(seed)
    try:
        yield
    finally:
        setattr(_run, _SWITCH, was_on)
        source.setstate(state)


def run(
    seed: str, main: Callable[[], Awaitable[_Result]], clock: JumpClock | None = None
) -> _Result:
    """Run `main` like `trio.run`, in the virtual time of this clock. Raise `DeadlockError`, or what
    `main` raises."""

    async def watched() -> _Result:
        with trio.CancelScope() as scope:
            detector = DeadlockDetector(scope)
            trio.lowlevel.add_instrument(detector)
            return await main()
        raise DeadlockError(f"nothing can happen any more; waiting: {', '.join(detector.waiting)}")

    with seeded_scheduler(seed):
        return trio.run(watched, clock=clock or JumpClock())
