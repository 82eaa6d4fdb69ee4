"""Runs pieces of work on Spark, each as a job of its own, and yields outcomes as they finish.

One job with a task for each piece would give no outcome before its end, and its pieces would have
to be cut before their cost is known. With a job for each piece, the size of the next one follows
from the cost of the last. A job costs some 50 ms; pieces should take seconds.

Spark repeats a piece when its executor is lost; its outcome is still yielded once.
"""

import queue
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, Final, TypeVar

from disque_trio.pipeline.errors import PipelineError
from disque_trio.pipeline.session import why

Piece = TypeVar("Piece")
Outcome = TypeVar("Outcome")

MOST: Final = 512
"""How many pieces run at once at most: each has a thread here."""
_AGAIN_S: Final = 0.2
"""How often jobs are cancelled again: a piece may reach Spark just after all were cancelled."""
_END_S: Final = 10.0
"""How long to wait for cancelled jobs; the session ends those that are left."""
_AHEAD: Final = 0.25
"""Pieces that wait at Spark for a processor, as a share of those that run."""


class Fanout:
    """Runs pieces on one session."""

    def __init__(self, spark: Any) -> None:
        self._context = spark.sparkContext
        self._group = f"disque-trio-{uuid.uuid4().hex[:12]}"
        self._outcomes: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._running: set[Future[None]] = set()
        self._is_over = False

    @property
    def processors(self) -> int:
        """How many pieces the present executors run at once."""
        found: int = self._context.defaultParallelism
        return found

    def run(
        self, work: Callable[[Piece], Outcome], pieces: Iterable[Piece]
    ) -> Generator[Outcome, None, None]:
        """The outcomes of the pieces, in the order in which they finish.

        `work` is a function of a module that executors can import. A piece is taken from `pieces`
        only when it can run soon. Closing the generator cancels what is running. Raises
        `PipelineError` when a piece fails finally.
        """
        rest = iter(pieces)
        under_way = 0
        threads = ThreadPoolExecutor(MOST, thread_name_prefix="fanout")
        try:
            while True:
                under_way += self._hand_out(threads, work, rest, under_way)
                if not under_way:
                    return
                outcome = self._outcomes.get()
                under_way -= 1
                if isinstance(outcome, PipelineError):
                    raise outcome
                yield outcome
        finally:
            self._is_over = True
            threads.shutdown(wait=False, cancel_futures=True)
            self._end()

    def _hand_out(
        self,
        threads: ThreadPoolExecutor,
        work: Callable[[Piece], Outcome],
        rest: Iterator[Piece],
        under_way: int,
    ) -> int:
        """Start as many pieces as there is room for."""
        processors = self.processors
        room = min(MOST, processors + max(1, int(processors * _AHEAD))) - under_way
        sent = 0
        while sent < room and (piece := next(rest, None)) is not None:
            future = threads.submit(self._run, work, piece)
            self._running.add(future)
            future.add_done_callback(self._running.discard)
            sent += 1
        return sent

    def _run(self, work: Callable[[Piece], Outcome], piece: Piece) -> None:
        """In a thread: one piece from beginning to end."""
        context = self._context
        try:
            context.setJobGroup(self._group, "disque-trio", interruptOnCancel=True)
            if not self._is_over:
                (outcome,) = context.parallelize([piece], 1).map(work).collect()
                self._outcomes.put(outcome)
        except Exception as error:  # whatever Spark says
            if not self._is_over:
                self._outcomes.put(PipelineError(why(error, "Spark could not finish")))

    def _end(self) -> None:
        deadline = time.monotonic() + _END_S
        while (left := set(self._running)) and time.monotonic() < deadline:
            with suppress(Exception):  # the JVM may be what has failed
                self._cancel()
            wait(left, _AGAIN_S)

    def _cancel(self) -> None:
        """Cancel our jobs. Spark logs a complaint if there are none, so look first."""
        tracker = self._context.statusTracker()
        ours = set(tracker.getJobIdsForGroup(self._group))
        if not ours.isdisjoint(tracker.getActiveJobsIds()):
            self._context.cancelJobGroup(self._group)
