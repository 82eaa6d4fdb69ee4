"""The history of a node: rates and depths of the last hour and the last day, and events in that
time.

A sample is taken every ten seconds, as part of a batch: a node without work takes it with its next
batch, at the latest at its next heartbeat.
"""

import re
from collections import deque
from collections.abc import Iterator
from typing import Final

import attrs

from disque_trio.statemachine.base import FAIL, Millis, Now
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.state import NodeState

FINE_S: Final = 10
COARSE: Final = 30
"""The number of fine samples in one coarse sample: five minutes."""
FINE_MOST: Final = 360
COARSE_MOST: Final = 288
_COUNTED: Final = 10_000
"""Up to this number of queues, their jobs are counted; with more, that would take milliseconds."""
FIELDS: Final = (
    "at", "added", "delivered", "acked", "again", "refused", "jobs", "queued", "delayed", "wait_ms",
)  # fmt: skip
"""Unix seconds; rates per second (`again` is requeues, `refused` is error replies); current numbers
of jobs; the mean wait of delivered jobs."""
LATELY: Final[Millis] = 600_000
"""The time for which INFO shows the longest standstill."""
MARKS_MOST: Final = 100
MARK_FIELDS: Final = ("at", "kind", "what")
"""Unix seconds; one of `failed`, `back`, `done`, `order`, `paused`, `leaving` and `late`; the node,
number of queues, workers, command or duration."""
_COMMANDS: Final[dict[str, Millis]] = {
    "purge": 0,
    "redrive": 0,
    "cancel": 600_000,
    "deljob": 600_000,
}
"""Commands that are marked in the charts, each with the time without a call after which the next
one is marked: programs may call CANCEL and DELJOB continuously. Other commands are detected by
their effects."""
ORDERS: Final = b"disque-trio.control."
"""The prefix of queues with the orders of a worker (`worker.operating.notes`); the worker's name, a
dot and a key follow."""
_NAMED: Final = 3
"""The maximum number of workers in one mark."""
_LETTERS: Final = 64
"""The maximum length of their names in it."""
_UNUSUAL: Final = re.compile(r"[^\w .@:/-]", re.ASCII)
_RATES: Final = 5
Sample = tuple[float | None, ...]


