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
"""The time of a write into the system's cache if the node does not wait for it, with the way to a
thread and back."""
_LATE: Final = 0.125
"""The probability that the node waits for a write in vain; it is then completed in a later
batch."""
_LOOK: Final[Micros] = 10_000
"""The interval at which a thread checks whether the disk still hangs."""
SALT: Final = 0x5EED


class SimFile:
    """The `JournalFile` of one life."""

    def __init__(self, disk: Disk, content: Content) -> None:
        self.content = content
        self.size = len(content.data)
        self._disk = disk

    def read(self, offset: int, count: int) -> bytes:
        """Return up to `count` bytes."""
        return bytes(self.content.data[offset : offset + count])

    def append(self, data: bytes) -> None:
        """Write at the end."""
        self._disk.write(self.content, self.size, data)
        self.size += len(data)

    def sync(self) -> None:
        """Sync all writes to the disk."""
        self._disk.sync(self.content)

    def rewind(self, size: int) -> None:
        """Continue to write at this position."""
        self.size = size

    def cut(self, size: int) -> None:
        """Keep this many bytes. The change is synced at once, unlike in the real file."""
        self.size = size
        del self.content.data[size:]
        self.content.settle()

    def loss(self) -> str:
        """Return an empty text: no other process uses this disk."""
        return ""

    def close(self) -> None:
        """Do nothing: there is no handle."""


Writing = tuple[Act, Act | None, Then]
"""The write, the sync, and what to call afterwards."""
Syncing = tuple[Act, Outcome[Any], Then, int]
"""The sync, the outcome of the write, what to call afterwards, and the number of writes when the
sync began."""


class SimThread(SimulatedThread):
    """The `DiskThread` of one life. A write reaches the system's cache after a moment, and survives
    the process from then on; the following sync takes the time of the disk."""

    def __init__(self, engine: Engine, disk: Disk) -> None:
        super().__init__()
        self._engine = engine
        self._disk = disk
        self._is_over = False
        """The process and its threads have ended."""

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
        """Start a write. If the node waits for it, it takes no time, or is late."""
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
        """End the thread with its process."""
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
        """Return the journal."""
        return SimFile(self._disk, self._disk.file)

    def begin(self) -> SimFile:
        """Return an empty file beside the journal."""
        self._disk.check()
        return SimFile(self._disk, Content())

    def replace(self, new: JournalFile) -> None:
        """Replace the journal by the new file."""
        assert isinstance(new, SimFile)
        self._disk.before = self._disk.before or self._disk.file
        self._disk.file = new.content

    def set_aside(self) -> None:
        """Do nothing: there is no file to set aside."""

    def settle(self) -> None:
        """Sync the names of the files."""
        if self._disk.is_broken:
            raise OSError(5, BROKEN)
        self._disk.before = None

    def discard(self, new: JournalFile) -> None:
        """Remove the new file."""

    def salt(self) -> int:
        """Return a constant, to expose code that relies on a new one each time."""
        return SALT

    def boot(self) -> str:
        """Return an id that changes with each power failure."""
        return f"boot {self._disk.power_losses}"
