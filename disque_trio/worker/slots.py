"""Slots: long-lived tasks that run what the engine starts, one job at a time each.

A slot runs jobs one after another without yielding, for at most a millisecond. Then every other
task has its turn, so that nothing is late while thousands of short jobs wait. One idle slot is
woken at a time, and it wakes the next one if jobs are left. So jobs that end immediately need one
slot, and jobs that wait get one each.
"""

import math
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import anyio
import attrs
from anyio.abc import TaskGroup

from disque_trio.worker import open_scopes
from disque_trio.worker.deciding import last_resort
from disque_trio.worker.engine.records import Cancel, Done, Outcome, Reason, Release, Start
from disque_trio.worker.event_loops import absorb_cancellations, references, stray_cancellations
from disque_trio.worker.protocol import Driver, Handler, Run
from disque_trio.worker.runtime import runtime
from disque_trio.worker.stacks import of_coroutine, of_thread
from disque_trio.worker.times import RunTimes

BURST_S: Final = 0.001
"""How long a slot runs jobs before it yields to other tasks."""
_Ended = list[tuple[bytes, Outcome | None]]


class Turns(Driver, Protocol):
    """The driver, which is notified when jobs have ended."""

    def turn(self) -> None:
        """Handlers have ended: pass that to the engine."""
        ...

    def interrupted(self, run: Run) -> None:
        """A run was cancelled because the worker stops."""
        ...

    def failed(self, start: Start, error: BaseException) -> None:
        """A handler has raised an error, which is a bug of this library."""
        ...


@attrs.define(eq=False)
class Slot:
    """One of the tasks, and the job that it runs."""

    scope: anyio.CancelScope = attrs.Factory(anyio.CancelScope)
    """Replaced only after it was cancelled."""
    wake: anyio.Event = attrs.Factory(anyio.Event)
    run: Run | None = None
    cancelled_at: float = math.inf
    """When its job was cancelled, by `anyio.current_time`."""
    is_stuck: bool = False
    task: anyio.TaskInfo = attrs.Factory(anyio.get_current_task)
    strays: Callable[[], int] = attrs.Factory(stray_cancellations)
    """Counts the cancellations of this task that no scope has requested."""

    references: Callable[[], int] = attrs.Factory(references)
    """Counts the references to this task."""
    before: int = 0
    """The number of references before its job."""
    is_kept: bool = False
    """Has its job kept a reference to the task? The job may cancel the task later, so no other job
    runs in it."""
    scopes: open_scopes.OpenScopes = attrs.Factory(open_scopes.here)
    """The scopes of the task outside of its job."""

    def where(self) -> str:
        """The stack of the handler."""
        thread = None if self.run is None else self.run.thread
        return of_coroutine(self.task.coro) + ("" if thread is None else of_thread(thread))


