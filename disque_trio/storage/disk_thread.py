"""The threads of a journal: its own, which writes groups of batches to the disk, and Trio's for all
other operations.

The loop itself makes a write for which it would wait, while the disk is quick: a thread costs 20 us
per write, and the write takes half a microsecond. While another operation is running, and for
`CAREFUL_S` after the disk was slow, the journal's thread writes, so that a hanging disk does not
block the node (decision 160).

One of Trio's threads per group would also work, but costs about 100 us of two cores. The journal's
own thread lives as long as the journal, takes its work from a queue, and puts the outcome into
another queue. The loop waits for it there, or reads it in its next turn, for which the event loop's
poller wakes it. So a batch costs two thread switches.
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
"""A function, its arguments, a function that syncs, and the callback for the loop with the
outcome."""
Done = tuple[Callable[[Any], None], Any]
"""A callback and the outcome."""

SLOW_WRITE_S: Final = 0.005
"""A write by the loop takes a thousandth of this, unless the disk is busy or the process waits for
a core. Two consecutive writes that take longer count as a slow disk."""
SLOW_S: Final = 0.25
"""Any other operation, such as a sync, takes some milliseconds. One operation or write that takes
longer than this counts as a slow disk."""
CAREFUL_S: Final = 10.0
"""How long the loop does not write after a slow operation."""


class OwnThread:
    """The `DiskThread` of a process. Its thread starts with the first work."""

    def __init__(self) -> None:
        self.wake: Callable[[], None] = lambda: None
        """Called in the thread when there is something to collect."""
        self.pending = 0
        self._work: SimpleQueue[Work | None] | None = None
        self._done: SimpleQueue[Done] = SimpleQueue()
        self._done_beside: SimpleQueue[Done] = SimpleQueue()
        self._is_awaited = False
        """Does the loop wait for the outcome, so that it need not be woken?"""
        self._was_late = False
        """Did the last write by the loop take more than `SLOW_WRITE_S`?"""
        self._careful_until = -math.inf
        """The time until which only the thread writes."""

    def start(
        self,
        act: Callable[..., object],
        args: tuple[Any, ...],
        then: Then,
        *,
        sync: Sync = None,
        wait_s: float = 0.0,
    ) -> None:
        """Run `act`, then `sync`, in the thread. `then` is called with the OSError, or None: by
        `collect`, or by this call if the work ends within `wait_s`. With `wait_s`, if the disk is
        quick and nothing is running, the work is done here, in the loop."""
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
        """Start the thread, and return the queue of its work. None if the system grants no thread,
        usually for lack of memory; then the loop does the work and waits for the disk."""
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
        """Run `act`, then `sync`, in another thread. `collect` calls `then` with the outcome."""
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
        """An operation that began at `began` has ended: if it took longer than `most` seconds, the
        disk counts as slow. Returns its duration in seconds."""
        now = monotonic()
        if now - began > most:
            self._careful_until = now + CAREFUL_S
        return now - began

    def collect(self) -> None:
        """Call the callbacks of finished work, in the loop."""
        for done in self._done, self._done_beside:
            while not done.empty():
                then, result = done.get()
                self.pending -= 1
                then(result)

    def _wait(self, seconds: float) -> None:
        """Block the loop until some work has finished, at most `seconds`, and call its callback."""
        self._is_awaited = True
        try:
            then, error = self._done.get(timeout=seconds)
        except Empty:
            # Work that finishes from now on wakes the loop; work that has finished meanwhile did
            # not.
            self._is_awaited = False
            self.collect()
        else:
            self._is_awaited = False
            self.pending -= 1
            then(error)

    def abandon(self) -> None:
        """Drop the running work, and do further work in a new thread. The old thread ends now or,
        if it hangs, when its disk answers."""
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
            # Otherwise the written bytes would stay in memory until the next work arrives.
            del piece, act, args, sync, then, error


def _do(act: Callable[..., object], args: tuple[Any, ...], sync: Sync) -> object:
    """Run `act`, then `sync`. Returns the result of `act`."""
    result = act(*args)
    if sync is not None:
        sync()
    return result


def _tried(act: Callable[..., object], args: tuple[Any, ...], sync: Sync) -> OSError | None:
    """Run `act`, then `sync`. Returns the error, or None."""
    try:
        _do(act, args, sync)
    except OSError as met:
        return met
    except MemoryError:
        return out_of_memory()
    return None


def out_of_memory() -> OSError:
    """The OSError that replaces a MemoryError, for callers that handle only errors of the disk."""
    return OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
