"""The threads of a journal: its own, which writes one group of batches after another to the disk,
and Trio's for all else.

A write for which the loop would wait is done by the loop itself, while the disk is quick: a thread
costs 20 us for each, and the write takes half a microsecond. While anything else is under way, and
for some time after the disk was slow, the journal's thread writes, so that a disk that hangs does
not stop the node (decision 160).

One thread of Trio's for each group would work, but costs some 100 us of two processors. The
journal's own lives as long as the journal, takes its work from a queue, and leaves the outcome in
another queue. There the loop waits for it, or reads it at its next turn, for which it is woken
through the event loop's poller. So a batch costs two thread switches.
"""

import errno
import math
import os
import threading
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Final

import outcome
import trio
from outcome import Outcome

Then = Callable[[OSError | None], None]
Sync = Callable[[], object] | None
Work = tuple[Callable[..., object], tuple[Any, ...], Sync, Then]
"""What to do, with which arguments, how to sync that, and what to call in the loop with the
outcome."""
Done = tuple[Callable[[Any], None], Any]
"""What is to be called, and the outcome."""

SLOW_WRITE_S: Final = 0.005
"""A write by the loop takes a thousandth of that, unless the disk is busy or the process waits for
a processor. Two writes in a row that take longer count as a slow disk."""
SLOW_S: Final = 0.25
"""Anything else, such as a sync, takes some milliseconds. One that takes longer than this counts as
a slow disk, and so does one write."""
CAREFUL_S: Final = 10.0
"""For so long after something was slow the loop does not write."""


class OwnThread:
    """The `DiskThread` of a process. Its thread starts with the first piece of work."""

    def __init__(self) -> None:
        self.wake: Callable[[], None] = lambda: None
        """Called in the thread when there is something to collect."""
        self.pending = 0
        self._work: SimpleQueue[Work | None] | None = None
        self._done: SimpleQueue[Done] = SimpleQueue()
        self._done_beside: SimpleQueue[Done] = SimpleQueue()
        self._is_awaited = False
        """Does the loop wait, so that it need not be woken?"""
        self._was_late = False
        """Did the last write by the loop take more than `SLOW_WRITE_S`?"""
        self._careful_until = -math.inf
        """Until then only the thread writes."""

    def start(
        self,
        act: Callable[..., object],
        args: tuple[Any, ...],
        then: Then,
        *,
        sync: Sync = None,
        wait_s: float = 0.0,
    ) -> None:
        """Do it in the thread, and sync. `collect` calls `then`, with the OSError if there was one,
        or this does, if it ends soon. If the disk is quick, and nothing is under way, do it at
        once."""
        if wait_s and not self.pending and (began := monotonic()) >= self._careful_until:
            error = _tried(act, args, sync)
            took = self._look_at(began, SLOW_WRITE_S if self._was_late else SLOW_S)
            self._was_late = took > SLOW_WRITE_S
            then(error)
            return
        work = self._work or self._started()
        if work is None:
            then(_tried(act, args, sync))
            return
        self.pending += 1
        work.put((act, args, sync, then))
        if wait_s:
            self._wait(wait_s)

    def _started(self) -> "SimpleQueue[Work | None] | None":
        """Start the thread: the queue that it takes its work from. None while the system grants no
        thread, for want of memory as a rule: then the loop does the work and waits for the disk."""
        work: SimpleQueue[Work | None] = SimpleQueue()
        # A daemon: a disk that never answers does not keep the process alive.
        thread = threading.Thread(
            target=self._run, args=(work, self._done), name="journal", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:
            return None
        self._work = work
        return work

    def beside(
        self,
        act: Callable[..., object],
        args: tuple[Any, ...],
        then: Callable[[Outcome[Any]], None],
        *,
        sync: Sync = None,
    ) -> None:
        """Do it in another thread, and sync. `collect` calls `then`."""
        self.pending += 1
        did = partial(self._did_beside, then, monotonic())
        do = partial(_do, act, args, sync)
        try:
            trio.lowlevel.start_thread_soon(do, did)
        except RuntimeError:  # as in `_started`
            did(outcome.capture(do))

    def _did_beside(
        self, then: Callable[[Outcome[Any]], None], began: float, result: Outcome[object]
    ) -> None:
        self._look_at(began, SLOW_S)
        self._done_beside.put((then, result))
        self.wake()

    def _look_at(self, began: float, most: float) -> float:
        """Something that began then has ended: the disk is slow if that took longer than `most`.
        Seconds that it took."""
        now = monotonic()
        if now - began > most:
            self._careful_until = now + CAREFUL_S
        return now - began

    def collect(self) -> None:
        """In the loop: call `then` for what has finished."""
        for done in self._done, self._done_beside:
            while not done.empty():
                then, result = done.get()
                self.pending -= 1
                then(result)

    def _wait(self, seconds: float) -> None:
        """In the loop, which stands still meanwhile: wait until something has finished, or so long,
        and `collect`."""
        self._is_awaited = True
        try:
            then, error = self._done.get(timeout=seconds)
        except Empty:
            # What finishes from now on wakes the loop; what has finished meanwhile did not.
            self._is_awaited = False
            self.collect()
        else:
            self._is_awaited = False
            self.pending -= 1
            then(error)

    def abandon(self) -> None:
        """Forget what is under way, and do what comes next in a new thread. The old thread ends
        now, or, if it hangs, when its disk answers."""
        if self._work is not None:
            self._work.put(None)
            self._work = None
            self._done = SimpleQueue()

    def _run(self, work: "SimpleQueue[Work | None]", done: "SimpleQueue[Done]") -> None:
        while (piece := work.get()) is not None:
            act, args, sync, then = piece
            error = _tried(act, args, sync)
            done.put((then, error))
            if not self._is_awaited:
                self.wake()
            # Else the written bytes would stay in memory until the next piece comes.
            del piece, act, args, sync, then, error


def _do(act: Callable[..., object], args: tuple[Any, ...], sync: Sync) -> object:
    """Do it, and sync; what it returned."""
    result = act(*args)
    if sync is not None:
        sync()
    return result


def _tried(act: Callable[..., object], args: tuple[Any, ...], sync: Sync) -> OSError | None:
    """Do it; what it has met."""
    try:
        _do(act, args, sync)
    except OSError as met:
        return met
    except MemoryError:
        return out_of_memory()
    return None


def out_of_memory() -> OSError:
    """What a MemoryError is to those who expect a disk's errors."""
    return OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
