"""Totals of a node since its start, which only grow (INFO tally).

The totals belong to the node, not to its queues: idle queues are dropped, so sums over queues would
shrink. CONFIG RESETSTAT does not reset them. `counts` writes all fields but `Tally.at_once`, which
`shortcuts` writes.
"""

from typing import Final

import attrs

from disque_trio.statemachine.base import Millis
from disque_trio.statemachine.events import Cause

BUCKETS: Final = 24
"""The number of buckets of a histogram. The last one has all values from 2 ** 22 ms (70
minutes)."""
SAMPLED: Final = 16
"""The wait of one in this many delivered jobs is recorded."""
LULL: Final[Millis] = 600_000
"""A streak ends after this time without an event."""


@attrs.define
class Histogram:
    """A histogram of durations. Bucket `i` counts those below 2 ** i milliseconds that are not in
    an earlier bucket."""

    buckets: list[int] = attrs.Factory(lambda: [0] * BUCKETS)
    sum: Millis = 0

    def note(self, took: Millis) -> None:
        """Count a duration in milliseconds. A negative one, after a clock was set back, counts as
        0."""
        took = max(took, 0)
        self.sum += took
        self.buckets[min(took.bit_length(), BUCKETS - 1)] += 1


@attrs.define
class Streak:
    """A series of events with less than `LULL` between two of them."""

    since: Millis
    """When it began, in Unix milliseconds."""
    before: int = 0
    """The number of jobs that had been delivered by then."""
    count: int = 0
    last: Millis = 0
    """The time of the last event, in Unix milliseconds."""

    def note(self, wall: Millis) -> None:
        """Count one more event."""
        self.count += 1
        self.last = wall


@attrs.define
class Tally:
    """The totals of a node."""

    added: int = 0
    """Jobs that clients have added here, except `at_once`."""
    at_once: int = 0
    """Jobs with one replica that were added and enqueued in one step. No other field counts
    these."""
    queued: dict[Cause, int] = attrs.Factory(dict)
    """The number of enqueues, by cause."""
    delivered: int = 0
    """The number of deliveries to clients."""
    transferred: int = 0
    """Jobs that were moved to other nodes. Received ones are counted in `queued`, with the cause
    import."""
    acked: dict[Cause, int] = attrs.Factory(dict)
    """Jobs that were acknowledged, by cause; SETACK is an acknowledgement at another node."""
    nacked: int = 0
    """Jobs that clients have returned by NACK."""
    postponed: int = 0
    """How often WORKING has renewed a lease."""
    dropped: dict[Cause, int] = attrs.Factory(dict)
    """Dropped jobs by cause, except those that were collected as acknowledged."""
    copies_taken: int = 0
    """Copies that other nodes have sent, with REPLJOB or YOURJOBS, and that were kept."""
    copies_confirmed: int = 0
    """Copies of jobs added here that other nodes had confirmed at the reply to ADDJOB."""
    errors: dict[bytes, int] = attrs.Factory(dict)
    """Error replies, by their first word."""
    refused: dict[bytes, Streak] = attrs.Factory(dict)
    """The last streak of each error in `refusals.REFUSALS`."""
    again: Streak | None = None
    """The last streak of requeues after RETRY, or after the end of a tie."""
    wait: Histogram = attrs.Factory(Histogram)
    """The time from when a job is first due to a delivery, for one in `SAMPLED` deliveries."""
    next_wait: int = SAMPLED
    """The number of the next delivery whose wait is recorded."""
    copying: Histogram = attrs.Factory(Histogram)
    """The time from an ADDJOB that waits for replicas to its reply."""

    def all_added(self) -> int:
        """All added jobs, including `at_once`."""
        return self.added + self.at_once

    def all_queued(self) -> dict[Cause, int]:
        """All enqueues by cause, including `at_once`."""
        first = self.queued.get(Cause.FIRST, 0) + self.at_once
        return {Cause.FIRST: 0, **self.queued} | {Cause.FIRST: first} if first else self.queued
