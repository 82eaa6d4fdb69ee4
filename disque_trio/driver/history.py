"""Rates and depths of the last hour and the last day, for whoever looks at the node later.

A sample each ten seconds, taken in a batch that comes anyway: a node without work takes none until
it has some, at the latest with its next heartbeat.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final

import attrs

from disque_trio.statemachine.base import Millis, Now
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.state import NodeState

FINE_S: Final = 10
COARSE: Final = 30
"""Fine samples of which one coarse sample is made: five minutes."""
FINE_MOST: Final = 360
COARSE_MOST: Final = 288
_COUNTED: Final = 10_000
"""Queues whose jobs are counted; with more of them that would take milliseconds."""
FIELDS: Final = (
    "at", "added", "delivered", "acked", "again", "refused", "jobs", "queued", "delayed", "wait_ms",
)  # fmt: skip
"""Unix seconds; jobs and refusals a second; jobs now; how long a delivered job had waited."""
_RATES: Final = 5
Sample = tuple[float | None, ...]


@attrs.define(eq=False)
class History:
    """Of one node since its start."""

    state: NodeState
    due: Millis = 0
    """When the next sample is taken, by the monotonic clock."""
    _begun: float = 0.0
    _fine: deque[Sample] = attrs.field(factory=lambda: deque(maxlen=FINE_MOST))
    _coarse: deque[Sample] = attrs.field(factory=lambda: deque(maxlen=COARSE_MOST))
    _totals: tuple[int, ...] = ()
    _at: Millis = 0
    _number: int = 0

    def look(self, now: Now) -> None:
        """Take a sample."""
        self.due = now.mono + FINE_S * 1000
        totals, before = self._read(), self._totals
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
        """For INFO."""
        yield "history_since", f"{self._begun:.0f}"
        yield "history_fields", ",".join(FIELDS)
        yield f"history_{FINE_S}s", _text(self._fine)
        yield f"history_{FINE_S * COARSE}s", _text(self._coarse)


def _mean(samples: list[Sample]) -> Sample:
    """The latest moment, and means of what is known."""
    columns = [
        [each for each in column if each is not None] for column in zip(*samples, strict=True)
    ]
    means = [round(sum(known) / len(known), 2) if known else None for known in columns]
    return samples[-1][0], *means[1:]


def _text(samples: deque[Sample]) -> str:
    """Samples with a semicolon between them; what is unknown is empty."""
    return ";".join(
        ",".join("" if each is None else f"{each:.12g}" for each in sample) for sample in samples
    )
