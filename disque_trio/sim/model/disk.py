"""One node's disk: the journal as a file of records, and its faults.

A write puts records into the system's cache, a sync puts the cache onto the disk. A killed process
loses nothing of the cache; when power fails, an arbitrary first part of the unsynced records is on
the disk, maybe with half a record. The rest is read through the real file format (`wire.journal`),
so that the real reader meets torn tails and flipped bits.
"""

import random
from collections.abc import Callable, Sequence
from typing import Final

import attrs

from disque_trio.sim.scenarios.plan import Micros, Span
from disque_trio.statemachine.journaling import STARTED, STOPPED
from disque_trio.statemachine.records import LoadJob, Record
from disque_trio.wire.journal import DamagedFileError, Format, Reader, Writer

FULL: Final = "No space left on device"
BROKEN: Final = "Input/output error"
SALT: Final = 0x5EED
_CHUNK: Final = 1 << 16
_CHECK_EVERY: Final = 4
"""One load in so many goes through bytes although the file is intact."""
_ZEROS: Final = 0.25
"""How often a torn tail is zeros: the file had grown before the data was written."""


class DiskError(Exception):
    """A call of the system failed; the message is its error text."""


class JournalError(Exception):
    """The records read are not those written, and the reader has not noticed."""


@attrs.frozen
class Found:
    """What a starting process finds."""

    records: list[Record]
    """In their order."""
    how: str
    """`kept`; `torn` if the last record was incomplete; `damaged` if the file is unusable."""

    @property
    def start(self) -> str:
        """How the process starts: the operator has removed a damaged file."""
        return "empty" if self.how == "damaged" else "loaded"


class Disk:
    """A disk with one file. Its first `durable` records are durable."""

    def __init__(self, rng: random.Random, sync: Span) -> None:
        self._rng = rng
        self._sync = sync
        self.records: list[Record] = []
        self.durable = 0
        self.is_full = False
        self.is_broken = False
        """Neither writes nor syncs succeed."""
        self.is_stalled = False
        """Writes and syncs hang: they neither succeed nor fail."""
        self.when_released: Callable[[], None] | None = None
        """Called when it is not stalled any more."""
        self._tail = b""
        """The first part of a record that was being written when power failed."""
        self._flips = 0
        self._loads = 0

    # For the process.

    def write(self, records: Sequence[Record]) -> None:
        """Add records to the file, in the system's cache. Raises `DiskError`, having added none."""
        if self.is_broken:
            raise DiskError(BROKEN)
        if self.is_full:
            raise DiskError(FULL)
        self.records.extend(records)

    def sync(self, count: int) -> None:
        """Put the first `count` records onto the disk. Raises `DiskError`; then records that
        were not durable before may or may not be on the disk."""
        if self.is_broken:
            raise DiskError(BROKEN)
        self.durable = max(self.durable, count)

    def replace(self, records: Sequence[Record]) -> None:
        """Replace the file by a synced one. Raises `DiskError`, and then keeps the old file."""
        if self.is_broken or self.is_full:
            raise DiskError(BROKEN if self.is_broken else FULL)
        self.records, self._tail = list(records), b""
        self.durable = len(self.records)

    def note_start(self) -> bool:
        """If the last record marks a stop, cancel it with a synced mark of the start. False if that
        failed."""
        if self.records[-1:] != [STOPPED]:
            return True
        if self.is_stalled:
            return False
        try:
            self.write([STARTED])
            self.sync(len(self.records))
        except DiskError:
            return False
        return True

    def sync_time(self) -> Micros:
        """How long the next sync takes."""
        low, high = self._sync
        return self._rng.randint(low, high)

    def has_content(self) -> bool:
        """Is there anything in the file?"""
        return bool(self.records)

    # Faults.

    def lose_power(self) -> None:
        """An arbitrary first part of the unsynced records stays, and maybe half a record more."""
        rest = len(self.records) - self.durable
        kept = self.durable + self._rng.randint(0, rest)
        torn = self.records[kept : kept + 1]
        del self.records[kept:]
        self.durable = kept
        self._tail = b""
        if torn:
            whole = Writer(Format.FRAMED, SALT).encode(torn[0])
            size = self._rng.randrange(len(whole))
            is_blank = self._rng.random() < _ZEROS
            self._tail = bytes(size) if is_blank else whole[:size]

    def flip(self) -> None:
        """Change one bit of the file, at the next load."""
        self._flips += 1

    def stall(self, *, is_stalled: bool) -> None:
        """Begin or end to hang."""
        self.is_stalled = is_stalled
        if not is_stalled and self.when_released is not None:
            self.when_released()

    def clear(self) -> None:
        """Remove the file."""
        self.records, self.durable, self._tail, self._flips = [], 0, b"", 0

    # Loading.

    def load(self) -> Found:
        """Read the file, and cut a torn tail off."""
        self._loads += 1
        how = "torn" if self._tail else "kept"
        if self._tail or self._flips or not self._loads % _CHECK_EVERY:
            data = self._bytes()
            flips, self._flips = (self._flips if self.records else 0), 0
            for _ in range(flips):
                bit = self._rng.randrange(8 * len(data))
                data[bit // 8] ^= 1 << bit % 8
            try:
                found = _read(bytes(data), self._rng)
            except DamagedFileError:
                if not flips:
                    raise
                self.clear()
                return Found([], "damaged")
            if found != self.records:
                raise JournalError(f"{len(self.records)} records, and {len(found)} come back")
        self._tail = b""
        found = self.records
        # The process gets all records; the file keeps only those that still count.
        self.records = _compact(found)
        self.durable = len(self.records)
        return Found(found, how)

    def _bytes(self) -> bytearray:
        writer = Writer(Format.FRAMED, SALT)
        data = bytearray(writer.header)
        for record in self.records:
            data += writer.encode(record)
        return data + self._tail


def _read(data: bytes, rng: random.Random) -> list[Record]:
    reader = Reader()
    found: list[Record] = []
    at = 0
    while at < len(data):
        size = rng.randint(1, _CHUNK)
        found += reader.feed(data[at : at + size])
        at += size
    reader.finish()
    return found


def _compact(records: Sequence[Record]) -> list[Record]:
    """Only the last record of each job that was not deleted, and the marks of stops and starts, in
    their order."""
    left: dict[bytes, Record] = {}
    for record in records:
        if isinstance(record, LoadJob):
            left.pop(record.copy.id, None)
            left[record.copy.id] = record
        else:
            left.pop(record.id, None)
            if record in (STOPPED, STARTED):
                left[record.id] = record
    return list(left.values())
