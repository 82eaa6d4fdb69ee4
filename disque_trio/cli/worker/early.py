"""Signals that come before the worker obeys them, while the app is imported.

The first process of a container gets no signal that it has no handler for, so the kernel would drop
a SIGTERM that came so early.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from disque_trio.worker.statuses import CLEAN

_STOPPING: Final = (signal.SIGTERM, signal.SIGHUP)
"""Python has a handler for SIGINT."""


@contextmanager
def ends_early() -> Iterator[None]:
    """While this lasts, an order to stop ends the process at once: no job has begun. For the main
    thread."""
    before = {number: signal.signal(number, _end) for number in _STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _: FrameType | None) -> None:
    # The import may catch any exception, so none is raised.
    name = signal.Signals(number).name
    os.write(2, f"{name}: stopped before any job started\n".encode())
    os._exit(CLEAN)
