"""The threads of a journal: its own, which writes one group of batches after another to the disk,
and Trio's for all else.

One of Trio's for each group would work, but costs some 100 us of two processors. The journal's own
lives as long as the journal, takes its work from a queue, and leaves the outcome in another queue.
There the loop waits for it, or reads it at its next turn, for which it is woken through the event
loop's poller. So a batch costs two thread switches.
"""

import errno
import os
import threading
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

import trio
from outcome import Outcome

Then = Callable[[OSError | None], None]
Work = tuple[Callable[..., object], tuple[Any, ...], Then]
"""What to do, with which arguments, and what to call in the loop with its outcome."""
Done = tuple[Callable[[Any], None], Any]
"""What is to be called, and the outcome."""


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

    def start(
        self,
        act: Callable[..., object],
        args: tuple[Any, ...],
        then: Then,
        *,
        syncs: bool,  # noqa: ARG002
        wait_s: float = 0.0,
    ) -> None:
        """Do it in the thread. `collect` calls `then`, with the OSError if there was one, or this
        does, if it ends soon."""
        if self._work is None:
            self._work = SimpleQueue()
            arguments = (self._work, self._done)
            # A daemon: a disk that never answers does not keep the process alive.
            threading.Thread(target=self._run, args=arguments, name="journal", daemon=True).start()
        self.pending += 1
        self._work.put((act, args, then))
        if wait_s:
            self._wait(wait_s)

    def beside(
        self,
        act: Callable[..., object],
        args: tuple[Any, ...],
        then: Callable[[Outcome[Any]], None],
    ) -> None:
        """Do it in another thread. `collect` calls `then`."""
        self.pending += 1
        trio.lowlevel.start_thread_soon(partial(act, *args), partial(self._did_beside, then))

    def _did_beside(self, then: Callable[[Outcome[Any]], None], outcome: Outcome[object]) -> None:
        self._done_beside.put((then, outcome))
        self.wake()

    def collect(self) -> None:
        """In the loop: call `then` for what has finished."""
        for done in self._done, self._done_beside:
            while not done.empty():
                then, outcome = done.get()
                self.pending -= 1
                then(outcome)

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
            act, args, then = piece
            error = None
            try:
                act(*args)
            except OSError as met:
                error = met
            except MemoryError:
                error = OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
            done.put((then, error))
            if not self._is_awaited:
                self.wake()
            # Else the written bytes would stay in memory until the next piece comes.
            del piece, act, args, then, error
