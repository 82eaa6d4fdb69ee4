"""Calls the hooks of an app in a worker, each in its own task, so that jobs do not wait for hooks.

If a hook falls behind, events are dropped for it.
"""

import logging
from collections import deque
from inspect import iscoroutinefunction
from typing import Any, Final

import anyio
import attrs
from anyio.abc import TaskGroup

from disque_trio.terminal.counting import counted
from disque_trio.worker.checks import shown
from disque_trio.worker.deciding import cancellation
from disque_trio.worker.events import Event
from disque_trio.worker.hooks import Hook, Hooks
from disque_trio.worker.repeats import Repeats

HOOK_S: Final = 10.0
"""An `async def` hook that takes longer for one event is cancelled."""
LAST_S: Final = 5.0
"""How long hooks may take for the remaining events when the worker ends."""
MOST: Final = 10_000
"""The maximum number of events that wait for one hook; later ones are dropped."""

_log: Final = logging.getLogger("disque_trio.worker.hooks")


@attrs.define(eq=False)
class _Listener:
    """A hook in a worker, and the events that it has not been called with yet."""

    hook: Hook
    waiting: deque[Event] = attrs.Factory(deque)
    wake: anyio.Event = attrs.Factory(anyio.Event)
    dropped: int = 0
    is_busy: bool = False
    is_over: bool = False


@attrs.define(eq=False)
class HookRunner:
    """Calls the hooks of an app in a worker, inside of `async with`."""

    hooks: Hooks
    in_threads: bool
    """Are `def` hooks called in a thread? Otherwise they are called in the event loop."""
    _listeners: list[_Listener] = attrs.field(init=False, factory=list)
    _by_kind: dict[type[Event], list[_Listener]] = attrs.field(init=False, factory=dict)
    _tasks: TaskGroup = attrs.field(init=False)
    _repeats: Repeats = attrs.field(init=False, factory=Repeats)

    async def __aenter__(self) -> "HookRunner":
        self._listeners = [_Listener(hook) for hook in self.hooks.declared]
        self._tasks = await anyio.create_task_group().__aenter__()
        for each in self._listeners:
            self._tasks.start_soon(self._serve, each)
        return self

    async def __aexit__(self, *raised: Any) -> bool | None:
        try:
            with anyio.move_on_after(LAST_S):
                while any(each.waiting or each.is_busy for each in self._listeners):
                    await anyio.sleep(LAST_S / 500)
        finally:
            for each in self._listeners:
                each.is_over = True
                if left := len(each.waiting) + each.is_busy:
                    events = counted(left, "event is", "events are")
                    _log.warning("hook %s: %s abandoned", shown(each.hook.fn), events)
            self._tasks.cancel_scope.cancel()
            done: bool | None = await self._tasks.__aexit__(None, None, None)
        return done

    def wants(self, kind: type[Event]) -> bool:
        """Is any hook called with events of this class?"""
        return bool(self._of(kind))

    def emit(self, event: Event) -> None:
        """Call the hooks of this event soon. Never waits, never raises."""
        for each in self._of(type(event)):
            if len(each.waiting) < MOST:
                each.waiting.append(event)
                each.wake.set()
            else:
                each.dropped += 1

    def _of(self, kind: type[Event]) -> list[_Listener]:
        found = self._by_kind.get(kind)
        if found is None:
            found = [each for each in self._listeners if each.hook.accepts(kind)]
            self._by_kind[kind] = found
        return found

    async def _serve(self, listener: _Listener) -> None:
        is_async = iscoroutinefunction(listener.hook.fn)
        limiter = anyio.CapacityLimiter(1)
        while True:
            if not listener.waiting:
                listener.wake = anyio.Event()
                await listener.wake.wait()
            listener.is_busy = True
            if is_async:
                await self._await(listener, listener.waiting.popleft())
            elif self.in_threads:
                await anyio.to_thread.run_sync(
                    self._call, listener, abandon_on_cancel=True, limiter=limiter
                )
            else:
                self._call(listener)
                await anyio.lowlevel.checkpoint()
            listener.is_busy = False
            if listener.dropped:
                events = counted(listener.dropped, "event was", "events were")
                text = "hook %s is too slow: %s dropped"
                _log.warning(text, shown(listener.hook.fn), events)
                listener.dropped = 0

    def _call(self, listener: _Listener) -> None:
        # All waiting events: a thread returns to a busy event loop late.
        while listener.waiting and not listener.is_over:
            listener.hook.call(listener.waiting.popleft(), self._repeats)

    async def _await(self, listener: _Listener, event: Event) -> None:
        hook = listener.hook
        with anyio.move_on_after(HOOK_S) as scope:
            try:
                await hook.fn(event)  # type: ignore[misc]  # it is an `async def`
            except BaseException as error:
                is_over = anyio.current_effective_deadline() == -float("inf")
                if is_over and cancellation(error) is not None:
                    raise
                hook.failed(event, error, self._repeats)
        if scope.cancelled_caught:
            late = TimeoutError(f"it ran longer than {HOOK_S:.0f} s, and was cancelled")
            hook.failed(event, late, self._repeats)
