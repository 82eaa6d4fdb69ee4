"""The pollers of `multiplexing`: for Linux, for macOS and the BSDs, and for any system.

A program that forks must open its poller afterwards: a child does not inherit a kqueue.
"""

import contextlib
import functools
import select
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import trio

from disque_trio.net.multiplexing import ERR, HUP, IN, OUT, RDHUP, Poller

LOOK_S: Final = 0.1
"""The interval at which `TaskPoller` checks connections whose input is not wanted."""
_DEAD: Final = ERR | HUP


class EpollPoller:
    """For Linux. The methods are those of the `select.epoll` object, without a Python call in
    between."""

    __slots__ = ("close", "modify", "poll", "register", "wait")

    def __init__(self) -> None:
        epoll: Any = getattr(select, "epoll")()  # noqa: B009, not every system has it
        self.register: Callable[[int, int], None] = epoll.register
        self.modify: Callable[[int, int], None] = epoll.modify
        self.poll: Callable[[float, int], list[tuple[int, int]]] = epoll.poll
        self.close: Callable[[], None] = epoll.close
        self.wait: Callable[[], Awaitable[None]] = functools.partial(
            trio.lowlevel.wait_readable, epoll
        )

    def unregister(self, fd: int, /) -> None:
        """Do nothing: closing the descriptor suffices."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Return an empty context: the kernel needs no help."""
        return contextlib.nullcontext()


class KqueuePoller:
    """For macOS and the BSDs.

    There is always a filter for reading. If no input is wanted, it is edge-triggered (EV_CLEAR): it
    reports the end of the connection, but not repeatedly the bytes that are not read.
    """

    __slots__ = ("_control", "_events", "_kernel", "close", "wait")

    def __init__(self) -> None:
        self._kernel: Any = select
        kqueue = self._kernel.kqueue()
        self._control: Callable[..., list[Any]] = kqueue.control
        self._events: dict[int, int] = {}
        self.close: Callable[[], None] = kqueue.close
        self.wait: Callable[[], Awaitable[None]] = functools.partial(
            trio.lowlevel.wait_readable, kqueue
        )

    def register(self, fd: int, events: int, /) -> None:
        """Add the wanted filters."""
        changes = [self._reading(fd, events)]
        if events & OUT:
            changes.append(self._change(fd, self._kernel.KQ_FILTER_WRITE))
        self._control(changes, 0)
        self._events[fd] = events

    def modify(self, fd: int, events: int, /) -> None:
        """Replace the changed filters: the flags of an existing one cannot be changed."""
        kernel, changed = self._kernel, events ^ self._events[fd]
        changes = []
        if changed & IN:
            changes.append(self._change(fd, kernel.KQ_FILTER_READ, kernel.KQ_EV_DELETE))
            changes.append(self._reading(fd, events))
        if changed & OUT:
            flags = kernel.KQ_EV_ADD if events & OUT else kernel.KQ_EV_DELETE
            changes.append(self._change(fd, kernel.KQ_FILTER_WRITE, flags))
        if changes:
            self._control(changes, 0)
        self._events[fd] = events

    def _reading(self, fd: int, events: int) -> Any:
        kernel = self._kernel
        flags = kernel.KQ_EV_ADD if events & IN else kernel.KQ_EV_ADD | kernel.KQ_EV_CLEAR
        return self._change(fd, kernel.KQ_FILTER_READ, flags)

    def _change(self, fd: int, which: int, flags: int | None = None) -> Any:
        return self._kernel.kevent(fd, which, self._kernel.KQ_EV_ADD if flags is None else flags)

    def unregister(self, fd: int, /) -> None:
        """Forget the descriptor: closing it removes its filters."""
        self._events.pop(fd, None)

    def poll(self, seconds: float, most: int, /) -> list[tuple[int, int]]:
        """Return the events of both filters of a descriptor as one mask."""
        masks: dict[int, int] = {}
        for event in self._control(None, most, seconds):
            mask = self._mask(event)
            if mask:
                masks[event.ident] = masks.get(event.ident, 0) | mask
        return list(masks.items())

    def _mask(self, event: Any) -> int:
        wanted = self._events.get(event.ident, 0)
        is_over = event.flags & self._kernel.KQ_EV_EOF
        if event.filter == self._kernel.KQ_FILTER_WRITE:
            return OUT | HUP if is_over else OUT
        mask = wanted & IN
        if is_over:
            # The socket's error is in fflags; without one, the other side has only stopped sending.
            mask |= _DEAD | RDHUP if event.fflags else RDHUP
        return mask & (wanted | _DEAD)

    def running(self) -> AbstractAsyncContextManager[None]:
        """Return an empty context: the kernel needs no help."""
        return contextlib.nullcontext()


class _Waiter:
    """The task that waits for one direction of a descriptor, until its scope is cancelled."""

    __slots__ = ("fd", "poller", "scope", "what")

    def __init__(self, poller: "TaskPoller", fd: int, what: int) -> None:
        self.poller = poller
        self.fd = fd
        self.what = what
        self.scope = trio.CancelScope()

    async def run(self) -> None:
        """Report each event to the poller, and continue after it has been polled."""
        lowlevel = trio.lowlevel
        wait = lowlevel.wait_readable if self.what == IN else lowlevel.wait_writable
        with self.scope:
            # After the cancellation, the descriptor may belong to another connection.
            while not self.scope.cancel_called:
                mask = self.what
                try:
                    await wait(self.fd)
                except OSError:
                    mask = _DEAD
                if not self.scope.cancel_called:
                    self.poller.mark_ready(self.fd, mask)
                    await self.poller.until_polled()


