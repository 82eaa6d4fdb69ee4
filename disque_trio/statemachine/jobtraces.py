"""Traces of single jobs: which jobs are chosen, and what is kept of them. `trace` writes it all.

A job is chosen by 18 of the random bits of its id, so all nodes choose the same ones without a
word; a node that chooses more of them chooses those of all others too. This is consistent
probability sampling. Others are chosen by hand, by their queue, or because they get into trouble.
"""

import enum
from typing import Final

import attrs

from disque_trio.statemachine.base import FOREVER, JobId, Millis
from disque_trio.statemachine.pattern import matches

BITS: Final = 18
MOST: Final = 1 << BITS
"""The smallest sample: one job of so many."""
ROWS_MOST: Final = 400
FIRST_KEPT: Final = 100
"""Of a job with more rows these stay, and the newest."""
BYTES_MOST: Final = 16 << 20
ROW_BYTES: Final = 400
"""Of a row without its detail, as measured."""
TROUBLES_A_SECOND: Final = 16
"""How many jobs in trouble begin to be traced each second: a worker that dies may leave many."""
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
    """From 1, for each job."""
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
    """What is kept of one job. It may not have come to this node yet."""

    reason: Reason
    queue: bytes = b""
    until: Millis = FOREVER
    """When it ends, on the monotonic clock."""
    rows: list[Entry] = attrs.Factory(list)
    last: int = 0
    """The number of its last row. Those that are not in `rows` were left out."""
    size: int = ROW_BYTES

    def begin(self, queue: bytes) -> None:
        """The job is here, and of this queue."""
        self.queue = queue

    def end_at(self, until: Millis) -> None:
        """Trace it up to this moment."""
        self.until = until

    def add(self, row: Entry) -> int:
        """Add a row, at the cost of older ones. Returns the bytes that it takes."""
        weight = ROW_BYTES + len(row.detail)
        if len(self.rows) >= ROWS_MOST:
            weight -= ROW_BYTES + len(self.rows.pop(FIRST_KEPT).detail)
        self.rows.append(row)
        self.last = row.number
        self.size += weight
        return weight


@attrs.define(eq=False, weakref_slot=False)
class JobTraces:
    """All that are kept."""

    is_on: bool = False
    """May there be anything to write? Everything else is looked at only then."""
    sample: int = 0
    """One job of so many is chosen; 0 is none, and none that is in trouble."""
    first: bytes = _NONE
    """By the first random character of an id: 1 if a job with it may be chosen."""
    queues: dict[bytes, int] = attrs.Factory(dict)
    """One job of so many of the queues that match."""
    jobs: dict[JobId, JobTrace] = attrs.Factory(dict)
    """The one that began first first."""
    ended: dict[JobId, JobTrace] = attrs.Factory(dict)
    """Those of `jobs` that are not at this node: they go first."""
    size: int = 0
    """Bytes, estimated."""
    second: Millis = 0
    troubles: int = 0
    """How many jobs in trouble began to be traced in that second."""

    def set_sample(self, sample: int) -> None:
        """`trace-sample` is this from now on; for jobs that come."""
        self.sample = sample
        self._review()

    def set_queue(self, glob: bytes, rate: int) -> None:
        """Choose one job of so many of these queues too; 0 is none any more."""
        if rate:
            self.queues[glob] = rate
        else:
            self.queues.pop(glob, None)
        self._review()

    def _review(self) -> None:
        self.first = _ALL if self.queues else firsts(self.sample)
        self.is_on = bool(self.sample or self.queues or self.jobs)

    def choice(self, job_id: JobId, queue: bytes | None) -> Reason | None:
        """Is a job that comes to be traced, and why? To be asked if `first` says that it may be."""
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
        """May one more job in trouble begin to be traced? It is counted."""
        second = now // 1000
        if second != self.second:
            self.second, self.troubles = second, 0
        self.troubles += 1
        return self.troubles <= TROUBLES_A_SECOND

    def open(self, job_id: JobId, reason: Reason) -> JobTrace:
        """Its trace, new or not. A new one may cost others theirs."""
        found = self.jobs.get(job_id)
        if found is None:
            self._make_room(ROW_BYTES)
            found = self.jobs[job_id] = JobTrace(reason)
            self.size += ROW_BYTES
            self.is_on = True
        self.ended.pop(job_id, None)
        return found

    def end(self, job_id: JobId) -> None:
        """The job is not here, or not any more. Its last row may have cost it its own trace."""
        if job_id in self.jobs:
            self.ended[job_id] = self.jobs[job_id]

    def put(self, kept: JobTrace, row: Entry) -> None:
        """Add a row, at the cost of other jobs; if there are none, of this one."""
        self.size += kept.add(row)
        self._make_room(0)

    def _make_room(self, size: int) -> None:
        while self.jobs and self.size + size > BYTES_MOST:
            job_id = next(iter(self.ended or self.jobs))
            self.ended.pop(job_id, None)
            self.size -= self.jobs.pop(job_id).size


def sampling(sample: int) -> JobTraces:
    """None yet, with this `trace-sample`."""
    traces = JobTraces()
    traces.set_sample(sample)
    return traces


def is_chosen(job_id: bytes, sample: int) -> bool:
    """Is this job one of those that are chosen, of so many one? Nothing else than an id is."""
    return len(job_id) > 13 and 0 <= draw(job_id) < MOST // sample


def draw(job_id: JobId) -> int:
    """A number below `MOST`, the same on all nodes; negative for most ids that are not of this
    form."""
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
