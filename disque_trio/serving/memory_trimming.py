"""The heap of the process: measures it, and returns freed memory to the system (docs/memory.md).

Freed memory stays in glibc's heap: after a backlog has been drained the process is as large as
before. `malloc_trim` returns every free page. That takes a tenth of a second where free memory
is scattered, so it runs in a thread, and at most 1/`SHARE` of the time.
"""

import contextlib
import ctypes
import sys
import threading
from collections.abc import Callable
from time import perf_counter
from typing import Final

import trio

from disque_trio.ports import Log
from disque_trio.statemachine import pressure, resident_size
from disque_trio.statemachine.state import NodeState
from disque_trio.system import present_rss_bytes

LOOK_EVERY_S: Final = 1.0
LOOK_OFTEN_S: Final = 0.1
"""The same while the resident size is above `NEAR_PERCENT` of maxmemory."""
NEAR_PERCENT: Final = 80
TIGHT_PERCENT: Final = 95
"""Above this percentage of maxmemory even a small surplus is worth a trim."""
SHARE: Final = 50
"""After a trim, a pause of this many times its duration,"""
TIGHT_SHARE: Final = 10
"""or, above `TIGHT_PERCENT`, of this many."""
LEAST_PAUSE_S: Final = 0.5
MOST_PAUSE_S: Final = 600.0
"""Memory that a trim has not given back is tried again after a pause that grows up to this."""
LEAST_SURPLUS: Final = 16 << 20
"""Resident bytes beyond the accounted ones that are worth a trim,"""
SURPLUS_SHARE: Final = 8
"""and at least this part of the accounted ones, since accounting is not exact;"""
MOST_SURPLUS: Final = 256 << 20
"""but this many are always worth one. A trim takes a quarter of a millisecond per MB, during which
allocations wait."""
TIGHT_SURPLUS_SHARE: Final = 32
"""Above `TIGHT_PERCENT` this part of maxmemory is worth one."""
STACK_BYTES: Final = 1 << 20
"""The address space of a thread's stack; those of disks and of name resolution need a part."""
_M_ARENA_MAX: Final = -8
"""Of `malloc.h`: the greatest number of heaps."""


class Trimmer:
    """Watches the memory of a process with one node."""

    def __init__(
        self,
        used: Callable[[], int],
        log: Log,
        *,
        limit: Callable[[], int],
        notify: Callable[[int], None],
        rss: Callable[[], int] = present_rss_bytes,
        trim: Callable[[], object] | None,
    ) -> None:
        """`used` says how many bytes are accounted for, `rss` how many are in memory, and `limit`
        is maxmemory. Each measurement is passed to `notify`. Without `trim` it only measures."""
        self._used = used
        self._log = log
        self._limit = limit
        self._notify = notify
        self._rss = rss
        self._trim = trim
        self._pause = LEAST_PAUSE_S
        self._not_before = 0.0
        self._stuck = 0
        """The surplus that the last trim has not given back, as far as it is still there,"""
        self._stuck_until = 0.0
        """which is not tried again before this time."""

    async def attend(self) -> None:
        """Check once per `LOOK_EVERY_S`, or `LOOK_OFTEN_S`, until cancelled."""
        while True:
            is_near = self._rss() * 100 > self._limit() * NEAR_PERCENT
            await trio.sleep(LOOK_OFTEN_S if is_near else LOOK_EVERY_S)
            await self.look()

    async def look(self) -> None:
        """Measure, and give memory back if that is worth it now."""
        rss = self._rss()
        surplus = rss - self._used()
        is_tight = rss * 100 > self._limit() * TIGHT_PERCENT
        if self._is_worth_it(surplus, is_tight=is_tight):
            rss = await self._give_back(rss, surplus, TIGHT_SHARE if is_tight else SHARE)
        self._notify(rss)

    def _is_worth_it(self, surplus: int, *, is_tight: bool) -> bool:
        now = trio.current_time()
        self._stuck = 0 if now >= self._stuck_until else min(self._stuck, max(surplus, 0))
        if self._trim is None or now < self._not_before:
            return False
        used = self._used()
        worth = min(max(LEAST_SURPLUS, used // SURPLUS_SHARE), MOST_SURPLUS)
        if is_tight:
            worth = min(worth, self._limit() // TIGHT_SURPLUS_SHARE)
        if surplus < worth:
            self._pause = LEAST_PAUSE_S
        return surplus - self._stuck >= worth

    async def _give_back(self, rss: int, surplus: int, share: int) -> int:
        """Trim. Returns the resident size after it."""
        assert self._trim is not None
        started = perf_counter()
        try:
            await trio.to_thread.run_sync(self._trim, abandon_on_cancel=True)
        except RuntimeError:  # there is no memory for a thread
            self._trim()
        took = perf_counter() - started
        after = self._rss()
        freed = rss - after
        is_useful = freed * 2 >= surplus - self._stuck
        self._pause = LEAST_PAUSE_S if is_useful else min(2 * self._pause, MOST_PAUSE_S)
        now = trio.current_time()
        self._not_before = now + max(LEAST_PAUSE_S, took * share)
        self._stuck, self._stuck_until = max(after - self._used(), 0), now + self._pause
        self._log.verbose("memory returned", bytes=max(freed, 0), ms=round(took * 1000))
        return after


def trimmer_for(state: NodeState, log: Log, platform: str = sys.platform) -> Trimmer | None:
    """Return None if the system does not report the current resident size."""
    if not present_rss_bytes():
        return None
    return Trimmer(
        lambda: pressure.weighed(state),
        log,
        limit=lambda: state.config.maxmemory,
        notify=lambda rss: resident_size.measured(state, rss),
        trim=malloc_trim() if platform == "linux" else None,
    )


def malloc_trim() -> Callable[[], object] | None:
    """glibc's function of that name, if there is one."""
    try:
        function = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return None
    function.argtypes = [ctypes.c_size_t]
    function.restype = ctypes.c_int
    return lambda: function(0)


def bound_threads() -> None:
    """Let all threads allocate from one heap, and give them small stacks. Called before there are
    any.

    By default a thread takes 72 MB of the address space: a heap of its own and its stack. Where
    `ulimit -v` limits that, a rewrite of the journal, which starts two, took the room that
    `memory_probe` had just found.
    """
    threading.stack_size(STACK_BYTES)
    # Only glibc has several heaps.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
