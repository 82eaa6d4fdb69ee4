"""Jobs that have ended here, the latest ones: what they were, and what has become of them.

The step that ends a job only appends a row, with the job itself. Rows become records in sheets of
256, whose fields lie side by side in few objects: 150 bytes each, where a job takes 400. `pressure`
has this done ten times a second, for a limited number of rows, so that it costs the same whatever
the load is. No record outlives the process (docs/memory.md, "Jobs that have ended").

Owns the fields of `Endings`.
"""

import struct
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Final

import attrs

from disque_trio.statemachine.base import JOB_ID_LENGTH, JobId, Millis
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.extensions import NO_ERROR, Extensions, LastError
from disque_trio.statemachine.job import STAMPS, Job

SHEET: Final = 256
"""Records of a sheet."""
HEAD: Final = 64
"""So many bytes of a body are kept."""
ROWS_AT_ONCE: Final = 4096
"""Of rows, how many a step of a search looks at: some tenths of a millisecond."""
SHEETS_AT_ONCE: Final = 64
"""The same of sheets."""
_AT_ONCE: Final = 4
"""Sheets that are made in one review: at most a few per cent of a processor in the pure form."""
_MOST_SAID: Final = 512
"""And so many of an error, and of the reason of a dead job."""
ROW_BYTES: Final = 600
"""What a row weighs, with its job; the job may be in the table still, and be counted there, too."""
RECORD_BYTES: Final = 90
"""What a record weighs, without its body and what was said of it."""
_SAID_BYTES: Final = 250
_NAME_BYTES: Final = 40

DROPPED: Final = b"dropped"
OUTCOMES: Final[dict[Cause, bytes]] = {
    Cause.ACKJOB: b"acknowledged",
    Cause.FASTACK: b"acknowledged",
    Cause.SETACK: b"acknowledged",
    Cause.PURGE: b"purged",
    Cause.CANCEL: b"cancelled",
    Cause.REPLACED: b"replaced",
    Cause.YIELDED: b"replaced",
    Cause.EXPIRED: b"expired",
    Cause.EVICTED: b"evicted",
    Cause.CLIENT_DELJOB: b"deleted",
    Cause.DELJOB: b"deleted",
}
"""By what ended it, if it was not dead. A job that has left for another node has not ended."""
_BY_CLIENT: Final = (Cause.ACKJOB, Cause.FASTACK, Cause.CLIENT_DELJOB)

Row = tuple[Job, Cause, bytes, Millis]
"""The job; what has ended it; the last client that has acknowledged or deleted any; Unix time."""


@attrs.define(eq=False, weakref_slot=False)
class Said:
    """What only few jobs have."""

    key: bytes | None = None
    error: LastError = NO_ERROR
    reason: bytes = b""
    """Why it was dead."""
    group: bytes | None = None


NOTHING: Final = Said()


@attrs.define(eq=False, weakref_slot=False)
class Record:
    """One job that has ended. Times are Unix milliseconds."""

    id: JobId
    queue: bytes
    ctime: int
    """The creation stamp (`Job.ctime`): jobs of one millisecond are told apart by it."""
    ended: Millis
    outcome: bytes
    by: bytes
    """The name or the address of the client that has ended it; empty if none of this node has."""
    nacks: int
    deliveries: int
    head: bytes
    """The beginning of its body; the whole body if that is shorter than `HEAD`."""
    said: Said


@attrs.define(eq=False, weakref_slot=False)
class Sheet:
    """Some records, the oldest first."""

    first: int
    """The number of the oldest. Records are numbered from 1 since the start of the process."""
    ids: bytes
    queues: list[bytes]
    outcomes: list[bytes]
    by: list[bytes]
    ctimes: bytes
    ended: bytes
    tries: bytes
    """The NACKs of all, then their redeliveries."""
    heads: bytes
    sizes: bytes
    """Of the heads."""
    said: dict[int, Said]
    weight: int

    @property
    def count(self) -> int:
        """How many records these are."""
        return len(self.queues)

    def made_at(self, at: int) -> Millis:
        """When this one was added."""
        return self.ctime(at) // STAMPS

    def ctime(self, at: int) -> int:
        """The creation stamp of this one."""
        [ctime] = struct.unpack_from("<Q", self.ctimes, 8 * at)
        return int(ctime)

    def find(self, job_id: JobId) -> int:
        """Where this job is; -1 if it is not here. Of several records the latest."""
        at = self.ids.rfind(job_id)
        while at > 0 and at % JOB_ID_LENGTH:
            at = self.ids.rfind(job_id, 0, at + JOB_ID_LENGTH - 1)
        return at // JOB_ID_LENGTH if at >= 0 else -1

    def record(self, at: int) -> Record:
        """This one."""
        [ended] = struct.unpack_from("<Q", self.ended, 8 * at)
        [nacks] = struct.unpack_from("<H", self.tries, 2 * at)
        [deliveries] = struct.unpack_from("<H", self.tries, 2 * (self.count + at))
        start = sum(self.sizes[:at])
        return Record(
            self.ids[at * JOB_ID_LENGTH : (at + 1) * JOB_ID_LENGTH],
            self.queues[at],
            self.ctime(at),
            ended,
            self.outcomes[at],
            self.by[at],
            nacks,
            deliveries,
            self.heads[start : start + self.sizes[at]],
            self.said.get(at, NOTHING),
        )


