"""Records of the latest jobs that have ended here, with their outcomes.

The end of a job only appends a row, with the job itself. Later, rows are packed into sheets of 256
records, column by column: 150 bytes per record, while a job takes 400. One call packs a column;
values that can be computed on reading are not stored. `pressure` packs a limited number of rows ten
times per second, so the cost per second does not depend on the load. Records do not survive the
process (docs/memory.md, "Jobs that have ended").

Owns the fields of `Endings`.
"""

import struct
from collections import deque
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, Final

import attrs

from disque_trio.statemachine.base import JOB_ID_LENGTH, JobId, Millis
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.extensions import NO_ERROR, Extensions, LastError
from disque_trio.statemachine.job import STAMPS, Job

SHEET: Final = 256
"""The number of records in a sheet."""
HEAD: Final = 64
"""The number of bytes of a body that are kept."""
ROWS_AT_ONCE: Final = 4096
"""The number of rows that a step of a search checks, which takes some tenths of a millisecond."""
SHEETS_AT_ONCE: Final = 64
"""The number of sheets that a step of a search checks."""
_AT_ONCE: Final = 4
"""The number of sheets packed per review: at most a few per cent of a core in the pure form."""
_LONGEST_DETAIL: Final = 512
"""The number of bytes of an error, and of the reason of a dead job, that are kept."""
ROW_BYTES: Final = 600
"""The accounted size of a row, including its job, even if that is still in the job table and
counted there, too."""
RECORD_BYTES: Final = 152
"""The accounted size of a record, without counts of NACKs and redeliveries, and without details."""
_DETAILS_BYTES: Final = 250
_NAME_BYTES: Final = 40
_LONG: Final = "n" if struct.calcsize("n") == 8 else "q"
"""The format of 8 bytes. CPython packs `n` with a third of the instructions of `q`."""
_HEAD: Final = f"{HEAD + 1}p"
"""The format of a head with its length: of constant size, so one call packs all heads of a
sheet."""

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
"""The outcome of a job that was not dead, by cause. A job that was sent to another node has not
ended."""
_BY_CLIENT: Final = (Cause.ACKJOB, Cause.FASTACK, Cause.CLIENT_DELJOB)

Row = tuple[Job, Cause, bytes, Millis]
"""The job; the cause of its end; the last client that has acknowledged or deleted any job; Unix
time."""


@attrs.define(eq=False, weakref_slot=False)
class Details:
    """Fields of a record that most jobs lack."""

    key: bytes | None = None
    error: LastError = NO_ERROR
    reason: bytes = b""
    """Why the job was dead."""
    group: bytes | None = None
    was_dead: bool = False


NOTHING: Final = Details()


@attrs.define(eq=False, weakref_slot=False)
class Record:
    """The record of an ended job. Times are Unix milliseconds."""

    id: JobId
    queue: bytes
    ctime: int
    """The creation stamp (`Job.ctime`), which also distinguishes jobs of the same millisecond."""
    ended: Millis
    outcome: bytes
    by: bytes
    """The name or address of the client that has ended it; empty if it was no client of this
    node."""
    nacks: int
    deliveries: int
    head: bytes
    """The beginning of the body; the whole body if it is shorter than `HEAD`."""
    details: Details


@attrs.define(eq=False, weakref_slot=False)
class Sheet:
    """Packed records, the oldest first. Methods take the index of a record in the sheet."""

    first: int
    """The number of the oldest record. Records are numbered from 1 since the start of the
    process."""
    ids: bytes
    queues: list[bytes | None]
    causes: list[Cause]
    ackers: list[bytes]
    made: bytes
    numbers: bytes
    """With `made`, the creation stamps, as in `Job`."""
    ended: bytes
    tries: bytes
    """The NACKs of all records, then their redeliveries; empty if all are zero."""
    heads: bytes
    details: dict[int, Details]
    weight: int

    @property
    def count(self) -> int:
        """The number of records."""
        return len(self.queues)

    def made_at(self, at: int) -> Millis:
        """The creation time of the job, in Unix milliseconds."""
        [made] = struct.unpack_from(_LONG, self.made, 8 * at)
        return int(made)

    def ctime(self, at: int) -> int:
        """The creation stamp of the job."""
        [number] = struct.unpack_from("I", self.numbers, 4 * at)
        return self.made_at(at) * STAMPS + int(number)

    def head(self, at: int) -> bytes:
        """The beginning of the job's body."""
        [found] = struct.unpack_from(_HEAD, self.heads, (HEAD + 1) * at)
        return bytes(found)

    def tried(self, at: int) -> tuple[int, int]:
        """The job's NACKs and redeliveries."""
        if not self.tries:
            return 0, 0
        [nacks] = struct.unpack_from("H", self.tries, 2 * at)
        [deliveries] = struct.unpack_from("H", self.tries, 2 * (self.count + at))
        return int(nacks), int(deliveries)

    def find(self, job_id: JobId) -> int:
        """The index of the latest record of this job; -1 if there is none."""
        at = self.ids.rfind(job_id)
        while at > 0 and at % JOB_ID_LENGTH:
            at = self.ids.rfind(job_id, 0, at + JOB_ID_LENGTH - 1)
        return at // JOB_ID_LENGTH if at >= 0 else -1

    def record(self, at: int) -> Record:
        """Unpack one record."""
        [ended] = struct.unpack_from(_LONG, self.ended, 8 * at)
        nacks, deliveries = self.tried(at)
        cause = self.causes[at]
        details = self.details.get(at, NOTHING)
        return Record(
            self.ids[at * JOB_ID_LENGTH : (at + 1) * JOB_ID_LENGTH],
            self.queues[at] or b"",
            self.ctime(at),
            ended,
            DROPPED if details.was_dead else OUTCOMES[cause],
            self.ackers[at] if cause in _BY_CLIENT else b"",
            nacks,
            deliveries,
            self.head(at),
            details,
        )


