"""Counts of a file: its records, and the jobs at its end."""

from collections import Counter
from collections.abc import Iterator

import attrs

from disque_trio.statemachine.base import ACKED, JobId
from disque_trio.statemachine.journaling import described
from disque_trio.statemachine.records import LoadJob, Record, StoredResult


@attrs.define
class Last:
    """The last record of a job, if it is not a deletion."""

    number: int
    """Which of the file's records it is, from 0 on."""
    etime: int
    queue: bytes
    is_acked: bool


@attrs.define
class Tally:
    """Counts records, and keeps the last one of each job."""

    counts: Counter[str] = attrs.field(factory=Counter)
    """Records by their kind, as `aof dump` names it."""
    jobs: dict[JobId, Last] = attrs.field(factory=dict)
    kept: dict[JobId, Last] = attrs.field(factory=dict)
    """The last result of each."""

    @property
    def records(self) -> int:
        """All records."""
        return self.counts.total()

    def count(self, records: list[Record]) -> None:
        """Count the next records of the file."""
        jobs = self.jobs
        number = self.records
        for record in records:
            if isinstance(record, LoadJob):
                copy = record.copy
                jobs[copy.id] = Last(number, copy.etime, copy.queue, copy.state == ACKED)
                self.counts["LOADJOB"] += 1
            elif isinstance(record, StoredResult):
                until = record.until // 1000
                self.kept[record.id] = Last(number, until, record.queue, is_acked=True)
                self.counts["RESULT"] += 1
            else:
                jobs.pop(record.id, None)
                self.counts[described(record)[0]] += 1
            number += 1

    def left(self, now_s: float) -> Iterator[Last]:
        """Jobs and acknowledgements that a node would load."""
        return (last for last in self.jobs.values() if last.etime > now_s)

    def left_results(self, now_s: float) -> Iterator[Last]:
        """The same of results."""
        return (last for last in self.kept.values() if last.etime > now_s)


@attrs.frozen
class Sum:
    """The jobs at the end of a file, at one moment."""

    alive: int
    queues: int
    """The number of queues of these jobs."""
    acked: int
    """Acknowledged jobs whose other copies are still to be collected."""
    expired: int


def sum_up(tally: Tally, now_s: float) -> Sum:
    """Count the jobs that are left."""
    left = list(tally.left(now_s))
    queues = [last.queue for last in left if not last.is_acked]
    return Sum(
        alive=len(queues),
        queues=len(set(queues)),
        acked=len(left) - len(queues),
        expired=len(tally.jobs) - len(left),
    )
