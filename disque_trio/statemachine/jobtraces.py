"""Traces of single jobs: which jobs are traced, and the rows that are kept. `trace` is the only
writer.

Jobs are sampled by 18 of the random bits of their ids, so all nodes select the same jobs without
communication, and a node with a higher rate selects a superset (consistent probability sampling).
Other jobs are traced by command, by queue, or after trouble.
"""

import enum
from typing import Final

import attrs

from disque_trio.statemachine.base import FOREVER, JobId, Millis
from disque_trio.statemachine.pattern import matches

BITS: Final = 18
MOST: Final = 1 << BITS
"""The lowest rate of sampling: one in this many jobs."""
ROWS_MOST: Final = 400
FIRST_KEPT: Final = 100
"""If a job has more rows than `ROWS_MOST`, this many of the first rows are kept, and the newest."""
BYTES_MOST: Final = 16 << 20
ROW_BYTES: Final = 400
"""The size of a row without its detail, as measured."""
TROUBLES_A_SECOND: Final = 16
"""The maximum number of jobs per second that begin to be traced because of trouble: a worker that
dies may leave many."""
_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_NONE: Final = bytes(256)
_ALL: Final = b"\1" * 256


class Reason(enum.Enum):
    """Why a job is traced."""

    SAMPLED = b"sampled"
    QUEUE = b"queue"
    ASKED = b"asked"
    TROUBLE = b"trouble"


@attrs.define(eq=False, weakref_slot=False)
class Entry:
    """One row of a job's trace, as in `tracing.rows`."""

    number: int
    """The number of the row, from 1 for each job."""
    time: int
    """By the node's wall clock, in Unix microseconds."""
    mono: Millis
    kind: str
    client: str
    peer: str
    cause: str
    detail: str


@attrs.define(eq=False, weakref_slot=False)
class JobTrace:
    """The trace of one job, which may not have arrived at this node yet."""

    reason: Reason
    queue: bytes = b""
    until: Millis = FOREVER
    """When the trace ends, on the monotonic clock."""
    rows: list[Entry] = attrs.Factory(list)
    last: int = 0
    """The number of its last row. Rows that are not in `rows` were omitted."""
    size: int = ROW_BYTES

    def begin(self, queue: bytes) -> None:
        """Set the job's queue, when the job arrives here."""
        self.queue = queue

    def end_at(self, until: Millis) -> None:
        """Set the end of the trace."""
        self.until = until

    def add(self, row: Entry) -> int:
        """Add a row, which may replace an older one. Returns the change in size, in bytes."""
        weight = ROW_BYTES + len(row.detail)
        if len(self.rows) >= ROWS_MOST:
            weight -= ROW_BYTES + len(self.rows.pop(FIRST_KEPT).detail)
        self.rows.append(row)
        self.last = row.number
        self.size += weight
        return weight


@attrs.define(eq=False, weakref_slot=False)
class JobTraces:
    """All traces of the node."""

    is_on: bool = False
    """May there be anything to trace? If not, no other field is checked."""
    sample: int = 0
    """One in this many jobs is traced; 0 is none, and none in trouble."""
    first: bytes = _NONE
    """Indexed by the first random character of an id: 1 if a job with it may be traced."""
    queues: dict[bytes, int] = attrs.Factory(dict)
    """By glob pattern: one in this many jobs of the matching queues is traced."""
    jobs: dict[JobId, JobTrace] = attrs.Factory(dict)
    """The traces, the oldest first."""
    ended: dict[JobId, JobTrace] = attrs.Factory(dict)
    """The traces of `jobs` that are not at this node; they are dropped first."""
    size: int = 0
    """The estimated size, in bytes."""
    second: Millis = 0
    troubles: int = 0
    """How many jobs got into trouble in that second."""

    def set_sample(self, sample: int) -> None:
        """Apply a new `trace-sample`, for jobs that arrive from now on."""
        self.sample = sample
        self._review()

    def set_queue(self, glob: bytes, rate: int) -> None:
        """Also trace one in `rate` jobs of the queues that match; 0 removes the pattern."""
        if rate:
            self.queues[glob] = rate
        else:
            self.queues.pop(glob, None)
        self._review()

    def _review(self) -> None:
        self.first = _ALL if self.queues else firsts(self.sample)
        self.is_on = bool(self.sample or self.queues or self.jobs)

    def choice(self, job_id: JobId, queue: bytes | None) -> Reason | None:
        """Why a new job is traced, or None. Only called if `first` allows it."""
        drawn = draw(job_id)
        if drawn < 0:
            return None
        if self.sample and drawn < MOST // self.sample:
            return Reason.SAMPLED
        for glob, rate in self.queues.items():
            if queue is not None and drawn < MOST // rate and matches(glob, queue):
                return Reason.QUEUE
        return None

    def may_trouble(self, now: Millis) -> bool:
        """May one more job in trouble begin to be traced? Counts the job."""
        second = now // 1000
        if second != self.second:
            self.second, self.troubles = second, 0
        self.troubles += 1
        return self.troubles <= TROUBLES_A_SECOND

    def open(self, job_id: JobId, reason: Reason) -> JobTrace:
        """The job's trace, existing or new. A new one may replace others."""
        found = self.jobs.get(job_id)
        if found is None:
            self._make_room(ROW_BYTES)
            found = self.jobs[job_id] = JobTrace(reason)
            self.size += ROW_BYTES
            self.is_on = True
        self.ended.pop(job_id, None)
        return found

    def end(self, job_id: JobId) -> None:
        """Mark the trace of a job that is not at this node, if it still exists."""
        if job_id in self.jobs:
            self.ended[job_id] = self.jobs[job_id]

    def put(self, kept: JobTrace, row: Entry) -> None:
        """Add a row. If there is no room, traces of other jobs are dropped, or else this one."""
        self.size += kept.add(row)
        self._make_room(0)

    def _make_room(self, size: int) -> None:
        while self.jobs and self.size + size > BYTES_MOST:
            job_id = next(iter(self.ended or self.jobs))
            self.ended.pop(job_id, None)
            self.size -= self.jobs.pop(job_id).size


def sampling(sample: int) -> JobTraces:
    """No traces yet, with this `trace-sample`."""
    traces = JobTraces()
    traces.set_sample(sample)
    return traces


def is_chosen(job_id: bytes, sample: int) -> bool:
    """Is this job in a sample of one in `sample` jobs? False for anything that is not an id."""
    return len(job_id) > 13 and 0 <= draw(job_id) < MOST // sample


def draw(job_id: JobId) -> int:
    """A number below `MOST` from an id's random bits, the same on all nodes; negative for most ids
    of another form."""
    digit = _ALPHABET.find
    return (digit(job_id[11]) << 12) + (digit(job_id[12]) << 6) + digit(job_id[13])


def firsts(sample: int) -> bytes:
    """`JobTraces.first` for a sample of this size."""
    if sample == 0:
        return _NONE
    limit = MOST // sample
    found = bytearray(256)
    for number, letter in enumerate(_ALPHABET):
        found[letter] = number * 4096 < limit
    return bytes(found)
