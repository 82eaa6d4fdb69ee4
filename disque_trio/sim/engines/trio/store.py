"""The disk of a simulated node in the trio engine, as its journal sees it: files of bytes.

Unsynced data is a list of single writes; when power fails, a first part of them is on the disk, the
last one maybe in part. Until the names are synced (`settle`), a file that has replaced another may
have done so on the disk or not.
"""

import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeVar, TypeVarTuple

import attrs
import trio

from disque_trio.ports import JournalFile
from disque_trio.sim.model.disk import BROKEN, FULL, SALT, Disk, Found
from disque_trio.sim.scenarios.plan import Span
from disque_trio.statemachine.journaling import STOPPED
from disque_trio.wire.journal import DamagedFileError, Reader

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

WRITE_S: Final = 0.0001
"""How long a write into the system's cache takes, with the way to a thread and back."""
_LOOK_S: Final = 0.01
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


class TaskThread:
    """The `JournalThread` where there are no threads: each piece of work is a task."""

    def __init__(self, do: Callable[[Callable[[], object], bool], Awaitable[None]]) -> None:
        """`do` runs the work after the time that the disk takes; its flag says whether it syncs."""
        self.wake: Callable[[], None] = lambda: None
        self._do = do
        self._abandoned = 0
        """How often work in progress was abandoned."""
        self._nursery: trio.Nursery

    def start(
        self,
        act: Callable[..., object],
        args: tuple[Any, ...],
        then: Callable[[OSError | None], None],
        *,
        syncs: bool,
    ) -> None:
        """Start a task; the journal starts no other before `then` has been called."""
        self._nursery.start_soon(self._work, partial(act, *args), then, syncs, self._abandoned)

    async def _work(
        self,
        act: Callable[[], object],
        then: Callable[[OSError | None], None],
        syncs: bool,
        abandoned: int,
    ) -> None:
        error = None
        try:
            await self._do(act, syncs)
        except OSError as met:
            error = met
        if abandoned == self._abandoned:
            then(error)

    def collect(self) -> None:
        """`then` has been called already."""

    def wait(self, seconds: float) -> None:
        """No task goes on while the loop stands still."""

    def abandon(self) -> None:
        """Do not call `then` for work in progress."""
        self._abandoned += 1

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the tasks."""
        async with trio.open_nursery() as self._nursery:
            task_status.started()
            await trio.sleep_forever()


class SimStore:
    """The `JournalStore` of one life."""

    name = "disque.aof"

    def __init__(self, disk: ByteDisk) -> None:
        self._disk = disk
        self.thread = TaskThread(self._do)

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

    async def in_thread(self, act: Callable[[*Ts], T], *args: *Ts) -> T:
        """Do it after the time that the disk takes, even if the caller is cancelled."""
        await self._wait(self._disk.sync_time() / 1_000_000)
        return act(*args)

    async def _do(self, act: Callable[[], object], syncs: bool) -> None:
        await self._wait(self._disk.sync_time() / 1_000_000 if syncs else WRITE_S)
        act()

    async def _wait(self, seconds: float) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(seconds)
            while self._disk.is_stalled:
                await trio.sleep(_LOOK_S)
        await trio.lowlevel.checkpoint_if_cancelled()