class TaskPoller:
    """For any system: a Trio task waits for each connection, and a second one while bytes are
    unsent.

    Trio cannot wait for the end of a connection whose input is not wanted. Such connections are
    checked with poll(2) instead, every `LOOK_S`. Without POLLRDHUP the end is detected only when
    the connection breaks, or its input is wanted again.
    """

    def __init__(self) -> None:
        self._nursery: trio.Nursery | None = None
        self._events: dict[int, int] = {}
        self._waiters: dict[tuple[int, int], _Waiter] = {}
        self._ready: dict[int, int] = {}
        self._event_loop: trio.lowlevel.Task | None = None
        """The task in `wait`, or None."""
        self._parked: dict[trio.lowlevel.Task, None] = {}
        """Waiters that have reported an event and wait for `poll`."""
        self._unread: dict[int, None] = {}
        """Descriptors whose input is not wanted."""
        self._looker = select.poll()
        self._is_looking = False

    def register(self, fd: int, events: int, /) -> None:
        """Start its tasks now, or when the poller runs."""
        self.unregister(fd)
        self._events[fd] = events
        self._attend(fd)

    def modify(self, fd: int, events: int, /) -> None:
        """Start or end its tasks."""
        self._events[fd] = events
        self._attend(fd)

    def unregister(self, fd: int, /) -> None:
        """End its tasks."""
        if self._events.pop(fd, None) is not None:
            self._ready.pop(fd, None)
            for what in (IN, OUT):
                self._dismiss(fd, what)
            self._look_away(fd)

    def _attend(self, fd: int) -> None:
        if self._nursery is None:
            return
        events = self._events[fd]
        for what in (IN, OUT):
            if not events & what:
                self._dismiss(fd, what)
            elif (fd, what) not in self._waiters:
                waiter = self._waiters[fd, what] = _Waiter(self, fd, what)
                self._nursery.start_soon(waiter.run)
        if events & IN:
            self._look_away(fd)
        else:
            self._look_at(fd, events)

    def _dismiss(self, fd: int, what: int) -> None:
        waiter = self._waiters.pop((fd, what), None)
        if waiter is not None:
            waiter.scope.cancel()

    # Called by the tasks.

    def mark_ready(self, fd: int, mask: int) -> None:
        """Record an event, and wake the event loop."""
        self._ready[fd] = self._ready.get(fd, 0) | mask
        if self._event_loop is not None:
            trio.lowlevel.reschedule(self._event_loop)
            self._event_loop = None

    async def until_polled(self) -> None:
        """Wait for the next `poll`."""
        task = trio.lowlevel.current_task()

        def leave(_: object) -> trio.lowlevel.Abort:
            del self._parked[task]
            return trio.lowlevel.Abort.SUCCEEDED

        self._parked[task] = None
        await trio.lowlevel.wait_task_rescheduled(leave)

    # Called by the event loop.

    def poll(self, seconds: float, most: int, /) -> list[tuple[int, int]]:  # noqa: ARG002
        """Return the events since the last call. It never waits, because the tasks could not run
        meanwhile."""
        ready, self._ready = self._ready, {}
        parked, self._parked = self._parked, {}
        for task in parked:
            trio.lowlevel.reschedule(task)
        wanted = self._events
        return [(fd, found) for fd, mask in ready.items() if (found := mask & (wanted[fd] | _DEAD))]

    async def wait(self) -> None:
        """Wait until a task reports an event."""
        if self._ready:
            await trio.lowlevel.checkpoint()
            return

        def leave(_: object) -> trio.lowlevel.Abort:
            self._event_loop = None
            return trio.lowlevel.Abort.SUCCEEDED

        self._event_loop = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(leave)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Open the nursery of the tasks."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            for fd in list(self._events):
                self._attend(fd)
            try:
                yield
            finally:
                self._nursery = None
                nursery.cancel_scope.cancel()

    def close(self) -> None:
        """Forget all events; the tasks have ended with `running`."""
        self._events.clear()
        self._ready.clear()

    # Descriptors whose input is not wanted.

    def _look_at(self, fd: int, events: int) -> None:
        assert self._nursery is not None
        self._looker.register(fd, events & RDHUP & getattr(select, "POLLRDHUP", 0))
        self._unread[fd] = None
        if not self._is_looking:
            self._is_looking = True
            self._nursery.start_soon(self._look)

    def _look_away(self, fd: int) -> None:
        if self._unread.pop(fd, 0) is None:
            self._looker.unregister(fd)

    async def _look(self) -> None:
        while self._unread:
            await trio.sleep(LOOK_S)
            for fd, found in self._looker.poll(0):
                if mask := found & (RDHUP | _DEAD):
                    self.mark_ready(fd, mask)
        self._is_looking = False


_KINDS: Final[dict[str, Callable[[], Poller]]] = {
    "epoll": EpollPoller,
    "kqueue": KqueuePoller,
    "tasks": TaskPoller,
}


def open_poller(name: str) -> Poller:
    """Return a poller of this name, one of `multiplexing.available`."""
    return _KINDS[name]()