class Endings:
    """The records of a node's latest ended jobs."""

    __slots__ = ("_first", "_sealed", "_sheets", "_weight", "limit", "rows")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        """The maximum number of records."""
        self.rows: list[Row] | None = [] if limit else None
        """Rows that are not packed yet, the oldest first; None if no records are kept."""
        self._sheets: deque[Sheet] = deque()
        self._first = 1
        """The number of the first row."""
        self._sealed = 0
        """The number of records in sheets."""
        self._weight = 0

    @property
    def count(self) -> int:
        """The number of records and rows."""
        return self._sealed + len(self.rows or ())

    @property
    def weight(self) -> int:
        """The accounted size, in bytes."""
        return self._weight + len(self.rows or ()) * ROW_BYTES

    @property
    def end(self) -> int:
        """The number of the next row."""
        return self._first + len(self.rows or ())

    def configure(self, limit: int) -> None:
        """Set the maximum number of records; 0 drops all."""
        self.limit = limit
        if not limit:
            self.forget_all()
            self.rows = None
        elif self.rows is None:
            self.rows = []

    def forget_all(self) -> None:
        """Drop all records."""
        self._first = self.end
        self._sheets.clear()
        self._sealed = self._weight = 0
        if self.rows is not None:
            self.rows = []

    def fit(self, room: int) -> None:
        """Pack some rows, and drop the oldest records beyond the limit and beyond `room` bytes."""
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
        """All records before number `before` as sheets, the newest first. Rows are packed into
        temporary sheets only: there may be a million of them after a burst."""
        high = before - self._first
        while high > 0 and self.rows:
            low = max(min(high, len(self.rows)) - SHEET, 0)
            yield _sheet(self._first + low, self.rows[low:high])
            high = low
        newer = max(self._first - before, 0) // SHEET
        for at in range(len(self._sheets) - newer, 0, -1):
            yield self._sheets[at - 1]

    def find(self, job_id: JobId, before: int) -> tuple[Record | None, int]:
        """One step of a search before number `before`, newest first: the latest record of the job,
        or None; and the number before which to continue, or 0 at the end."""
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
    """The beginning of the job's body; empty if the body is on disk."""
    body = job.body
    return body[:HEAD] if isinstance(body, bytes) else b""


def _sheet(first: int, rows: list[Row]) -> Sheet:
    # Field by field: one call per row would cost more than everything else here.
    flat: list[Any] = list(chain.from_iterable(rows))
    jobs: list[Job] = flat[::4]
    ackers: list[bytes] = flat[2::4]
    count = len(jobs)
    queues = [job.queue for job in jobs]
    details, weight = _all_details([job.extensions for job in jobs])
    tries = _tries([job.nacks for job in jobs], [job.deliveries for job in jobs])
    weight += count * RECORD_BYTES + len(tries)
    names = dict.fromkeys([*queues, *ackers])
    return Sheet(
        first,
        b"".join([job.id for job in jobs]),
        queues,
        flat[1::4],
        ackers,
        struct.pack(f"{count}{_LONG}", *[job.made for job in jobs]),
        struct.pack(f"{count}I", *[job.number for job in jobs]),
        struct.pack(f"{count}{_LONG}", *flat[3::4]),
        tries,
        _heads(jobs),
        details,
        weight + sum([len(name or b"") + _NAME_BYTES for name in names]),
    )


def _tries(nacks: list[int], deliveries: list[int]) -> bytes:
    if not any(nacks) and not any(deliveries):
        return b""
    return struct.pack(f"{2 * len(nacks)}H", *nacks, *deliveries)


def _heads(jobs: list[Job]) -> bytes:
    layout = _HEAD * len(jobs)
    try:
        return struct.pack(layout, *[job.body for job in jobs])
    except struct.error:  # one of them is on disk
        return struct.pack(layout, *[head(job) for job in jobs])


def _all_details(extensions: list[Extensions | None]) -> tuple[dict[int, Details], int]:
    """The details by index, for records that have any; and their accounted size."""
    details: dict[int, Details] = {}
    weight = 0
    if not any(extensions):
        return details, weight
    for at, more in enumerate(extensions):
        one = NOTHING if more is None else _details_of(more)
        if one is not NOTHING:
            details[at] = one
            weight += _DETAILS_BYTES + len(one.key or b"") + len(one.group or b"")
            weight += len(one.error.text) + len(one.reason)
    return details, weight


def _details_of(more: Extensions) -> Details:
    was_dead = more.dead.is_dead
    reason = more.dead.reason[:_LONGEST_DETAIL] if was_dead else b""
    if more.key is None and more.group is None and not more.error.text and not was_dead:
        return NOTHING
    error = more.error
    if len(error.text) > _LONGEST_DETAIL:
        error = LastError(error.at, error.text[:_LONGEST_DETAIL])
    return Details(more.key, error, reason, more.group, was_dead)
