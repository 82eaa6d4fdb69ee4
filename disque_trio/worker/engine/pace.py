"""How many jobs of a queue may be held before they start.

With `Settings.prefetch_window` this depends on time: as many jobs as end within the window at the
rate of the last second (decision 84). Slow jobs are not held, and no number has to be chosen.
"""

from typing import Final

from disque_trio.worker.engine.records import SECOND, Job, Micros, Pace, Queue, State

SPAN: Final[Micros] = 1 * SECOND
"""The period over which a rate is counted."""
MOST_BYTES: Final = 8 << 20
"""The approximate maximum size of the bodies of held jobs."""
SHARE: Final = 4
"""A job is held for at most this fraction of its lease."""


def ended(state: State, now: Micros, queue: bytes) -> None:
    """A handler of the queue has ended."""
    pace = state.paces[queue]
    _go_on(pace, now)
    pace.count += 1


def came(state: State, job: Job) -> None:
    """Record the properties of a job that has arrived."""
    pace = state.paces[job.queue]
    pace.has_once = pace.has_once or job.is_once
    pace.lease = job.lease
    pace.body = max(len(job.body), pace.body * 7 // 8)


def prefetch(state: State, now: Micros, queue: Queue) -> int:
    """How many jobs of the queue may be held in addition to those that may run."""
    window = state.settings.prefetch_window
    if not window:
        return queue.prefetch
    pace = state.paces[queue.name]
    if pace.has_once:  # it would be lost with the process
        return 0
    _go_on(pace, now)
    window = min(window, pace.lease // SHARE)
    by_time = max(pace.count, pace.before) * window // SPAN
    by_size = MOST_BYTES // (len(state.queues) * max(pace.body, 1))
    return min(by_time, by_size, queue.prefetch)


def _go_on(pace: Pace, now: Micros) -> None:
    spans = (now - pace.since) // SPAN
    if spans:
        pace.before = pace.count if spans == 1 else 0
        pace.count = 0
        pace.since += spans * SPAN
