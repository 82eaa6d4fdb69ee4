"""Runs several worker processes: `disque-trio worker --processes N`.

The parent runs no jobs. It starts the children, passes its signals on, and restarts each child that
ends by itself.
"""

import logging
import signal
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import anyio
import attrs

from disque_trio.worker.statuses import CLEAN, FAILED, INTERRUPTED, REFUSED, RESTART
from disque_trio.worker.stopping import STOPPING, Stops

FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 30.0
SHORT_LIFE_S: Final = 10.0
AT_ONCE: Final = 3
"""A child that dies is restarted immediately, unless more than this many consecutive lives were
short. Then every child probably dies for the same reason, and pauses limit the load of restarts."""
_WORST_FIRST: Final = (REFUSED, FAILED, INTERRUPTED, CLEAN)
_log: Final = logging.getLogger(__name__)


class Child(Protocol):
    """A worker process, such as `anyio.abc.Process`."""

    async def wait(self) -> int:
        """The exit status, or the negative number of the signal that killed it."""
        ...

    def send_signal(self, number: int) -> None:
        """Send it a signal; nothing happens if it has ended."""
        ...


@attrs.define(eq=False)
class Supervisor:
    """Keeps `count` children running until it is stopped.

    `start` starts a child; its argument is the child's number, from 1. With `is_burst`, a child
    that has ended with status 0 is not restarted.
    """

    start: Callable[[int], Awaitable[Child]]
    count: int
    is_burst: bool = False
    _children: dict[int, Child] = attrs.Factory(dict)
    _statuses: list[int] = attrs.Factory(list)
    _stopping: anyio.Event = attrs.Factory(anyio.Event)
    _stops: Stops = attrs.field(factory=lambda: Stops(anyio.current_time))

    async def run(self) -> int:
        """Run until all children have ended for good. Returns the worst of their exit statuses."""
        async with anyio.create_task_group() as group:
            for number in range(1, self.count + 1):
                group.start_soon(self._keep, number)
        return next(each for each in _WORST_FIRST if each in (*self._statuses, CLEAN))

    def signalled(self, number: int) -> None:
        """Pass a signal of this process on to the children. A stop signal ends the restarts; one
        that repeats it within half a second is dropped."""
        if number not in STOPPING or self._stops.is_new():
            self._pass_on(number)

    def _pass_on(self, number: int) -> None:
        if number in STOPPING:
            self._stopping.set()
        for child in self._children.values():
            child.send_signal(number)

    async def _keep(self, number: int) -> None:
        short_lives = 0
        while not self._stopping.is_set():
            began = anyio.current_time()
            status = await self._live(number)
            if self._stopping.is_set() or self._is_over(number, status):
                self._statuses.append(_final(status))
                return
            has_crashed = status not in {CLEAN, RESTART}
            is_short = has_crashed and anyio.current_time() - began < SHORT_LIFE_S
            short_lives = short_lives + 1 if is_short else 0
            rest = _pause(short_lives)
            when = f"in {rest:.1f} s" if rest else "at once"
            _log.warning("worker %d %s; it restarts %s", number, how(status), when)
            with anyio.move_on_after(rest):
                await self._stopping.wait()

    def _is_over(self, number: int, status: int) -> bool:
        """Has the child ended for good? If nodes reject one child, all others are stopped."""
        if status == REFUSED:
            _log.error("worker %d %s; stopping all workers", number, how(status))
            self._pass_on(signal.SIGTERM)
        return status == REFUSED or (self.is_burst and status == CLEAN)

    async def _live(self, number: int) -> int:
        """Run one child. Returns its exit status."""
        try:
            child = self._children[number] = await self.start(number)
        except OSError as error:
            _log.error("worker %d cannot be started: %s", number, error)
            return FAILED
        if self._stopping.is_set():
            child.send_signal(signal.SIGTERM)
        try:
            return await child.wait()
        finally:
            del self._children[number]


def _pause(short_lives: int) -> float:
    """The pause before the next start, after this many short lives in a row, in seconds."""
    if short_lives <= AT_ONCE:
        return 0.0
    return float(min(FIRST_PAUSE_S * 2 ** min(short_lives - AT_ONCE - 1, 30), LONGEST_PAUSE_S))


def _final(status: int) -> int:
    """The contribution of a child's last exit status to the exit status of the parent."""
    if status == RESTART or -status in STOPPING:  # a signal kills only a child that has not begun
        return CLEAN
    return status if status in _WORST_FIRST else FAILED


def how(status: int) -> str:
    """A description of how a process has ended."""
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    return {
        CLEAN: "has ended",
        RESTART: "requests a restart",
        REFUSED: "was refused by a node",
    }.get(status, f"has failed with status {status}")
