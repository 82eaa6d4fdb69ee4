"""The figures of a queue at one node, and the commands that request those of all queues."""

from collections.abc import Iterable
from typing import Final, NamedTuple

import attrs

from disque_trio.client import replies
from disque_trio.client.command import Command, word
from disque_trio.client.records import QueueLimits, QueueStats
from disque_trio.statemachine.base import Reply

MANY: Final = 40
"""The number of queues in one answer with figures, in the first pass."""
SOME: Final = 16
"""The same in later passes: it extends a turn of the node's loop by some tenths of a
millisecond."""
FEW: Final = 4
"""The number of queues in one request with QSTAT: it keeps turns of the node's loop short."""


_WITH_UNQUEUED: Final = 12
"""The number of figures from a node that reports jobs that are not queued."""
_WITH_DELAYED: Final = 13
"""The same with the time when the first delayed job is queued."""
_WITH_LIMITS: Final = 19
"""The same for a queue with limits."""
_WITH_GROUPS: Final = 23
"""The same with limits of groups."""


class Stats(NamedTuple):
    """Figures as QSCAN with REPLY stat reports them. A tuple, because there may be 100,000 of
    them."""

    length: int
    blocked: int
    jobs_in: int
    jobs_out: int
    delayed: int | None
    leased: int | None
    dead: int | None
    made: int
    """When the next job was first due, in Unix milliseconds; 0 if there is none, or the node does
    not report it."""
    pause: str
    restored: int | None = None
    """Jobs that wait for the end of their RETRY after a restart of the node."""
    due: int = 0
    """When the first of these jobs is queued, in Unix seconds; 0 if there is none."""
    delayed_due: int = 0
    """The same for the delayed jobs; 0 also if the node does not report it."""
    limits: QueueLimits | None = None
    is_limited: bool = False
    """Do clients wait here only because of the limits?"""

    def age_s(self, now_ms: float) -> float:
        """Return how long the next job has waited, in seconds; 0 if there is none."""
        return max(now_ms - self.made, 0) / 1000 if self.made else 0.0


NOTHING: Final = Stats(0, 0, 0, 0, None, None, None, 0, "none")


def parsed(encoded: bytes) -> Stats:
    """Parse the figures in one word of QSCAN."""
    numbers = encoded.split()
    figures = Stats(*map(int, numbers[:8]), numbers[8].decode())  # type: ignore[call-arg, arg-type]
    if len(numbers) < _WITH_UNQUEUED:
        return figures
    delayed_due = int(numbers[12]) if len(numbers) >= _WITH_DELAYED else 0
    figures = figures._replace(
        restored=int(numbers[10]), due=int(numbers[11]), delayed_due=delayed_due
    )
    if len(numbers) < _WITH_LIMITS:
        return figures
    concurrency, rate, period, burst, is_limited, is_loose = map(int, numbers[13:_WITH_LIMITS])
    limits = QueueLimits(concurrency, rate, period / 1000, burst, bool(is_loose))
    if len(numbers) >= _WITH_GROUPS:
        concurrency, rate, period, burst = map(int, numbers[_WITH_LIMITS:_WITH_GROUPS])
        limits = attrs.evolve(
            limits,
            group_concurrency=concurrency,
            group_rate=rate,
            group_rate_per=period / 1000,
            group_burst=burst,
        )
    return figures._replace(limits=limits, is_limited=bool(is_limited))


def of_stats(stats: QueueStats, now_ms: float) -> Stats:
    """Convert the reply of QSTAT. `now_ms` is by the clocks of the nodes."""
    made = int(now_ms - stats.next_age * 1000) if stats.next_age and stats.length else 0
    return Stats(
        stats.length,
        stats.blocked,
        stats.jobs_in,
        stats.jobs_out,
        stats.delayed,
        stats.leased,
        stats.dead,
        made,
        stats.pause,
        stats.restored,
        _moment(stats.restored_due, now_ms),
        _moment(stats.delayed_due, now_ms),
        stats.limits,
        stats.is_limited,
    )


def _moment(due: float | None, now_ms: float) -> int:
    return 0 if due is None else int(now_ms / 1000 + due)


class Page(NamedTuple):
    """A page of a scan."""

    cursor: int
    names: list[str]
    figures: list[bytes]
    """The figures of each name; empty if the node does not report them."""


def scan(
    cursor: int, count: int, *, has_figures: bool, has_unqueued: bool = False
) -> Command[Page]:
    """Return the command for a page of queues: with figures if the node has `qscan-stat`, else
    their names. With `unqueued` it includes queues of which no job is queued."""
    words: tuple[bytes, ...] = (
        b"QSCAN",
        word(cursor),
        b"COUNT",
        word(count if has_figures else FEW),
    )
    if has_unqueued:
        words += (b"UNQUEUED",)
    if not has_figures:
        return Command(words, _names)
    return Command((*words, b"REPLY", b"stat"), _page)


def _names(reply: Reply) -> Page:
    cursor, found = replies.items(reply)
    return Page(
        int(replies.text(cursor)), [replies.text(each) for each in replies.items(found)], []
    )


def _page(reply: Reply) -> Page:
    cursor, found = replies.items(reply)
    words = list(_bytes(replies.items(found)))
    names = [each.decode("utf-8", "surrogateescape") for each in words[::2]]
    return Page(int(replies.text(cursor)), names, words[1::2])


def _bytes(found: Iterable[Reply]) -> Iterable[bytes]:
    for each in found:
        if not isinstance(each, bytes):
            raise TypeError("a name or figures")
        yield each
