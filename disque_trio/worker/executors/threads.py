"""Runs functions in threads.

A thread cannot be stopped: if a job is cancelled, its run continues until the function has
returned. The return value is used then, and the worker releases the job only after that.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any, Final

import anyio
import attrs

from disque_trio.worker.event_loops import current_loop, in_loop
from disque_trio.worker.executors.forks import end_fork
from disque_trio.worker.protocol import Run

THREADS: Final = 16
STUCK_S: Final = 10.0
"""A thread is replaced if it has not ended this long after its job was cancelled."""


@attrs.define(eq=False)
class _Call:
    """A function that runs, or waits for a thread."""

    fn: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    run: Run
    returns: "_Returns"
    begun: anyio.Event | None
    """Set when it starts; None if nothing waits for that."""
    context: Context = attrs.Factory(copy_context)
    ended: anyio.Event = attrs.Factory(anyio.Event)
    result: Any = None
    error: BaseException | None = None
    _claim: list[None] = attrs.Factory(lambda: [None])

    def claim(self) -> bool:
        """Claim the call, to start it or to drop it before it has started. Only the first claim
        succeeds."""
        try:
            self._claim.pop()
        except IndexError:
            return False
        return True

    def carry_out(self) -> None:
        """Run the call in the thread."""
        if self.begun is not None:
            self.returns.in_loop(self.begun.set)
        self.run.thread = threading.get_ident()
        process = os.getpid()
        try:
            self.result = self.context.run(self.fn, *self.args, **self.kwargs)
        except BaseException as error:
            self.error = error
        end_fork(process, self.error)
        self.run.thread = None
        self.returns.put(self)
        del self  # the traceback of the error has this frame: avoid a cycle


class _Returns:
    """Passes ended calls to the event loop, many with one callback."""

    def __init__(self) -> None:
        self.loop: Final = current_loop()
        self.in_loop: Final = in_loop()
        self._ended: Final[deque[_Call]] = deque()
        self._is_scheduled = False

    def put(self, call: _Call) -> None:
        """A call has ended; called in its thread."""
        self._ended.append(call)
        if not self._is_scheduled:
            self._is_scheduled = True
            self.in_loop(self._hear)

    def _hear(self) -> None:
        # First, so that a call that ends now schedules another callback.
        self._is_scheduled = False
        while self._ended:
            self._ended.popleft().ended.set()


class ThreadExecutor:
    """Runs functions in up to `threads` threads, in the order of the calls. Threads start when they
    are needed, and are daemons."""

    def __init__(self, threads: int = THREADS) -> None:
        self._most = threads
        self._count = 0
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._open = 0
        self._returns: _Returns | None = None

    async def run(
        self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], run: Run, /
    ) -> object:
        """Run the function and return its result. Raises its errors. The thread has the context
        variables of this task."""
        if self._returns is None or self._returns.loop is not current_loop():
            self._returns = _Returns()
        begun = anyio.Event() if self._open >= self._most else None
        call = _Call(fn, args, kwargs, run, self._returns, begun)
        self._open += 1
        try:
            self._calls.put(call)
            self._begin_thread()
            try:
                if begun is not None:
                    run.wait()
                    await begun.wait()
                    run.begin()
                await call.ended.wait()
            except BaseException:
                if call.claim():  # it has not begun
                    raise
                await self._outlast(call)
        finally:
            self._open -= 1
        if call.error is not None:
            try:
                raise call.error
            finally:
                del call  # this frame is in the traceback
        return call.result

    def close(self) -> None:
        """End each thread as soon as it is idle."""
        for _ in range(self._count):
            self._calls.put(None)
        self._count = 0

    def _begin_thread(self) -> None:
        if self._count < min(self._open, self._most):
            self._count += 1
            name = f"disque-worker-{self._count}"
            threading.Thread(target=self._serve, name=name, daemon=True).start()

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            if call.claim():
                call.carry_out()
            del call

    async def _outlast(self, call: _Call) -> None:
        """Wait for a thread that cannot be stopped; after `STUCK_S` start another one in its
        place."""
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(STUCK_S):
                await call.ended.wait()
                return
            self._most += 1
            self._begin_thread()
            await call.ended.wait()
            self._most -= 1
            if self._count > self._most:
                self._count -= 1
                self._calls.put(None)
