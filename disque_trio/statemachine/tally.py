"""What has happened in this node since it started, in numbers that only grow (INFO tally).

The totals belong to the node, not to its queues: a queue that is idle is dropped, and sums over
queues would shrink. CONFIG RESETSTAT leaves them alone. `counts` writes all but `Tally.at_once`,
which `shortcuts` writes.
"""

from typing import Final

import attrs

from disque_trio.statemachine.base import Millis
from disque_trio.statemachine.events import Cause

BUCKETS: Final = 24
"""Of a histogram. The last one has everything from 2 ** 22 ms (70 minutes) on."""
SAMPLED: Final = 16
"""The wait of one delivered job in so many is noted."""
LULL: Final[Millis] = 600_000
"""What has not happened for so long has ended."""


@attrs.define
class Histogram:
    """How often something took how long. Bucket `i` has what is below 2 ** i milliseconds, and not
    in an earlier bucket."""

    buckets: list[int] = attrs.Factory(lambda: [0] * BUCKETS)
    sum: Millis = 0

    def note(self, took: Millis) -> None:
        """It took that long. A clock that was set back makes a time negative, which counts as
        none."""
        took = max(took, 0)
        self.sum += took
        self.buckets[min(took.bit_length(), BUCKETS - 1)] += 1


@attrs.define
class Streak:
    """Something that has happened again and again, never `LULL` apart."""

    since: Millis
    """When it began, in Unix milliseconds."""
    before: int = 0
    """Jobs that had been delivered by then."""
    count: int = 0
    last: Millis = 0
    """When it happened last, in Unix milliseconds."""

    def note(self, wall: Millis) -> None:
        """Once more."""
        self.count += 1
        self.last = wall


@attrs.define
class Tally:
    """The totals."""

    added: int = 0
    """Jobs of clients of this node that have their copies, but for `at_once`."""
    at_once: int = 0
    """Jobs of one copy that were added and queued in one step. They are counted nowhere else."""
    queued: dict[Cause, int] = attrs.Factory(dict)
    """How often a job was queued here, by cause."""
    delivered: int = 0
    """Jobs that were handed to clients; each delivery counts."""
    transferred: int = 0
    """Jobs that were moved to other nodes. Those that came are queued with the cause import."""
    acked: dict[Cause, int] = attrs.Factory(dict)
    """Jobs whose acknowledgement became known here, by how; SETACK is another node's word."""
    nacked: int = 0
    """Jobs that clients gave back by NACK."""
    postponed: int = 0
    """How often WORKING renewed the time that a worker has."""
    dropped: dict[Cause, int] = attrs.Factory(dict)
    """Records that have gone, by cause, but for those that were collected as acknowledged."""
    copies_taken: int = 0
    """Copies that other nodes have sent, with REPLJOB or YOURJOBS, and that were kept."""
    copies_confirmed: int = 0
    """Copies of jobs added here that other nodes had confirmed when the client was answered."""
    errors: dict[bytes, int] = attrs.Factory(dict)
    """Replies of commands that are errors, by their first word."""
    refused: dict[bytes, Streak] = attrs.Factory(dict)
    """Of those in `refusals.REFUSALS`, the last streak of each."""
    again: Streak | None = None
    """Of jobs that were queued again after RETRY without an acknowledgement."""
    wait: Histogram = attrs.Factory(Histogram)
    """From when a job is due for the first time to each delivery; of one delivery in `SAMPLED`."""
    next_wait: int = SAMPLED
    """Of which delivery the wait is noted next."""
    copying: Histogram = attrs.Factory(Histogram)
    """From an ADDJOB that waits for copies to its answer."""

    def all_added(self) -> int:
        """With those of one copy."""
        return self.added + self.at_once

    def all_queued(self) -> dict[Cause, int]:
        """With those that were queued as they were added."""
        first = self.queued.get(Cause.FIRST, 0) + self.at_once
        return {Cause.FIRST: 0, **self.queued} | {Cause.FIRST: first} if first else self.queued
