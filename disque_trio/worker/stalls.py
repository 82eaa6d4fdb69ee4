"""Detects which job blocks the event loop: a thread inspects the loop's stack while the loop does
not run.

A coroutine that computes, sleeps or waits without `await` delays the renewal of leases, so that the
worker's jobs are redelivered to others.
"""

import contextlib
import sys
import sysconfig
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from types import FrameType
from typing import Final

import attrs

from disque_trio.worker.engine.records import NEVER, Job, Micros
from disque_trio.worker.protocol import Run
from disque_trio.worker.runtime import runtime
from disque_trio.worker.slots import Slot

LONG_S: Final = 1.0
"""A loop is stalled if it is late by this much."""
_LOOK_S: Final = 0.25
_NOT_OF_USERS: Final = (
    sysconfig.get_path("stdlib"),
    sysconfig.get_path("purelib"),
    str(Path(__file__).parents[1]),
)


@attrs.frozen
class Seen:
    """The place at which the loop was blocked."""

    task: str
    """Empty if no job was found there."""
    job: bytes
    where: str
    """File, line and function."""
    lease_ends: Micros = NEVER
    """When the lease of the job ends, as known at that time."""


@attrs.define(eq=False)
class Stalls:
    """Watches the event loop of the thread in which it was created."""

    at_work: dict[bytes, Slot]
    jobs: Mapping[bytes, Job]
    """The jobs that the worker has."""
    every_s: float
    """The interval at which `moved` is called while the loop runs."""
    seen: Seen | None = None
    """The place at which the loop was last blocked."""
    _loop: int = attrs.Factory(threading.get_ident)
    _moved: float = attrs.Factory(time.monotonic)
    is_over: threading.Event = attrs.Factory(threading.Event)

    def moved(self) -> None:
        """Record that the loop runs."""
        self._moved, self.seen = time.monotonic(), None

    def watch(self) -> None:
        """Watch the loop, in a thread, until `is_over`."""
        while not self.is_over.wait(_LOOK_S):
            if self.seen is None and time.monotonic() - self._moved > self.every_s + LONG_S / 2:
                frame = sys._current_frames().get(self._loop)
                if frame is not None:
                    self.seen = self._look(frame)

    def _look(self, innermost: FrameType) -> Seen:
        where, run = _found(innermost, list(self.at_work.values()))
        job = None if run is None else self.jobs.get(run.start.id)
        if run is None or job is None:
            return Seen("", b"", where)
        return Seen(run.task, job.id, where, job.end)


@contextlib.contextmanager
def watched(
    at_work: dict[bytes, Slot], jobs: Mapping[bytes, Job], every_s: float
) -> Iterator[Stalls | None]:
    """Watch the current event loop (`Stalls`), except in virtual time."""
    if runtime().monotonic is not time.monotonic:
        yield None
        return
    stalls = Stalls(at_work, jobs, every_s)
    threading.Thread(target=stalls.watch, name="disque-stalls", daemon=True).start()
    try:
        yield stalls
    finally:
        stalls.is_over.set()


def _found(innermost: FrameType, slots: Iterable[Slot]) -> tuple[str, Run | None]:
    """The place in the code, and the run."""
    frames = list(_outwards(innermost))
    of_users = (each for each in frames if not each.f_code.co_filename.startswith(_NOT_OF_USERS))
    frame = next(of_users, innermost)
    file = "/".join(PurePath(frame.f_code.co_filename).parts[-2:])
    where = f"{file}:{frame.f_lineno} in {frame.f_code.co_name}"
    for slot in slots:
        run = slot.run
        if run is not None and getattr(slot.task.coro, "cr_frame", None) in frames:
            return where, run
    return where, None


def _outwards(frame: FrameType | None) -> Iterable[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
