"""Tasks of a node: coroutines without an event loop, a clock or threads of their own.

A node resumes them at the start of its batches (`Tasks.run`), and its event loop knows from `due`
when a batch must begin for them. They wait for a moment, for work of the disk's threads, or for
each other; nothing else. So the same journal runs over Trio, and in the simulator on an event heap.

What may be waited for, and scopes with timeouts, are named and behave as in Trio.
"""

import heapq
import math
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar, TypeVarTuple

from outcome import Error, Outcome

from disque_trio.ports import DiskThread
from disque_trio.statemachine.base import FOREVER, Millis

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Routine = Coroutine[Any, Any, object]


class Cancelled(BaseException):
    """Raised where a task waits within a scope that has been cancelled."""

    def __init__(self, scope: "Scope") -> None:
        super().__init__()
        self.scope = scope


class Waiter:
    """A place at which a task waits. It is resumed once, by the first call of `wake`."""

    __slots__ = ("_task", "_tasks", "is_over")

    def __init__(self, task: "Task", tasks: "Tasks") -> None:
        self._task = task
        self._tasks = tasks
        self.is_over = False

    def wake(self, result: Outcome[Any] | None = None) -> None:
        """Resume the task with this result, when tasks are run next."""
        if not self.is_over:
            self.is_over = True
            self._tasks.go_on(self._task, result)


class Task:
    """A coroutine that has been started."""

    __slots__ = ("routine", "scopes", "waiter")

    def __init__(self, routine: Routine) -> None:
        self.routine = routine
        self.scopes: list[Scope] = []
        """The scopes that it is in, the outermost one first."""
        self.waiter: Waiter | None = None


class Scope:
    """What a task does within it can be cancelled: it raises `Cancelled` where it waits next, which
    ends at the end of the scope."""

    def __init__(self, tasks: "Tasks", seconds: float = math.inf) -> None:
        """It is cancelled after so long, counted from the moment in which it is entered."""
        self.was_cut = False
        """Has it ended because it was cancelled?"""
        self.is_cancelled = False
        self._tasks = tasks
        self._seconds = seconds
        self._task: Task | None = None

    def cancel(self) -> None:
        """Cancel it, whether it has been entered or not."""
        self.is_cancelled = True
        task = self._task
        if task is not None and task.waiter is not None:
            task.waiter.wake(Error(Cancelled(self)))

    def __enter__(self) -> "Scope":
        self._task = self._tasks.current
        self._task.scopes.append(self)
        if self._seconds < math.inf:
            self._tasks.call_at(self._tasks.time() + self._seconds, self._time_is_up)
        return self

    def _time_is_up(self) -> None:
        if self._task is not None:
            self.cancel()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        assert self._task is not None
        self._task.scopes.remove(self)
        self._task = None
        self.was_cut = isinstance(error, Cancelled) and error.scope is self
        return self.was_cut


class Event:
    """As `trio.Event`."""

    def __init__(self, tasks: "Tasks") -> None:
        self._tasks = tasks
        self._waiters: list[Waiter] = []
        self._is_set = False

    def is_set(self) -> bool:
        """Has it been set?"""
        return self._is_set

    def set(self) -> None:
        """Wake all who wait, now and in future."""
        self._is_set = True
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter.wake()
        if waiters:
            self._tasks.awaken()

    async def wait(self) -> None:
        """Wait until it is set."""
        if not self._is_set:
            await self._tasks.wait(self._waiters.append)


