"""One node's disk: the bytes of its journal, and its faults.

A write puts bytes into the system's cache, a sync writes the cache to the disk. A killed process
loses nothing of the cache. Unsynced data is a list of single writes. After a power failure, a first
part of these writes is on the disk, and maybe a part of the next write, or zeros in its place.
Until the names are synced, it is uncertain which of two files the disk has after a file has
replaced another.
"""

import random
from typing import Final

import attrs

from disque_trio.sim.scenarios.plan import Micros, Span
from disque_trio.statemachine.journaling import STOPPED
from disque_trio.statemachine.records import Record
from disque_trio.wire.journal import DamagedFileError, Reader

FULL: Final = "No space left on device"
BROKEN: Final = "Input/output error"
_COMMAND: Final = b"*"
_FLIPS: Final = 100
"""The number of tried bits until the damage by one is detectable: about one in five is."""
_ZEROS: Final = 0.25
"""The probability that a torn tail consists of zeros: the file had grown before the data was
written."""


@attrs.frozen
class Found:
    """The content that a starting process finds."""

    records: list[Record]
    """In the order of writing."""
    how: str
    """`kept`; `torn` if the last record was incomplete; `damaged` if the file is unusable."""

    @property
    def start(self) -> str:
        """The cause of the start: a damaged file was removed by the operator."""
        return "empty" if self.how == "damaged" else "loaded"


@attrs.define(eq=False)
class Content:
    """The content of a file: as read, and as certainly on the disk."""

    data: bytearray = attrs.Factory(bytearray)
    durable: bytearray = attrs.Factory(bytearray)
    writes: list[tuple[int, int, bytes]] = attrs.Factory(list)
    """Number, offset and data of each write that is not synced."""

    def put(self, number: int, at: int, data: bytes) -> None:
        """Write at this offset; data after it stays."""
        _patch(self.data, at, data)
        self.writes.append((number, at, data))

    def sync(self, until: int, beyond: int) -> None:
        """Mark writes as synced: those up to number `until`, and those after number `beyond`."""
        left = []
        for write in self.writes:
            number, at, data = write
            if until < number <= beyond:
                left.append(write)
            else:
                _patch(self.durable, at, data)
        self.writes = left

    def settle(self) -> None:
        """Mark everything as synced."""
        self.durable = bytearray(self.data)
        self.writes.clear()

    def lose_power(self, rng: random.Random) -> None:
        """Keep a random first part of the unsynced writes."""
        data = self.durable
        kept = rng.randint(0, len(self.writes))
        for _, at, piece in self.writes[:kept]:
            _patch(data, at, piece)
        for _, at, piece in self.writes[kept : kept + 1]:
            part = piece[: rng.randint(0, len(piece))]
            _patch(data, at, bytes(len(part)) if rng.random() < _ZEROS else part)
        self.data = data
        self.settle()


def _patch(data: bytearray, at: int, piece: bytes) -> None:
    data.extend(bytes(max(0, at - len(data))))
    data[at : at + len(piece)] = piece


def _is_damaged(data: bytearray) -> bool:
    reader = Reader()
    try:
        reader.feed(bytes(data))
        reader.finish()
    except DamagedFileError:
        return True
    return False


class Disk:
    """A disk with the journal's file, and maybe a new one beside it."""

    def __init__(self, rng: random.Random, sync: Span) -> None:
        self.rng = rng
        self._sync = sync
        self.file = Content()
        self.before: Content | None = None
        """The file that the present one has replaced, until the names are synced."""
        self.power_losses = 0
        self.written = 0
        """The number of writes."""
        self.sync_began = self.sync_ends = 0
        """The number of writes when a sync began, and when it ends."""
        self.is_full = False
        self.is_broken = False
        """Writes and syncs fail."""
        self.is_stalled = False
        """Writes and syncs hang: they neither succeed nor fail."""

    def write(self, content: Content, at: int, data: bytes) -> None:
        """Write to a file, in the system's cache."""
        self.check()
        self.written += 1
        content.put(self.written, at, data)

    def sync(self, content: Content) -> None:
        """Sync the file to the disk; writes during the sync may be missed."""
        if self.is_broken:
            raise OSError(5, BROKEN)
        content.sync(self.sync_began, self.sync_ends)

    def check(self) -> None:
        """Raise OSError if the disk cannot be written."""
        if self.is_broken:
            raise OSError(5, BROKEN)
        if self.is_full:
            raise OSError(28, FULL)

    def sync_time(self) -> Micros:
        """Return the duration of the next sync."""
        low, high = self._sync
        return self.rng.randint(low, high)

    def has_content(self) -> bool:
        """Does the file contain anything?"""
        return bool(self.file.data)

    # Faults.

    def lose_power(self) -> None:
        """Keep a random first part of the unsynced data."""
        self.power_losses += 1
        if self.before is not None and self.rng.random() < 0.5:
            self.file = self.before
        self.before = None
        self.file.lose_power(self.rng)

    def flip(self) -> None:
        """Change one bit of the file so that the damage is detectable. The original's format has no
        checksums, so a changed job looks like an added one; there a bit is chosen that is
        detected."""
        data = self.file.data
        for _ in range(_FLIPS):
            bit = self.rng.randrange(8 * len(data))
            data[bit // 8] ^= 1 << bit % 8
            if not data.startswith(_COMMAND) or _is_damaged(data):
                break
            data[bit // 8] ^= 1 << bit % 8
        else:
            data[0] ^= 1
        self.file.settle()

    def clear(self) -> None:
        """Remove the file."""
        self.file, self.before = Content(), None

    # Loading.

    def is_sealed(self) -> bool:
        """Does the file end with the mark of an orderly stop?"""
        try:
            return Reader().feed(bytes(self.file.data))[-1:] == [STOPPED]
        except DamagedFileError:
            return False

    def load(self) -> Found:
        """Return the content for the process; a damaged file is removed."""
        reader = Reader()
        try:
            records = reader.feed(bytes(self.file.data))
            torn = reader.finish()
        except DamagedFileError:
            self.clear()
            return Found([], "damaged")
        return Found(records, "torn" if torn else "kept")