@attrs.define(eq=False)
class Slots:
    """The slots of a worker."""

    handler: Handler
    driver: Turns
    most: Callable[[], int]
    """The number of jobs that may run at the same time."""
    times: RunTimes = attrs.Factory(RunTimes)
    """The run times of jobs."""
    ended: _Ended = attrs.field(init=False, factory=list)
    """The jobs that have ended since the last turn."""
    at_work: dict[bytes, Slot] = attrs.field(init=False, factory=dict)
    interrupted: int = attrs.field(init=False, default=0)
    """The number of jobs that were cancelled because the worker stops."""
    _tasks: TaskGroup = attrs.field(init=False)
    _ready: deque[Start] = attrs.field(init=False, factory=deque)
    _idle: list[Slot] = attrs.field(init=False, factory=list)
    _count: int = attrs.field(init=False, default=0)
    _is_waking: bool = attrs.field(init=False, default=False)
    _yield_at: float = attrs.field(init=False, default=0.0)
    _monotonic: Callable[[], float] = attrs.field(init=False, factory=lambda: runtime().monotonic)

    def open(self, tasks: TaskGroup) -> None:
        """Start slots as tasks of this group."""
        self._tasks = tasks

    def start(self, starts: list[Start]) -> None:
        """Run these jobs."""
        self._ready += starts
        if self._ready:
            self._wake()

    def cancel(self, cancel: Cancel) -> None:
        """Cancel a run, or remove the job if it has not started."""
        slot = self.at_work.get(cancel.id)
        if slot is not None and slot.run is not None:
            slot.run.why = cancel.why
            slot.cancelled_at = anyio.current_time()
            inner = slot.run.scope if cancel.why is Reason.TOO_LONG else None
            (inner or slot.scope).cancel()
            return
        for start in self._ready:
            if start.id == cancel.id:
                self._ready.remove(start)
                self.ended.append((start.id, None))
                return

    def _wake(self) -> None:
        if self._is_waking:
            return
        if self._idle:
            self._is_waking = True
            self._idle.pop().wake.set()
        elif self._count < self.most():
            self._is_waking = True
            self._count += 1
            self._tasks.start_soon(self._serve)

    def _woken(self) -> None:
        self._is_waking = False
        self._yield_at = self._monotonic() + BURST_S

    async def _serve(self) -> None:
        slot = Slot()
        self._woken()
        while True:
            error: BaseException | None = None
            try:
                with anyio.CancelScope() as slot.scope:
                    slot.scopes = open_scopes.here()
                    try:
                        await self._take_jobs(slot)
                    except BaseException as raised:
                        slot.is_kept = slot.references() > slot.before
                        if slot.scopes.innermost() is not slot.scopes.outer:
                            await slot.scopes.leave(raised)
                        raise
            except BaseException as raised:
                error = self._of_handler(slot, raised)
            if slot.run is not None:
                self._end(slot, slot.run, self._outcome(slot.run, error))
            if slot.is_kept:
                self._retire()
                return
            if slot.strays():
                await absorb_cancellations()

    def _of_handler(self, slot: Slot, error: BaseException) -> BaseException:
        """The error of the handler, or a cancellation that a job has left behind. Raises the
        cancellation of the whole worker, and errors that no job may stop."""
        is_over = anyio.current_effective_deadline() == -math.inf
        is_of_job = slot.run is not None or slot.strays()
        if is_over or not is_of_job or isinstance(error, KeyboardInterrupt | SystemExit):
            raise error
        return error

    async def _take_jobs(self, slot: Slot) -> None:
        ready, ended, at_work, scopes = self._ready, self.ended, self.at_work, slot.scopes
        while not slot.scope.cancel_called:
            if ended and not ready:
                self.driver.turn()
            now = self._monotonic()
            if not ready or now > self._yield_at:
                await self._rest(slot)
                continue
            start = ready.popleft()
            slot.run = run = Run(start, self.driver, began=now, scopes=scopes)
            at_work[start.id] = slot
            slot.before = slot.references()
            if ready:
                self._wake()
            elif ended:
                self.driver.turn()
            outcome = await self.handler(run)
            if scopes.innermost() is not scopes.outer:
                await scopes.leave()
            self._end(slot, run, outcome)
            if slot.references() > slot.before:
                slot.is_kept = True
                return
            if slot.strays() and not slot.scope.cancel_called:
                await absorb_cancellations()

    def _retire(self) -> None:
        """The task of a slot ends; a new one starts when there are jobs."""
        self._count -= 1
        if self.ended:
            self.driver.turn()
        if self._ready:
            self._wake()

    async def _rest(self, slot: Slot) -> None:
        """Wait for a job, or yield to other tasks."""
        if self.ended:
            self.driver.turn()
        slot.wake = anyio.Event()
        self._idle.append(slot)
        if self._ready:
            self._wake()
        try:
            await slot.wake.wait()
        finally:
            if slot.wake.is_set():
                self._woken()
            else:  # a job has cancelled the task after its end
                self._idle.remove(slot)

    def _end(self, slot: Slot, run: Run, outcome: Outcome | None) -> None:
        # Interrupted and snoozed runs do not count, nor do jobs of unknown tasks.
        if run.task and outcome is not None and type(outcome) is not Release:
            seconds = self._monotonic() - run.began
            self.times.note(run.task, seconds, type(outcome) is not Done)
        if run.why is Reason.SHUTDOWN and isinstance(outcome, Release | None):
            self.interrupted += 1
            self.driver.interrupted(run)
        slot.run, slot.cancelled_at, slot.is_stuck = None, math.inf, False
        del self.at_work[run.start.id]
        self.ended.append((run.start.id, outcome))

    def _outcome(self, run: Run, error: BaseException | None) -> Outcome | None:
        """The outcome of a run whose handler has not returned. It depends on why the run was
        cancelled, not on the error."""
        if error is not None:
            self.driver.failed(run.start, error)
        match run.why:
            case Reason.SHUTDOWN:
                return Release()
            case None | Reason.TOO_LONG:
                error = error or RuntimeError("the handler was cancelled")
                return last_resort(run, error).outcome
        return None
