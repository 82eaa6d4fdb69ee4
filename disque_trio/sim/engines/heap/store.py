"""The `JournalStore` of a simulated node, and the thread of its disk."""

from collections.abc import Callable
from typing import Any, Final

from outcome import Error, Outcome, capture

from disque_trio.ports import JournalFile
from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.simulated_thread import Act, SimulatedThread, Then
from disque_trio.sim.model.disk import BROKEN, Content, Disk
from disque_trio.sim.scenarios.plan import Micros

WRITE: Final[Micros] = 100
"""How long a write into the system's cache takes if the node does not wait for it, with the way to
a thread and back."""
_LATE: Final = 0.125
"""How often the node waits in vain for a write, which then is done in a later batch."""
_LOOK: Final[Micros] = 10_000
"""How often a thread checks whether the disk still hangs."""
SALT: Final = 0x5EED


class SimFile:
    """The `JournalFile` of one life."""

    def __init__(self, disk: Disk, content: Content) -> None:
        self.content = content
        self.size = len(content.data)
        self._disk = disk

    def read(self, offset: int, count: int) -> bytes:
        """Up to so many bytes."""
        return bytes(self.content.data[offset : offset + count])

    def append(self, data: bytes) -> None:
        """Write at the end."""
        self._disk.write(self.content, self.size, data)
        self.size += len(data)

    def sync(self) -> None:
        """Put everything onto the disk."""
        self._disk.sync(self.content)

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


Writing = tuple[Act, Act | None, Then]
"""What to write, how to sync it, and what to call then."""
Syncing = tuple[Act, Outcome[Any], Then, int]
"""How to sync, what came of the write before, what to call then, and how many writes the disk had
seen when the sync began."""


class SimThread(SimulatedThread):
    """The `DiskThread` of one life. What is written is in the system's cache after a moment, and
    outlives the process from then on; the sync that follows takes the time of the disk."""

    def __init__(self, engine: Engine, disk: Disk) -> None:
        super().__init__()
        self._engine = engine
        self._disk = disk
        self._is_over = False
        """The process is gone, and its threads with it."""

    def _begin(self, write: Act, sync: Act | None, then: Then) -> None:
        self._engine.later(WRITE, self._write, (write, sync, then))

    def _write(self, work: Writing) -> None:
        if self._is_over:
            return
        if self._disk.is_stalled:
            self._engine.later(_LOOK, self._write, work)
            return
        write, sync, then = work
        outcome = capture(write)
        if sync is None or isinstance(outcome, Error):
            self._finish(outcome, then)
            return
        syncing = sync, outcome, then, self._disk.written
        self._engine.later(self._disk.sync_time(), self._end_of, syncing)

    def _end_of(self, work: Syncing) -> None:
        if self._is_over:
            return
        if self._disk.is_stalled:
            self._engine.later(_LOOK, self._end_of, work)
            return
        sync, written, then, began = work
        self._disk.sync_began, self._disk.sync_ends = began, self._disk.written
        synced = capture(sync)
        self._finish(synced if isinstance(synced, Error) else written, then)

    def start(
        self,
        act: Callable[..., object],
        args: tuple[Any, ...],
        then: Callable[[OSError | None], None],
        *,
        sync: Act | None = None,
        wait_s: float = 0.0,
    ) -> None:
        """If the node waits for it, a write takes no time, or is late."""
        disk = self._disk
        if not wait_s or sync is not None or disk.is_stalled or disk.rng.random() < _LATE:
            super().start(act, args, then, sync=sync)
            return
        failed = None
        try:
            act(*args)
        except OSError as error:
            failed = error
        then(failed)

    def end(self) -> None:
        """The process is gone."""
        self._is_over = True


class DiskStore:
    """The `JournalStore` of one life."""

    name = "disque.aof"

    def __init__(self, engine: Engine, disk: Disk) -> None:
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

    def boot(self) -> str:
        """Another one after each loss of power."""
        return f"boot {self._disk.power_losses}"
