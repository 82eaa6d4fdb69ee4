"""What a file comes to: its records counted, and the jobs that are alive at its end."""

import attrs

from disque_trio.statemachine.base import JobId
from disque_trio.statemachine.records import LoadJob, Record


@attrs.define
class Tally:
    """Counts records. Of each job that is alive it knows the record that says so last."""

    loads: int = 0
    deletes: int = 0
    jobs: dict[JobId, tuple[int, int, bytes]] = attrs.field(factory=dict)
    """Number of its last record, when it expires (Unix seconds), its queue."""

    @property
    def records(self) -> int:
        """All records."""
        return self.loads + self.deletes

    def count(self, records: list[Record]) -> None:
        """Take the next records of the file."""
        jobs = self.jobs
        number = self.records
        for record in records:
            if isinstance(record, LoadJob):
                copy = record.copy
                jobs[copy.id] = (number, copy.etime, copy.queue)
                self.loads += 1
            else:
                jobs.pop(record.id, None)
                self.deletes += 1
            number += 1

    def alive(self, now_s: float) -> int:
        """Jobs that are neither deleted nor expired."""
        return sum(etime > now_s for _number, etime, _queue in self.jobs.values())

    def queues(self, now_s: float) -> int:
        """In how many queues these are."""
        return len({queue for _number, etime, queue in self.jobs.values() if etime > now_s})
