"""Gives freed memory back to the system (docs/memory.md).

What is freed stays in glibc's heap: after a backlog has been drained the process is as large as
before. `malloc_trim` gives back every free page. That takes a tenth of a second where free memory
is scattered, so it runs in a thread, and at most 1/`SHARE` of the time.
"""

import ctypes
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Final

import trio

from disque_trio.ports import Log
from disque_trio.statemachine import pressure
from disque_trio.statemachine.state import NodeState
from disque_trio.system import rss_bytes

LOOK_EVERY_S: Final = 1.0
SHARE: Final = 50
"""After a trim, a pause of this many times its duration,"""
LEAST_PAUSE_S: Final = 0.5
MOST_PAUSE_S: Final = 600.0
"""at least this long, and twice as long after each trim of little use, up to `MOST_PAUSE_S`."""
LEAST_SURPLUS: Final = 16 << 20
"""Resident bytes beyond the accounted ones that are worth a trim,"""
SURPLUS_SHARE: Final = 8
"""and at least this part of the accounted ones, since accounting is not exact;"""
MOST_SURPLUS: Final = 256 << 20
"""but this many are always worth one. A trim takes a quarter of a millisecond per MB, during which
allocations wait."""


class Trimmer:
    """Trims the memory of a process with one node."""

    def __init__(
        self,
        used: Callable[[], int],
        log: Log,
        *,
        rss: Callable[[], int] = rss_bytes,
        trim: Callable[[], object],
    ) -> None:
        """`used` says how many bytes are accounted for, `rss` how many are in memory."""
        self._used = used
        self._log = log
        self._rss = rss
        self._trim = trim
        self._pause = LEAST_PAUSE_S
        self._not_before = 0.0

    async def attend(self) -> None:
        """Check once per `LOOK_EVERY_S`, until cancelled."""
        while True:
            await trio.sleep(LOOK_EVERY_S)
            await self.look()

    async def look(self) -> None:
        """Give memory back if that is worth it now."""
        if trio.current_time() < self._not_before:
            return
        rss, used = self._rss(), self._used()
        surplus = rss - used
        if surplus < min(max(LEAST_SURPLUS, used // SURPLUS_SHARE), MOST_SURPLUS):
            self._pause = LEAST_PAUSE_S
            return
        started = perf_counter()
        await trio.to_thread.run_sync(self._trim, abandon_on_cancel=True)
        took = perf_counter() - started
        freed = rss - self._rss()
        is_useful = freed * 2 >= surplus
        self._pause = LEAST_PAUSE_S if is_useful else min(2 * self._pause, MOST_PAUSE_S)
        self._not_before = trio.current_time() + max(self._pause, took * SHARE)
        self._log.verbose("memory given back", bytes=max(freed, 0), ms=round(took * 1000))


def trimmer_for(state: NodeState, log: Log, platform: str = sys.platform) -> Trimmer | None:
    """None where the allocator is not glibc's."""
    trim = malloc_trim() if platform == "linux" else None
    return None if trim is None else Trimmer(lambda: pressure.weighed(state), log, trim=trim)


def malloc_trim() -> Callable[[], object] | None:
    """glibc's function of that name, if there is one."""
    try:
        function = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return None
    function.argtypes = [ctypes.c_size_t]
    function.restype = ctypes.c_int
    return lambda: function(0)
