"""The disk of a simulated node in the trio engine, as its journal sees it: files of bytes.

Unsynced data is a list of single writes; when power fails, a first part of them is on the disk, the
last one maybe in part. Until the names are synced (`settle`), a file that has replaced another may
have done so on the disk or not.
"""

import random
from typing import Final

import attrs

from disque_trio.ports import JournalFile
from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.simulated_thread import Act, SimulatedThread, Then
from disque_trio.sim.model.disk import BROKEN, FULL, SALT, Disk, Found
from disque_trio.sim.scenarios.plan import Micros, Span
from disque_trio.statemachine.journaling import STOPPED
from disque_trio.wire.journal import DamagedFileError, Reader

WRITE: Final[Micros] = 100
"""How long a write into the system's cache takes, with the way to a thread and back."""
_LOOK: Final[Micros] = 10_000
"""How often a thread checks whether the disk still hangs."""


@attrs.define(eq=False)
class Content:
    """What a file has: as read, and what is surely on the disk."""

    data: bytearray = attrs.Factory(bytearray)
    durable: bytes = b""
    writes: list[tuple[int, bytes]] = attrs.Factory(list)
    """Offset and data of each write since the last sync."""

    def put(self, at: int, data: bytes) -> None:
        """Write; data behind it stays."""
        self.data[at : at + len(data)] = data
        self.writes.append((at, data))

    def settle(self) -> None:
        """All of it is on the disk."""
        self.durable = bytes(self.data)
        self.writes.clear()

    def lose_power(self, rng: random.Random) -> None:
        """An arbitrary first part of the writes is."""
        data = bytearray(self.durable)
        kept = rng.randint(0, len(self.writes))
        for at, piece in self.writes[:kept]:
            data[at : at + len(piece)] = piece
        for at, piece in self.writes[kept : kept + 1]:
            part = piece[: rng.randint(0, len(piece))]
            data[at : at + len(part)] = part
        self.data = data
        self.settle()


class ByteDisk(Disk):
    """A disk with the journal's file, and maybe a new one beside it."""

    def __init__(self, rng: random.Random, sync: Span) -> None:
        self.file = Content()
        self.before: Content | None = None
        """The file that it has replaced, until that is synced."""
        super().__init__(rng, sync)

    def check(self) -> None:
        """Raise OSError if the disk cannot be written."""
        if self.is_broken:
            raise OSError(5, BROKEN)
        if self.is_full:
            raise OSError(28, FULL)

    def has_content(self) -> bool:
        """Is there anything in the file?"""
        return bool(self.file.data)

    def lose_power(self) -> None:
        """As in the base class, for bytes."""
        if self.before is not None and self._rng.random() < 0.5:
            self.file = self.before
        self.before = None
        self.file.lose_power(self._rng)

    def flip(self) -> None:
        """At once."""
        bit = self._rng.randrange(8 * len(self.file.data))
        self.file.data[bit // 8] ^= 1 << bit % 8
        self.file.settle()

    def clear(self) -> None:
        """Remove the file."""
        self.file, self.before = Content(), None

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


class SimFile:
    """The `JournalFile` of one life."""

    def __init__(self, disk: ByteDisk, content: Content) -> None:
        self.content = content
        self.size = len(content.data)
        self._disk = disk

    def read(self, offset: int, count: int) -> bytes:
        """Up to so many bytes."""
        return bytes(self.content.data[offset : offset + count])

    def append(self, data: bytes) -> None:
        """Write at the end."""
        self._disk.check()
        self.content.put(self.size, data)
        self.size += len(data)

    def sync(self) -> None:
        """Put everything onto the disk."""
        if self._disk.is_broken:
            raise OSError(5, BROKEN)
        self.content.settle()

    def rewind(self, size: int) -> None:
        """Go on writing there."""
        self.size = size

    def cut(self, size: int) -> None:
        """Keep so many bytes; synced at once, which is simpler than the real file."""
        self.size = size
        del self.content.data[size:]
        self.content.settle()

    def loss(self) -> str:
        """Never: no other process uses this disk."""
        return ""

    def close(self) -> None:
        """Let go of it."""


class SimThread(SimulatedThread):
    """The `DiskThread` of one life: what it does ends after the time that the disk takes."""

    def __init__(self, engine: Engine, disk: "ByteDisk") -> None:
        super().__init__()
        self._engine = engine
        self._disk = disk
        self._is_over = False
        """The process is gone, and its threads with it."""

    def _begin(self, act: Act, then: Then, *, syncs: bool) -> None:
        self._engine.later(self._disk.sync_time() if syncs else WRITE, self._end_of, (act, then))

    def _end_of(self, work: tuple[Act, Then]) -> None:
        if self._is_over:
            return
        if self._disk.is_stalled:
            self._engine.later(_LOOK, self._end_of, work)
        else:
            self._finish(*work)

    def end(self) -> None:
        """The process is gone."""
        self._is_over = True


class SimStore:
    """The `JournalStore` of one life."""

    name = "disque.aof"

    def __init__(self, engine: Engine, disk: ByteDisk) -> None:
        self._disk = disk
        self.thread = SimThread(engine, disk)

    def exists(self) -> bool:
        """Is there a journal?"""
        return bool(self._disk.file.data)

    def open(self) -> SimFile:
        """The journal."""
        return SimFile(self._disk, self._disk.file)

    def begin(self) -> SimFile:
        """An empty file beside it."""
        self._disk.check()
        return SimFile(self._disk, Content())

    def replace(self, new: JournalFile) -> None:
        """Replace the journal by it."""
        assert isinstance(new, SimFile)
        self._disk.before = self._disk.before or self._disk.file
        self._disk.file = new.content

    def set_aside(self) -> None:
        """There is nothing to be set aside."""

    def settle(self) -> None:
        """Sync the names."""
        if self._disk.is_broken:
            raise OSError(5, BROKEN)
        self._disk.before = None

    def discard(self, new: JournalFile) -> None:
        """Remove it."""

    def salt(self) -> int:
        """Always the same, to find code that relies on a new one."""
        return SALT
