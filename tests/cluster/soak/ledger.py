"""What the load was guaranteed and what came of it: every job added, every delivery, every loss.

A job whose client was answered, with two copies or more and a retry time, must be delivered. It
can be lost all the same if all its holders are killed in turn before it is, so no node is killed
while a job from before the last kill waits for its first delivery: then it has a copy left.
"""

import enum
import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

import attrs

from disque_trio.statemachine.base import JobId


class Guarantee(enum.Enum):
    """What ADDJOB's answer says of a job."""

    COPIES = "two copies or more"
    """It is delivered, whatever happens to one node at a time."""
    ONE_COPY = "one copy"
    """It is delivered unless its node is killed."""
    ASYNC = "async"
    """It is delivered unless its first node is killed before the copies arrive, or they are not."""
    ONCE = "at most once"
    """It is delivered once, or lost with its node or with the connection to its worker."""


@attrs.define(eq=False)
class Record:
    """One job that its producer knows to have been added."""

    guarantee: Guarantee
    added: float


@attrs.define(eq=False)
class Ledger:
    """Counts, and the jobs behind them."""

    jobs: dict[JobId, Record] = attrs.Factory(dict)
    deliveries: Counter[JobId] = attrs.Factory(Counter)
    provoked: Counter[JobId] = attrs.Factory(Counter)
    """Deliveries that a worker asked to be repeated, by NACK or by its death."""
    waiting: dict[JobId, float] = attrs.Factory(dict)
    """Jobs with COPIES that have not been delivered yet: when they were added, oldest first."""
    commands: Counter[str] = attrs.Factory(Counter)
    refusals: Counter[str] = attrs.Factory(Counter)
    """Errors that commands were answered with, by their first words."""
    connections_lost: int = 0
    connections_refused: int = 0
    adds_unsure: int = 0
    """ADDJOBs whose connection ended before the answer."""
    workers_died: int = 0

    def added(self, job: JobId, guarantee: Guarantee) -> None:
        """A producer has the job's id. It may have been delivered before that."""
        now = time.monotonic()
        self.jobs[job] = Record(guarantee, now)
        if guarantee is Guarantee.COPIES and job not in self.deliveries:
            self.waiting[job] = now

    def delivered(self, job: JobId) -> None:
        """A worker has the job."""
        self.deliveries[job] += 1
        self.waiting.pop(job, None)

    def has_waiting_from_before(self, moment: float) -> bool:
        """Does a job from before that moment wait for its first delivery?"""
        return next(iter(self.waiting.values()), moment) < moment

    def of(self, guarantee: Guarantee) -> Iterator[JobId]:
        """The jobs with this guarantee."""
        return (job for job, record in self.jobs.items() if record.guarantee is guarantee)

    def lost(self, guarantee: Guarantee) -> list[JobId]:
        """Those of them that have never been delivered."""
        return [job for job in self.of(guarantee) if job not in self.deliveries]

    def lost_since(self, moment: float) -> list[JobId]:
        """Jobs with any guarantee that were added after that moment and never delivered."""
        return [
            job
            for job, record in self.jobs.items()
            if record.added > moment and job not in self.deliveries
        ]

    def delivered_twice(self) -> list[JobId]:
        """At-most-once jobs that were delivered more than that."""
        return [job for job in self.of(Guarantee.ONCE) if self.deliveries[job] > 1]

    def repeated(self) -> int:
        """Deliveries that were not the first of their job."""
        return sum(self.deliveries.values()) - len(self.deliveries)

    def repeated_unasked(self) -> int:
        """Those of them that no worker had provoked: the price of nodes that die."""
        return sum(max(0, count - 1 - self.provoked[job]) for job, count in self.deliveries.items())


EXPLAINED: Final = {
    Guarantee.COPIES: "none may be lost",
    Guarantee.ONE_COPY: "killed with their only node",
    Guarantee.ASYNC: "killed with their first node before the copies arrived",
    Guarantee.ONCE: "killed with their node, or on the way to their worker; expired",
}
"""What may have become of jobs that were lost."""