class Endings:
    """The latest records of a node."""

    __slots__ = ("_first", "_sealed", "_sheets", "_weight", "limit", "rows")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        """How many are kept at most."""
        self.rows: list[Row] | None = [] if limit else None
        """What has no records yet, the oldest first; None if none are kept."""
        self._sheets: deque[Sheet] = deque()
        self._first = 1
        """The number of the first row."""
        self._sealed = 0
        """How many records there are in sheets."""
        self._weight = 0

    @property
    def count(self) -> int:
        """How many there are."""
        return self._sealed + len(self.rows or ())

    @property
    def weight(self) -> int:
        """Bytes."""
        return self._weight + len(self.rows or ()) * ROW_BYTES

    @property
    def end(self) -> int:
        """The number of the next one."""
        return self._first + len(self.rows or ())

    def configure(self, limit: int) -> None:
        """Keep so many from now on."""
        self.limit = limit
        if not limit:
            self.forget_all()
            self.rows = None
        elif self.rows is None:
            self.rows = []

    def forget_all(self) -> None:
        """Drop all of them."""
        self._first = self.end
        self._sheets.clear()
        self._sealed = self._weight = 0
        if self.rows is not None:
            self.rows = []

    def fit(self, room: int) -> None:
        """Make records of some rows, and drop the oldest beyond the limit and beyond so many
        bytes."""
        self._seal(_AT_ONCE)
        rows = self.rows
        while self._sheets and (self.count > self.limit or self.weight > room):
            sheet = self._sheets.popleft()
            self._sealed -= sheet.count
            self._weight -= sheet.weight
        if rows:
            excess = max(self.count - self.limit, (self.weight - room) // ROW_BYTES)
            if excess > 0:
                self._first += len(rows[:excess])
                del rows[:excess]

    def _seal(self, most: int) -> None:
        rows = self.rows
        if rows is None:
            return
        count = min(len(rows) // SHEET, most)
        for number in range(count):
            sheet = _sheet(self._first, rows[number * SHEET : (number + 1) * SHEET])
            self._sheets.append(sheet)
            self._first += SHEET
            self._sealed += SHEET
            self._weight += sheet.weight
        del rows[: count * SHEET]

    def newest(self, before: int) -> Iterator[Sheet]:
        """All sheets with records before that number, the newest first. Rows stay rows: there may
        be a million of them after a burst."""
        high = before - self._first
        while high > 0 and self.rows:
            low = max(min(high, len(self.rows)) - SHEET, 0)
            yield _sheet(self._first + low, self.rows[low:high])
            high = low
        newer = max(self._first - before, 0) // SHEET
        for at in range(len(self._sheets) - newer, 0, -1):
            yield self._sheets[at - 1]

    def find(self, job_id: JobId, before: int) -> tuple[Record | None, int]:
        """The latest record of this job, if it is one of the next `ROWS_AT_ONCE` before that
        number; else the number before which to go on, 0 at the end."""
        rows = self.rows or ()
        high = min(before - self._first, len(rows))
        if high > 0:
            low = max(high - ROWS_AT_ONCE, 0)
            for at in range(high - 1, low - 1, -1):
                if rows[at][0].id == job_id:
                    return _sheet(self._first + at, [rows[at]]).record(0), 0
            return None, self._first + low
        for sheet in islice(self.newest(before), SHEETS_AT_ONCE):
            before = sheet.first
            at = sheet.find(job_id)
            if at >= 0:
                return sheet.record(at), 0
        oldest = self._first - self._sealed
        return None, before if before > oldest else 0


def head(job: Job) -> bytes:
    """The beginning of its body."""
    body = job.body
    return body[:HEAD] if isinstance(body, bytes) else b""


def _sheet(first: int, rows: list[Row]) -> Sheet:
    count = len(rows)
    jobs = [row[0] for row in rows]
    queues = [job.queue or b"" for job in jobs]
    by = [row[2] if row[1] in _BY_CLIENT else b"" for row in rows]
    heads = [head(job) for job in jobs]
    said: dict[int, Said] = {}
    weight = count * RECORD_BYTES
    for at, job in enumerate(jobs):
        if job.extensions is not None:
            told = _said(job.extensions)
            if told is not NOTHING:
                said[at] = told
                weight += _SAID_BYTES + len(told.key or b"") + len(told.group or b"")
                weight += len(told.error.text) + len(told.reason)
    joined = b"".join(heads)
    names = {**dict.fromkeys(queues), **dict.fromkeys(by)}
    return Sheet(
        first,
        b"".join([job.id for job in jobs]),
        queues,
        [_outcome(row[0], row[1]) for row in rows],
        by,
        struct.pack(f"<{count}Q", *[job.ctime for job in jobs]),
        struct.pack(f"<{count}Q", *[row[3] for row in rows]),
        struct.pack(
            f"<{2 * count}H", *[job.nacks for job in jobs], *[job.deliveries for job in jobs]
        ),
        joined,
        bytes([len(each) for each in heads]),
        said,
        weight + len(joined) + sum([len(name) + _NAME_BYTES for name in names]),
    )


def _outcome(job: Job, cause: Cause) -> bytes:
    if job.extensions is not None and job.extensions.dead.is_dead:
        return DROPPED
    return OUTCOMES[cause]


def _said(more: Extensions) -> Said:
    reason = more.dead.reason[:_MOST_SAID] if more.dead.is_dead else b""
    if more.key is None and more.group is None and not more.error.text and not reason:
        return NOTHING
    error = more.error
    if len(error.text) > _MOST_SAID:
        error = LastError(error.at, error.text[:_MOST_SAID])
    return Said(more.key, error, reason, more.group)