@attrs.define(eq=False)
class History:
    """The history of one node since its start."""

    state: NodeState
    due: Millis = 0
    """When the next sample is taken, by the monotonic clock."""
    _begun: float = 0.0
    _fine: deque[Sample] = attrs.field(factory=lambda: deque(maxlen=FINE_MOST))
    _coarse: deque[Sample] = attrs.field(factory=lambda: deque(maxlen=COARSE_MOST))
    _totals: tuple[int, ...] = ()
    _at: Millis = 0
    _number: int = 0
    _marks: deque[tuple[float, str, str]] = attrs.field(factory=lambda: deque(maxlen=MARKS_MOST))
    _standing: dict[tuple[str, str], int] = attrs.Factory(dict)
    """The conditions at the last sample, and the number of calls of commands."""
    _ordered: dict[bytes, int] = attrs.Factory(dict)
    """The number of orders, by queue."""
    _called: dict[str, Millis] = attrs.Factory(dict)
    """The time of the last sample before which each command had been called."""
    _late: deque[tuple[Millis, Millis]] = attrs.field(factory=lambda: deque(maxlen=MARKS_MOST))
    """The end of each standstill, by the monotonic clock, and its duration."""

    def late(self, now: Now, stood: Millis) -> None:
        """Record that a batch begins too late, after a standstill of `stood` ms."""
        if self._totals:
            self._late.append((now.mono, stood))
            self._mark(now, "late", f"{stood / 1000:.1f}s")

    def standstill(self, mono: Millis) -> tuple[Millis, Millis]:
        """The longest recent standstill, and how long ago it ended, in milliseconds; zeros for
        none."""
        lately = [(stood, mono - at) for at, stood in self._late if mono - at <= LATELY]
        return max(lately, default=(0, 0))

    def _mark(self, now: Now, kind: str, what: str) -> None:
        self._marks.append((round(now.wall / 1000), kind, what))

    def _look_around(self, now: Now) -> None:
        """Mark changes since the last sample."""
        nodes = self.state.cluster.nodes.values()
        peers = {(e.name or e.id[:8]).decode(errors="replace"): e.flags & FAIL for e in nodes}
        after = self._now(peers)
        before, self._standing = self._standing, after
        orders = self._new_orders()
        if not self._totals:  # the first sample has no previous state
            return
        if orders:
            self._mark(now, "order", orders)
        for (kind, what), many in after.items():
            if many > before.get((kind, what), 0) and self._is_news(now, kind, what):
                self._mark(now, kind, what)
        for kind, what in sorted(before.keys() - after.keys()):
            if kind == "failed" and what in peers:
                self._mark(now, "back", what)

    def _now(self, peers: dict[str, int]) -> dict[tuple[str, str], int]:
        """The current conditions, and the number of calls of commands."""
        state = self.state
        found = {("failed", name): 1 for name, has_failed in peers.items() if has_failed}
        if state.cluster.is_leaving:
            found["leaving", ""] = 1
        if len(state.queues) <= _COUNTED:
            paused = sum(1 for each in state.queues.values() if each.paused)
            found |= {("paused", str(paused)): 1} if paused else {}
        for name in _COMMANDS:
            if name in state.stats.commands:
                found["done", name.upper()] = state.stats.commands[name].calls
        return found

    def _new_orders(self) -> str:
        """The workers that have received orders since the last sample. Any client may add a queue
        with such a name, so unusual characters are replaced."""
        queues = self.state.queues
        names = queues if len(queues) <= _COUNTED else ()
        after = {name: queues[name].jobs_in for name in names if name.startswith(ORDERS)}
        before, self._ordered = self._ordered, after
        new = [name for name, many in after.items() if many > before.get(name, 0)]
        workers = [name[len(ORDERS) :].rpartition(b".")[0][:_LETTERS] for name in new]
        named = [_UNUSUAL.sub("?", each.decode("ascii", "replace")) for each in workers[:_NAMED]]
        more = f" and {len(workers) - _NAMED} more" if len(workers) > _NAMED else ""
        return ", ".join(named) + more

    def _is_news(self, now: Now, kind: str, what: str) -> bool:
        """Is it a new condition, and not a command that is called continuously?"""
        quiet = _COMMANDS[what.lower()] if kind == "done" else 0
        last = self._called.get(what) if quiet else None
        if quiet:
            self._called[what] = now.mono
        return last is None or now.mono - last >= quiet

    def look(self, now: Now) -> None:
        """Take a sample."""
        self.due = now.mono + FINE_S * 1000
        totals, before = self._read(), self._totals
        self._look_around(now)
        seconds = (now.mono - self._at) / 1000
        self._totals, self._at = totals, now.mono
        if not before:
            self._begun = now.wall / 1000
            return
        more = [after - earlier for after, earlier in zip(totals, before, strict=True)]
        rates = [round(max(each, 0) / seconds, 2) for each in more[:_RATES]]
        waits, waited = more[_RATES:]
        wait = round(waited / waits, 1) if waits > 0 else None
        self._fine.append((round(now.wall / 1000), *rates, *self._depths(), wait))
        self._number += 1
        if self._number % COARSE == 0:
            self._coarse.append(_mean(list(self._fine)[-COARSE:]))

    def _read(self) -> tuple[int, ...]:
        tally = self.state.tally
        queued = tally.all_queued()
        return (
            tally.all_added(),
            tally.delivered,
            sum(tally.acked.values()) - tally.acked.get(Cause.SETACK, 0),
            sum(queued.values()) - queued.get(Cause.FIRST, 0) - queued.get(Cause.IMPORT, 0),
            sum(tally.errors.values()),
            sum(tally.wait.buckets),
            tally.wait.sum,
        )

    def _depths(self) -> tuple[int | None, ...]:
        state = self.state
        queues = state.queues
        queued = sum(map(len, queues.values())) if len(queues) <= _COUNTED else None
        return len(state.jobs), queued, sum([each.number for each in state.delayed.values()])

    def fields(self) -> Iterator[tuple[str, str]]:
        """The fields of INFO."""
        yield "history_since", f"{self._begun:.0f}"
        yield "history_fields", ",".join(FIELDS)
        yield f"history_{FINE_S}s", _text(self._fine)
        yield f"history_{FINE_S * COARSE}s", _text(self._coarse)
        yield "history_mark_fields", ",".join(MARK_FIELDS)
        yield "history_marks", ";".join(f"{at:.0f},{kind},{what}" for at, kind, what in self._marks)


def _mean(samples: list[Sample]) -> Sample:
    """A sample with the latest time, and means of known values."""
    columns = [
        [each for each in column if each is not None] for column in zip(*samples, strict=True)
    ]
    means = [round(sum(known) / len(known), 2) if known else None for known in columns]
    return samples[-1][0], *means[1:]


def _text(samples: deque[Sample]) -> str:
    """Samples, separated by semicolons; unknown values are empty."""
    return ";".join(
        ",".join("" if each is None else f"{each:.12g}" for each in sample) for sample in samples
    )