class Lock:
    """As `trio.Lock`: the first to wait is the first to have it."""

    def __init__(self, tasks: "Tasks", released: Callable[[], None] = lambda: None) -> None:
        """`released` is called when nobody has it any more."""
        self._tasks = tasks
        self._released = released
        self._is_held = False
        self._waiters: deque[Waiter] = deque()

    def locked(self) -> bool:
        """Does a task have it?"""
        return self._is_held

    async def __aenter__(self) -> None:
        if self._is_held:
            await self._tasks.wait(self._waiters.append)
        self._is_held = True

    async def __aexit__(self, *_: object) -> None:
        """The next one has it at once, so nobody comes between."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.is_over:
                waiter.wake()
                return
        self._is_held = False
        self._released()


class Tasks:
    """The tasks of one node."""

    def __init__(self) -> None:
        self.awaken: Callable[[], None] = lambda: None
        """Begins a batch soon."""
        self.current: Task
        """The one that runs."""
        self.due: Millis = FOREVER
        """When `run` must be called at the latest."""
        self._now: Millis = 0
        self._ready: deque[tuple[Task, Outcome[Any] | None]] = deque()
        self._in_next: list[Waiter] = []
        """Those who wait for the next `run`."""
        self._running: dict[Task, None] = {}
        self._alarms: list[tuple[Millis, int, Waiter | None, Callable[[], None]]] = []
        self._alarm_count = 0

    # For the node.

    def start(self, routine: Routine) -> None:
        """Run it as a task, from the next `run` on."""
        task = Task(routine)
        self._running[task] = None
        self.go_on(task, None)
        self.awaken()

    def go_on(self, task: Task, result: Outcome[Any] | None) -> None:
        """Resume it in the next `run`."""
        self._ready.append((task, result))
        self.due = 0

    def run(self, now: Millis) -> None:
        """Go on with every task that can, until all of them wait."""
        self._now = now
        alarms, ready = self._alarms, self._ready
        if self._in_next:
            waiters, self._in_next = self._in_next, []
            for one in waiters:
                one.wake()
        while True:
            while alarms and alarms[0][0] <= now:
                heapq.heappop(alarms)[3]()
            if not ready:
                break
            self._resume(*ready.popleft())
        while alarms and (waiter := alarms[0][2]) is not None and waiter.is_over:
            heapq.heappop(alarms)
        self.due = now if self._in_next else alarms[0][0] if alarms else FOREVER

    def end(self) -> None:
        """End all tasks where they wait."""
        self._ready.clear()
        self._alarms.clear()
        self.due = FOREVER
        running, self._running = self._running, {}
        for task in running:
            task.waiter = None
            task.routine.close()

    def _resume(self, task: Task, result: Outcome[Any] | None) -> None:
        task.waiter = None
        self.current = task
        try:
            if result is None:
                task.routine.send(None)
            else:
                result.send(task.routine)  # type: ignore[arg-type]
        except StopIteration:
            del self._running[task]

    # For tasks.

    def time(self) -> float:
        """Seconds, by the node's monotonic clock, at the start of the batch."""
        return self._now / 1000

    def call_at(
        self, seconds: float, act: Callable[[], None], waiter: Waiter | None = None
    ) -> None:
        """Call it at this time; not if this waiter has been woken before."""
        self._alarm_count += 1
        at = math.ceil(seconds * 1000 - 1e-6)
        heapq.heappush(self._alarms, (at, self._alarm_count, waiter, act))
        self.due = min(self.due, at)

    async def wait(self, register: Callable[[Waiter], object]) -> Any:
        """Wait until the waiter that `register` is given is woken. What it is woken with."""
        task = self.current
        for scope in task.scopes:
            if scope.is_cancelled:
                raise Cancelled(scope)
        task.waiter = waiter = Waiter(task, self)
        register(waiter)
        return await _suspended()

    async def sleep(self, seconds: float) -> None:
        """Wait for so long."""
        until = self.time() + seconds
        await self.wait(lambda waiter: self.call_at(until, waiter.wake, waiter))

    async def checkpoint(self) -> None:
        """Go on in the next batch."""
        await self.wait(self._in_next.append)

    async def on(
        self,
        thread: DiskThread,
        act: Callable[[*Ts], T],
        *args: *Ts,
        sync: Callable[[], object] | None = None,
    ) -> T:
        """Do it in a thread of its own, then `sync`, and wait for the end. If that is cancelled
        the thread goes on all the same."""
        result: T = await self.wait(lambda waiter: thread.beside(act, args, waiter.wake, sync=sync))
        return result

    def move_on_after(self, seconds: float) -> Scope:
        """A scope that is cancelled after so long."""
        return Scope(self, seconds)

    def scope(self) -> Scope:
        """A scope that is cancelled when somebody says so."""
        return Scope(self)


@types.coroutine
def _suspended() -> Generator[None, Any, Any]:
    return (yield)
