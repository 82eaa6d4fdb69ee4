"""Traces of single jobs: which jobs are chosen, and what is kept of them. Owns `JobTraces` and
`JobTrace`, as does `trace`, which decides what is written.

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


class Why(enum.Enum):
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

    why: Why
    queue: bytes = b""
    until: Millis = FOREVER
    """When it ends, on the monotonic clock."""
    rows: list[Entry] = attrs.Factory(list)
    last: int = 0
    """The number of its last row. Those that are not in `rows` were left out."""
    size: int = 0


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
    """Those of `jobs` that have left this node: they go first."""
    size: int = 0
    """Bytes, estimated."""
    second: Millis = 0
    troubles: int = 0
    """How many jobs in trouble began to be traced in that second."""


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


def sampling(sample: int) -> JobTraces:
    """None yet, with this `trace-sample`."""
    traces = JobTraces()
    set_sample(traces, sample)
    return traces


def set_sample(traces: JobTraces, sample: int) -> None:
    """`trace-sample` is this from now on; for jobs that come."""
    traces.sample = sample
    _review(traces)


def set_queue(traces: JobTraces, glob: bytes, rate: int) -> None:
    """Choose one job of so many of these queues too; 0 is none any more."""
    if rate:
        traces.queues[glob] = rate
    else:
        traces.queues.pop(glob, None)
    _review(traces)


def _review(traces: JobTraces) -> None:
    traces.first = _ALL if traces.queues else firsts(traces.sample)
    traces.is_on = bool(traces.sample or traces.queues or traces.jobs)


def choice(traces: JobTraces, job_id: JobId, queue: bytes | None) -> Why | None:
    """Is a job that comes to be traced, and why? To be asked if `first` says that it may be."""
    drawn = draw(job_id)
    if drawn < 0:
        return None
    if traces.sample and drawn < MOST // traces.sample:
        return Why.SAMPLED
    for glob, rate in traces.queues.items():
        if queue is not None and drawn < MOST // rate and matches(glob, queue):
            return Why.QUEUE
    return None


def open_trace(traces: JobTraces, job_id: JobId, why: Why, until: Millis = FOREVER) -> JobTrace:
    """Its trace, new or not."""
    found = traces.jobs.get(job_id)
    if found is None:
        found = traces.jobs[job_id] = JobTrace(why, until=until)
        traces.size += ROW_BYTES
        traces.is_on = True
    traces.ended.pop(job_id, None)
    return found


def put(traces: JobTraces, trace: JobTrace, row: Entry) -> None:
    """Add a row, at the cost of older ones."""
    rows, weight = trace.rows, ROW_BYTES + len(row.detail)
    if len(rows) >= ROWS_MOST:
        weight -= ROW_BYTES + len(rows.pop(FIRST_KEPT).detail)
    rows.append(row)
    trace.last = row.number
    trace.size += weight
    traces.size += weight
    while traces.size > BYTES_MOST:
        _forget_one(traces)


def _forget_one(traces: JobTraces) -> None:
    """The job that has left this node first, or the one whose trace is the oldest."""
    job_id = next(iter(traces.ended or traces.jobs))
    traces.ended.pop(job_id, None)
    traces.size -= traces.jobs.pop(job_id).size + ROW_BYTES
