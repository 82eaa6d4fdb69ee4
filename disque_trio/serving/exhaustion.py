"""Out of memory: a node that cannot continue exits at once, with a line in the log and status 1.

A MemoryError may leave any object inconsistent, including those of Trio, so a graceful stop could
hang. Confirmed jobs are as safe as the journal makes them, and a supervisor restarts the process.
If nothing is inconsistent, clients get -OOM (`Node.exhausted`).
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Final

from disque_trio.ports import Log

RESERVE_BYTES: Final = 4 << 20
"""Memory that is free for the last words."""
STATUS: Final = 1


class Exhaustion:
    """Ends the process when memory is out."""

    def __init__(self, log: Log, leave: Callable[[int], object] = os._exit) -> None:
        self._log = log
        self._leave = leave
        self._reserve: bytearray | None = bytearray(RESERVE_BYTES)

    @contextlib.contextmanager
    def fatal(self) -> Iterator[None]:
        """Within it a MemoryError ends the process."""
        try:
            yield
        except MemoryError:
            self.end()

    def end(self) -> None:
        """Log the error, and exit."""
        self._reserve = None
        try:
            self._log.warning(
                "out of memory: this process exits; give it more memory, or lower maxmemory"
            )
        finally:
            self._leave(STATUS)


def is_exhausted(error: BaseException) -> bool:
    """Is it a MemoryError, or caused by one?"""
    seen: list[BaseException] = []
    waiting = [error]
    while waiting:
        each = waiting.pop()
        if isinstance(each, MemoryError):
            return True
        if each in seen:
            continue
        seen.append(each)
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions
        waiting += [more for more in (each.__cause__, each.__context__) if more is not None]
    return False
