"""One node's disk: the journal as a file of records, and all that can befall it.

A write puts records into the system's cache, a sync puts what is there onto the disk. When the
process is killed the cache stays; when power fails, what was not synced stays up to wherever the
system has come to by itself, maybe in the middle of a record. What is left is read through the real
file format (`wire.journal`), so that torn tails and flipped bits meet the reader that they meet
outside.
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
"""One load in so many goes through bytes although nothing is wrong with the file."""
_ZEROS: Final = 0.25
"""How often a torn tail is zeros: the file had grown already, and the data had not come yet."""


class DiskError(Exception):
    """The system refuses; the message is its error text."""


class JournalError(Exception):
    """The file does not come back as it was written, and the reader has not noticed."""


@attrs.frozen
class Found:
    """What a start finds."""

    records: list[Record]
    """In their order."""
    how: str
    """`kept`; `torn` if the last record was not whole; `damaged` if the file cannot be used."""

    @property
    def start(self) -> str:
        """How the process starts: the operator has taken a damaged file away."""
        return "empty" if self.how == "damaged" else "loaded"


class Disk:
    """A disk with one file. Durable are its first `durable` records."""

    def __init__(self, rng: random.Random, sync: Span) -> None:
        self._rng = rng
        self._sync = sync
        self.records: list[Record] = []
        self.durable = 0
        self.is_full = False
        self.is_broken = False
        """Neither writes nor syncs succeed."""
        self.is_stalled = False
        """Nothing gets through, and nothing fails."""
        self.when_released: Callable[[], None] | None = None
        """Whom to tell when it is not stalled any more."""
        self._tail = b""
        """Of a record that was being written when power failed."""
        self._flips = 0
        self._loads = 0

    # What a process asks for.

    def write(self, records: Sequence[Record]) -> None:
        """Add records to the file, in the system's cache. Raises `DiskError`, having added none."""
        if self.is_broken:
            raise DiskError(BROKEN)
        if self.is_full:
            raise DiskError(FULL)
        self.records.extend(records)

    def sync(self, count: int) -> None:
        """Put the first `count` records onto the disk. Raises `DiskError`: then what was not there
        before is in doubt, as after any loss of power."""
        if self.is_broken:
            raise DiskError(BROKEN)
        self.durable = max(self.durable, count)

    def replace(self, records: Sequence[Record]) -> None:
        """Another file takes the place of this one, synced. Raises `DiskError`: it does not."""
        if self.is_broken or self.is_full:
            raise DiskError(BROKEN if self.is_broken else FULL)
        self.records, self._tail = list(records), b""
        self.durable = len(self.records)

    def note_start(self) -> bool:
        """If the mark of a stop is the last record, make it void, synced. Could that be done, or
        need it not be?"""
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

    # What befalls it.

    def lose_power(self) -> None:
        """Of what was not synced an arbitrary first part stays, and then maybe half a record."""
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
        """One bit of the file changes. Nobody notices until it is read."""
        self._flips += 1

    def stall(self, *, is_stalled: bool) -> None:
        """Hold everything back, or go on."""
        self.is_stalled = is_stalled
        if not is_stalled and self.when_released is not None:
            self.when_released()

    def clear(self) -> None:
        """The file is gone, by whose hand ever."""
        self.records, self.durable, self._tail, self._flips = [], 0, b"", 0

    # Loading.

    def load(self) -> Found:
        """What is in the file, whose torn tail is cut off."""
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
        # A process reads all that is there; for the rest of the run what counts is enough.
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
    """Only what counts: the last record of each job that was not deleted, and the marks of stops
    and starts, as a file that is not written anew keeps them."""
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
