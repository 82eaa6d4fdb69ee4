"""Jobs that have ended here, the latest ones: what they were, and what has become of them.

The step that ends a job only appends a row, with the job itself. Rows become records in sheets of
256, whose fields lie side by side in few objects: 150 bytes each, where a job takes 400. A field of
all rows of a sheet is packed in one call, and what can be computed when a record is read is not
computed before. `pressure` has this done ten times a second, for a limited number of rows, so that
it costs the same whatever the load is. No record outlives the process (docs/memory.md, "Jobs that
have ended").

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
"""Records of a sheet."""
HEAD: Final = 64
"""So many bytes of a body are kept."""
ROWS_AT_ONCE: Final = 4096
"""Of rows, how many a step of a search looks at: some tenths of a millisecond."""
SHEETS_AT_ONCE: Final = 64
"""The same of sheets."""
_AT_ONCE: Final = 4
"""Sheets that are made in one review: at most a few per cent of a processor in the pure form."""
_LONGEST_DETAIL: Final = 512
"""And so many of an error, and of the reason of a dead job."""
ROW_BYTES: Final = 600
"""What a row weighs, with its job; the job may be in the table still, and be counted there, too."""
RECORD_BYTES: Final = 152
"""What a record weighs, without its NACKs and redeliveries and what was said of it."""
_DETAILS_BYTES: Final = 250
_NAME_BYTES: Final = 40
_LONG: Final = "n" if struct.calcsize("n") == 8 else "q"
"""Eight bytes. CPython packs an `n` with a third of the instructions of a `q`."""
_HEAD: Final = f"{HEAD + 1}p"
"""A head and its length. All have the same size, so that one call packs those of a sheet."""

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
class Details:
    """What only few jobs have."""

    key: bytes | None = None
    error: LastError = NO_ERROR
    reason: bytes = b""
    """Why it was dead."""
    group: bytes | None = None
    was_dead: bool = False


NOTHING: Final = Details()


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
    details: Details


@attrs.define(eq=False, weakref_slot=False)
class Sheet:
    """Some records, the oldest first."""

    first: int
    """The number of the oldest. Records are numbered from 1 since the start of the process."""
    ids: bytes
    queues: list[bytes | None]
    causes: list[Cause]
    ackers: list[bytes]
    made: bytes
    numbers: bytes
    """With `made` the creation stamps, as jobs have them."""
    ended: bytes
    tries: bytes
    """The NACKs of all, then their redeliveries; empty if there were none."""
    heads: bytes
    details: dict[int, Details]
    weight: int

    @property
    def count(self) -> int:
        """How many records these are."""
        return len(self.queues)

    def made_at(self, at: int) -> Millis:
        """When this one was added."""
        [made] = struct.unpack_from(_LONG, self.made, 8 * at)
        return int(made)

    def ctime(self, at: int) -> int:
        """The creation stamp of this one."""
        [number] = struct.unpack_from("I", self.numbers, 4 * at)
        return self.made_at(at) * STAMPS + int(number)

    def head(self, at: int) -> bytes:
        """The beginning of the body of this one."""
        [found] = struct.unpack_from(_HEAD, self.heads, (HEAD + 1) * at)
        return bytes(found)

    def tried(self, at: int) -> tuple[int, int]:
        """The NACKs and the redeliveries of this one."""
        if not self.tries:
            return 0, 0
        [nacks] = struct.unpack_from("H", self.tries, 2 * at)
        [deliveries] = struct.unpack_from("H", self.tries, 2 * (self.count + at))
        return int(nacks), int(deliveries)

    def find(self, job_id: JobId) -> int:
        """Where this job is; -1 if it is not here. Of several records the latest."""
        at = self.ids.rfind(job_id)
        while at > 0 and at % JOB_ID_LENGTH:
            at = self.ids.rfind(job_id, 0, at + JOB_ID_LENGTH - 1)
        return at // JOB_ID_LENGTH if at >= 0 else -1

    def record(self, at: int) -> Record:
        """This one."""
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
    # Field by field: a call for each row would cost more than all else here.
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
    """The details of each that has any, and what they weigh."""
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
