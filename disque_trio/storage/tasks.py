"""Tasks of a node: coroutines without an event loop, a clock or threads of their own.

A node resumes them at the start of its batches (`Tasks.run`); `due` is the time at which its event
loop must begin a batch for them. They can only wait for a time, for work of the disk's threads, or
for each other. So the same journal runs with Trio, and in the simulator on an event heap. Events,
locks, and scopes with timeouts have the names and the behaviour of those in Trio.
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
    """Raised at a wait of a task within a cancelled scope."""

    def __init__(self, scope: "Scope") -> None:
        super().__init__()
        self.scope = scope


class Waiter:
    """A wait of a task. The first call of `wake` resumes the task; later calls have no effect."""

    __slots__ = ("_task", "_tasks", "is_over")

    def __init__(self, task: "Task", tasks: "Tasks") -> None:
        self._task = task
        self._tasks = tasks
        self.is_over = False

    def wake(self, result: Outcome[Any] | None = None) -> None:
        """Resume the task with this result at the next `Tasks.run`."""
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
    """A scope in which a task can be cancelled: `Cancelled` is raised at the task's next wait, and
    caught at the end of the scope."""

    def __init__(self, tasks: "Tasks", seconds: float = math.inf) -> None:
        """The scope is cancelled `seconds` after it is entered."""
        self.was_cut = False
        """Has the scope ended because it was cancelled?"""
        self.is_cancelled = False
        self._tasks = tasks
        self._seconds = seconds
        self._task: Task | None = None

    def cancel(self) -> None:
        """Cancel the scope, even before it is entered."""
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
        """Set the event, and resume all tasks that wait for it."""
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
    """As `trio.Lock`: tasks acquire it in the order in which they wait."""

    def __init__(self, tasks: "Tasks", released: Callable[[], None] = lambda: None) -> None:
        """`released` is called when the lock is free."""
        self._tasks = tasks
        self._released = released
        self._is_held = False
        self._waiters: deque[Waiter] = deque()

    def locked(self) -> bool:
        """Is the lock held?"""
        return self._is_held

    async def __aenter__(self) -> None:
        if self._is_held:
            await self._tasks.wait(self._waiters.append)
        self._is_held = True

    async def __aexit__(self, *_: object) -> None:
        """Pass the lock directly to the next waiting task, so no other task can acquire it
        first."""
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
        """Requests a batch soon."""
        self.current: Task
        """The running task."""
        self.due: Millis = FOREVER
        """The latest time at which `run` must be called."""
        self._now: Millis = 0
        self._ready: deque[tuple[Task, Outcome[Any] | None]] = deque()
        self._in_next: list[Waiter] = []
        """The waiters for the next `run`."""
        self._running: dict[Task, None] = {}
        self._alarms: list[tuple[Millis, int, Waiter | None, Callable[[], None]]] = []
        self._alarm_count = 0

    # For the node.

    def start(self, routine: Routine) -> None:
        """Start a coroutine as a task, from the next `run` on."""
        task = Task(routine)
        self._running[task] = None
        self.go_on(task, None)
        self.awaken()

    def go_on(self, task: Task, result: Outcome[Any] | None) -> None:
        """Resume a task in the next `run`."""
        self._ready.append((task, result))
        self.due = 0

    def run(self, now: Millis) -> None:
        """Run every task that is ready, until all of them wait."""
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
        """The node's monotonic clock at the start of the batch, in seconds."""
        return self._now / 1000

    def call_at(
        self, seconds: float, act: Callable[[], None], waiter: Waiter | None = None
    ) -> None:
        """Call `act` at this time, unless the waiter has been woken before."""
        self._alarm_count += 1
        at = math.ceil(seconds * 1000 - 1e-6)
        heapq.heappush(self._alarms, (at, self._alarm_count, waiter, act))
        self.due = min(self.due, at)

    async def wait(self, register: Callable[[Waiter], object]) -> Any:
        """Pass a waiter to `register`, and wait until it is woken. Returns its result."""
        task = self.current
        for scope in task.scopes:
            if scope.is_cancelled:
                raise Cancelled(scope)
        task.waiter = waiter = Waiter(task, self)
        register(waiter)
        return await _suspended()

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""
        until = self.time() + seconds
        await self.wait(lambda waiter: self.call_at(until, waiter.wake, waiter))

    async def checkpoint(self) -> None:
        """Wait for the next batch."""
        await self.wait(self._in_next.append)

    async def on(
        self,
        thread: DiskThread,
        act: Callable[[*Ts], T],
        *args: *Ts,
        sync: Callable[[], object] | None = None,
    ) -> T:
        """Run `act`, then `sync`, in another thread, and wait for the end. Cancellation does not
        stop the thread."""
        result: T = await self.wait(lambda waiter: thread.beside(act, args, waiter.wake, sync=sync))
        return result

    def move_on_after(self, seconds: float) -> Scope:
        """A scope that is cancelled `seconds` after it is entered."""
        return Scope(self, seconds)

    def scope(self) -> Scope:
        """A scope that only `cancel` cancels."""
        return Scope(self)


@types.coroutine
def _suspended() -> Generator[None, Any, Any]:
    return (yield)
