"""One node's disk: the bytes of its journal, and its faults.

A write puts bytes into the system's cache, a sync puts the cache onto the disk. A killed process
loses nothing of the cache. Unsynced data is a list of single writes; when power fails, a first part
of them is on the disk, and of the next one maybe a part, or zeros in its place. Until the names are
synced, a file that has replaced another may have done so on the disk or not.
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
"""Bits that are tried until the damage of one is noticed: one in five or so is."""
_ZEROS: Final = 0.25
"""How often a torn tail is zeros: the file had grown before the data was written."""


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


@attrs.define(eq=False)
class Content:
    """What a file has: as read, and what is surely on the disk."""

    data: bytearray = attrs.Factory(bytearray)
    durable: bytearray = attrs.Factory(bytearray)
    writes: list[tuple[int, int, bytes]] = attrs.Factory(list)
    """Number, offset and data of each write that is not durable."""

    def put(self, number: int, at: int, data: bytes) -> None:
        """Write; data behind it stays."""
        _patch(self.data, at, data)
        self.writes.append((number, at, data))

    def sync(self, until: int, beyond: int) -> None:
        """Writes up to the one number are on the disk, and those beyond the other."""
        left = []
        for write in self.writes:
            number, at, data = write
            if until < number <= beyond:
                left.append(write)
            else:
                _patch(self.durable, at, data)
        self.writes = left

    def settle(self) -> None:
        """All of it is on the disk."""
        self.durable = bytearray(self.data)
        self.writes.clear()

    def lose_power(self, rng: random.Random) -> None:
        """An arbitrary first part of the writes is."""
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
        """The file that it has replaced, until that is synced."""
        self.power_losses = 0
        self.written = 0
        """How many writes there have been."""
        self.sync_began = self.sync_ends = 0
        """With how many of them a sync began, and with how many it is about to end."""
        self.is_full = False
        self.is_broken = False
        """Neither writes nor syncs succeed."""
        self.is_stalled = False
        """Writes and syncs hang: they neither succeed nor fail."""

    def write(self, content: Content, at: int, data: bytes) -> None:
        """Write into a file, in the system's cache."""
        self.check()
        self.written += 1
        content.put(self.written, at, data)

    def sync(self, content: Content) -> None:
        """Put the file onto the disk; what was written while a sync was under way may be missed."""
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
        """How long the next sync takes."""
        low, high = self._sync
        return self.rng.randint(low, high)

    def has_content(self) -> bool:
        """Is there anything in the file?"""
        return bool(self.file.data)

    # Faults.

    def lose_power(self) -> None:
        """An arbitrary first part of what is unsynced stays."""
        self.power_losses += 1
        if self.before is not None and self.rng.random() < 0.5:
            self.file = self.before
        self.before = None
        self.file.lose_power(self.rng)

    def flip(self) -> None:
        """Change one bit of the file. The original's format has no checksums, and nobody can tell
        a job that was changed from one that was added so: there it is any bit that is noticed."""
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
        """Does the file end with the mark of a stop?"""
        try:
            return Reader().feed(bytes(self.file.data))[-1:] == [STOPPED]
        except DamagedFileError:
            return False

    def load(self) -> Found:
        """What the process will find; a damaged file is removed."""
        reader = Reader()
        try:
            records = reader.feed(bytes(self.file.data))
            torn = reader.finish()
        except DamagedFileError:
            self.clear()
            return Found([], "damaged")
        return Found(records, "torn" if torn else "kept")
