"""A disk in memory for journals: it can be slow, full or broken, and forgets what is not synced."""

from collections.abc import Awaitable, Callable

import trio

from disque_trio.ports import JournalError, JournalFile
from disque_trio.sim.engines.simulated_thread import Act, SimulatedThread, Then, done
from disque_trio.statemachine.records import Record
from disque_trio.wire.journal import Reader


class MemoryThread(SimulatedThread):
    """The `DiskThread` of what is in memory: each piece of work takes as long as `delay`."""

    def __init__(self, delay: Callable[[], Awaitable[None]]) -> None:
        super().__init__()
        self._delay = delay

    def _begin(self, write: Act, sync: Act | None, then: Then) -> None:
        trio.lowlevel.spawn_system_task(self._work, write, sync, then)

    async def _work(self, write: Act, sync: Act | None, then: Then) -> None:
        await self._delay()
        self._finish(done(write, sync), then)


class MemoryFile:
    """A file. `synced` is what a loss of power leaves of it."""

    def __init__(self, disk: "MemoryDisk") -> None:
        self.disk = disk
        self.size = 0
        self.data = bytearray()
        self.synced = b""
        self.is_closed = False
        self.appends = 0
        self.syncs = 0

    def read(self, offset: int, count: int) -> bytes:
        return bytes(self.data[offset : offset + count])

    def append(self, data: bytes) -> None:
        assert not self.is_closed
        self.disk.meet(self.disk.write_error)
        if self.size + len(data) > self.disk.room:
            raise OSError(28, "No space left on device")
        self.data[self.size : self.size + len(data)] = data
        self.size += len(data)
        self.appends += 1

    def sync(self) -> None:
        assert not self.is_closed
        self.disk.meet(self.disk.sync_error)
        self.synced = bytes(self.data)
        self.syncs += 1

    def rewind(self, size: int) -> None:
        self.size = size

    def cut(self, size: int) -> None:
        self.size = size
        del self.data[size:]

    def loss(self) -> str:
        if self.is_closed:
            raise OSError(9, "Bad file descriptor")
        return self.disk.loss if self.disk.file is self else "replaced"

    def close(self) -> None:
        self.is_closed = True
        self.disk.meet(self.disk.close_error)


class MemoryDisk:
    """The `JournalStore` of a node in memory. What is done in a thread takes `latency` seconds."""

    name = "disque.aof"

    def __init__(self, content: bytes | None = None) -> None:
        self.file: MemoryFile | None = None
        self.new: MemoryFile | None = None
        self.thread = MemoryThread(self._delay)
        self.latency = 0.0
        self.room = 1 << 40
        self.write_error: OSError | None = None
        self.sync_error: OSError | None = None
        self.begin_error: OSError | None = None
        self.settle_error: OSError | None = None
        self.close_error: OSError | None = None
        self.in_use = False
        self.booted = "a boot"
        self.loss = ""
        """What another process has done to the file."""
        self.aside = 0
        if content is not None:
            self.file = MemoryFile(self)
            self.file.append(content)
            self.file.sync()

    def meet(self, error: OSError | None) -> None:
        if error is not None:
            raise error

    def exists(self) -> bool:
        return self.file is not None

    def open(self) -> MemoryFile:
        if self.in_use:
            raise JournalError("disque.aof is in use by another node")
        if self.file is None:
            self.file = MemoryFile(self)
        self.file.is_closed = False
        return self.file

    def begin(self) -> MemoryFile:
        self.meet(self.begin_error)
        self.new = MemoryFile(self)
        return self.new

    def replace(self, new: JournalFile) -> None:
        assert new is self.new
        self.file, self.new = self.new, None
        self.loss = ""

    def set_aside(self) -> None:
        if self.in_use:
            raise JournalError("disque.aof is in use by another node")
        self.aside += 1

    def settle(self) -> None:
        self.meet(self.settle_error)

    def discard(self, new: JournalFile) -> None:
        if new is self.new:
            self.new = None
        new.close()

    def salt(self) -> int:
        return 7

    def boot(self) -> str:
        return self.booted

    async def _delay(self) -> None:
        if self.latency:
            await trio.sleep(self.latency)
        else:
            await trio.lowlevel.checkpoint()

    # What a test asks.

    @property
    def content(self) -> bytes:
        """What a crash of the process leaves."""
        assert self.file is not None
        return bytes(self.file.data[: self.file.size])

    @property
    def durable(self) -> bytes:
        """What a loss of power leaves."""
        assert self.file is not None
        return self.file.synced

    def records(self) -> list[Record]:
        """What the file says."""
        return read(self.content)


def read(data: bytes) -> list[Record]:
    """The records in these bytes, of which none is torn."""
    reader = Reader()
    records = reader.feed(data) if data else []
    assert reader.finish() == 0
    return records
