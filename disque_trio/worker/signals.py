"""Signals of a worker's process.

SIGTERM, SIGINT and SIGHUP: the first one stops the worker gracefully, the second one cancels its
jobs, the third one ends the process immediately. Signals within half a second count once. SIGUSR1:
take no more jobs. SIGUSR2 and SIGQUIT: log the stacks of all tasks and threads.
"""

import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

from disque_trio.worker.driver import Worker
from disque_trio.worker.event_loops import in_loop
from disque_trio.worker.guarded_loop import guarded
from disque_trio.worker.stacks import stacks
from disque_trio.worker.statuses import FAILED
from disque_trio.worker.stopping import STOPPING, Stops

_DUMPING: Final = (signal.SIGUSR2, signal.SIGQUIT)
_COLLECT_AFTER: Final = (10_000, 20, 50)
"""Jobs create many short-lived objects that are in no cycle."""
_log: Final = logging.getLogger("disque_trio.worker")


async def run_in_process(worker: Worker) -> int:
    """Run a worker that handles the signals of this process, in its main thread. Returns the exit
    status.

    If handlers do not end, the process exits here.
    """
    worker.leave = leave
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)
    with obeyed(worker), guarded():
        return await worker.run()


def leave(status: int) -> None:
    """Exit the process without waiting for threads."""
    logging.shutdown()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


@contextmanager
def obeyed(worker: Worker, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Pass signals to the worker while the context lasts. Use it in the main thread, in the event
    loop."""
    soon, stops = in_loop(), Stops(clock)

    def stop(number: int, _: FrameType | None) -> None:
        if not stops.is_new():
            return
        if stops.count > 2:
            os._exit(FAILED)
        soon(_stopped, worker, signal.Signals(number).name, stops.count)

    def quiet(_: int, __: FrameType | None) -> None:
        soon(worker.quiet)

    def dump(_: int, __: FrameType | None) -> None:
        soon(_dump)

    handlers = dict.fromkeys(STOPPING, stop) | dict.fromkeys(_DUMPING, dump)
    handlers[signal.SIGUSR1] = quiet
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stopped(worker: Worker, name: str, came: int) -> None:
    if came == 1:
        _log.info("%s: taking no more jobs; waiting for running jobs", name)
        worker.drain()
    else:
        _log.warning("%s again: cancelling running jobs", name)
        worker.stop()


def _dump() -> None:
    _log.warning("stacks of all tasks and threads:\n%s", stacks())
