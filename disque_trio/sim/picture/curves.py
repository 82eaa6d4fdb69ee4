"""Curves over a run: undelivered and unacknowledged jobs, and copies of unacknowledged ones.

A job counts from the success of its ADDJOB. It is delivered when a consumer has received it, and
done when it is acknowledged, deleted or expired. Jobs with at-most-once delivery are left out: they
are done when they are served, and losing a copy of one is no fault.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby

import attrs

from disque_trio.sim.picture.job_states import Move
from disque_trio.tracing.rows import Row

Point = tuple[int, ...]
"""A time, and the values from then on."""

ENDS = frozenset({"expired", "flush", "client-deljob", "fastack", "collected"})
"""Causes of a drop that end the job everywhere, not only this copy."""
DONE = frozenset({"ack.ok", "fastack.ok", "deljob.ok", "acked"})
POINTS_MOST = 1_500


@attrs.define
class Curves:
    """The curves of the rows so far."""

    delivery: str = "get.deliver"
    """The kind of row that shows a delivery."""
    unseen: list[Point] = attrs.field(factory=lambda: [(0, 0)])
    unacked: list[Point] = attrs.field(factory=lambda: [(0, 0)])
    copies: list[Point] = attrs.Factory(list)
    """The smallest, median and largest number of copies of unacknowledged jobs."""
    _unseen: dict[str, None] = attrs.field(init=False, factory=dict)
    _unacked: dict[str, None] = attrs.field(init=False, factory=dict)
    _over: dict[str, None] = attrs.field(init=False, factory=dict)
    """Jobs that are done, maybe before their ADDJOB succeeded. `_seen`: jobs that were
    delivered."""
    _seen: dict[str, None] = attrs.field(init=False, factory=dict)
    _copies: Counter[str] = attrs.field(init=False, factory=Counter)
    _spread: Counter[int] = attrs.field(init=False, factory=Counter)
    """By number of copies: the number of unacknowledged jobs."""

    def see(self, row: Row, moves: Sequence[Move]) -> None:
        """Apply a row, and the changes of state that it caused."""
        for move in moves:
            if move.before.is_copy is not move.after.is_copy:
                self._count(move.job, 1 if move.after.is_copy else -1)
        counts = bool(row.job) and is_at_least_once(row.job) and self._live(row)
        if not counts and not moves:
            return
        _put(self.unseen, (row.time, len(self._unseen)))
        _put(self.unacked, (row.time, len(self._unacked)))
        self._put_copies(row.time)

    def _live(self, row: Row) -> bool:
        """Apply the start or end of the row's job; return False if it has neither."""
        if row.kind == "add.ok":
            self._add(row.job)
        elif row.kind == self.delivery:
            self._seen[row.job] = None
            self._unseen.pop(row.job, None)
        elif row.kind in DONE or (row.kind == "drop" and row.cause in ENDS):
            self._end(row.job)
        else:
            return False
        return True

    def _add(self, job: str) -> None:
        if job not in self._seen and job not in self._over:
            self._unseen[job] = None
        if job not in self._over and job not in self._unacked:
            self._unacked[job] = None
            self._spread[self._copies[job]] += 1

    def _end(self, job: str) -> None:
        self._over[job] = None
        self._unseen.pop(job, None)
        if job in self._unacked:
            del self._unacked[job]
            self._spread[self._copies[job]] -= 1

    def _count(self, job: str, more: int) -> None:
        if job in self._unacked:
            self._spread[self._copies[job]] -= 1
            self._spread[self._copies[job] + more] += 1
        self._copies[job] += more

    def _put_copies(self, time: int) -> None:
        present = sorted(+self._spread)
        if not present:
            _put(self.copies, (time, -1, -1, -1))
            return
        left = self._spread.total() // 2
        for middle in present:
            left -= self._spread[middle]
            if left < 0:
                break
        _put(self.copies, (time, present[0], middle, present[-1]))


def is_at_least_once(job: str) -> bool:
    """Does the id end in an odd number? (original 2.2)"""
    return job[-1:] in "13579bdf" or not job.startswith("D-")


def _put(points: list[Point], point: Point) -> None:
    """Add a point if the values changed; of several at one time keep the last."""
    if points and points[-1][1:] == point[1:]:
        return
    if points and points[-1][0] == point[0]:
        points.pop()
    points.append(point)


def thinned(points: Sequence[Point], end: int, worst: Callable[[Point], int]) -> list[Point]:
    """Return at most `POINTS_MOST` points: the worst and the last of each stretch of time."""
    if len(points) <= POINTS_MOST:
        return list(points)
    width = max(1, -(-end * 2 // POINTS_MOST))
    kept: list[Point] = []
    for _, stretch in groupby(points, key=lambda point: point[0] // width):
        together = list(stretch)
        kept.append(max(together, key=worst))
        if kept[-1] is not together[-1]:
            kept.append(together[-1])
    return kept
