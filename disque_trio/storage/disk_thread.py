"""A thread of a journal's own, which writes to the disk one batch after another.

`trio.to_thread` would do, at the price of some 100 us of two processors for each call. Here the
thread lives as long as the journal, takes its work from a queue, and leaves what has come of it
where the loop looks at its next turn; so a batch costs two changes of threads, and the turn begins
by way of the hub's own set of sockets.
"""

import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import trio

Work = tuple[Callable[..., object], tuple[Any, ...], Callable[[OSError | None], None]]
"""What to do, with which arguments, and whom to tell in the loop how it went."""


class DiskThread:
    """Does work in order. The thread begins with the first piece of it."""

    def __init__(self) -> None:
        self.wake: Callable[[], None] = lambda: None
        """Called in the thread when there is something to collect."""
        self._work: SimpleQueue[Work | None] | None = None
        self._done: deque[tuple[Callable[[OSError | None], None], OSError | None]] = deque()

    def start(
        self,
        act: Callable[..., object],
        args: tuple[Any, ...],
        then: Callable[[OSError | None], None],
        *,
        syncs: bool,  # noqa: ARG002
    ) -> None:
        """Do it in the thread. `then` is called by `collect`, with the OSError that it met."""
        if self._work is None:
            self._work = SimpleQueue()
            arguments = (self._work, self._done)
            # A daemon: a disk that never answers does not keep the process alive.
            threading.Thread(target=self._run, args=arguments, name="journal", daemon=True).start()
        self._work.put((act, args, then))

    def collect(self) -> None:
        """In the loop: tell of what has been done."""
        done = self._done
        while done:
            then, error = done.popleft()
            then(error)

    def abandon(self) -> None:
        """Hear no more of what is under way, and do what comes next in another thread. One that
        hangs ends when its disk answers; one that does not, now."""
        if self._work is not None:
            self._work.put(None)
            self._work = None
            self._done = deque()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Until cancelled; then the thread ends too."""
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            self.abandon()

    def _run(
        self,
        work: "SimpleQueue[Work | None]",
        done: deque[tuple[Callable[[OSError | None], None], OSError | None]],
    ) -> None:
        while (piece := work.get()) is not None:
            act, args, then = piece
            error = None
            try:
                act(*args)
            except OSError as met:
                error = met
            done.append((then, error))
            self.wake()
            # What it has written is not kept in memory until the next piece comes.
            del piece, act, args, then, error
