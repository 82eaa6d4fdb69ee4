"""Appending to the journal's file: batches of bytes are made durable, as `appendfsync` says.

Batches are numbered. `add` takes one in; it is kept once `kept` has reached its number:

* everysec, no: when it has been written, which `add` does at once. While a sync runs, or on a disk
  that has shown itself slow, it is written in a thread;
* always: when it has been synced. Writes and syncs run in a thread, and batches that come
  meanwhile go together with the next one (group commit).

A failure of either sets `trouble`, and nothing is kept until it is mended: once a second everything
since the last good sync is written again and synced, for after a failed sync nobody knows which
pages the disk has.
"""

from collections.abc import Callable
from typing import Final, TypeVar, TypeVarTuple

import trio

from disque_trio.ports import JournalFile, JournalStore, Log
from disque_trio.statemachine.state import NodeState

STALL_S: Final = 10.0
"""A disk that has not answered for so long counts as trouble."""
STALLED: Final = f"no answer from the disk for {STALL_S:.0f} seconds"
SLOW_S: Final = 0.02
"""A write that held up the loop for so long makes the next ones run in a thread, if it had to wait
for the disk and not for a processor that is busy. After the first such write one looks."""
SLOW_FOR_S: Final = 60.0
LONG_SYNC_S: Final = 2.0
MAX_UNSYNCED: Final = 256 << 20
"""Bytes that are held to be written again before a sync must come first."""
SHARE: Final = 8
"""An eighth of what `maxmemory` leaves beside the process is as much."""
LEAST: Final = 128 << 10

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Appender:
    """The end of a journal's file. Without a file it keeps nothing, and every batch at once."""

    def __init__(self, store: JournalStore, state: NodeState, log: Log) -> None:
        self.file: JournalFile | None = None
        self.trouble = ""
        """Why nothing can be kept, in the system's words; empty when all is well."""
        self.last = 0
        """The number of the latest batch."""
        self.kept = 0
        """The number of the latest batch that is as durable as it is to be."""
        self.waiting = 0
        """Bytes that wait to be kept."""
        self.delayed_syncs = 0
        self.changed: Callable[[], None] = lambda: None
        """Called when `kept` or `trouble` has changed by itself."""
        self.pressed = trio.Event()
        """Set when a sync must not wait for its time."""
        self.writing = trio.Lock()
        """Held by whoever writes in a thread. Who needs both takes this one first."""
        self.syncing = trio.Lock()
        self._store = store
        self._state = state
        self._log = log
        self._pending: list[bytes] = []
        """Batches that have not been written."""
        self._unsynced: list[bytes] = []
        """What has been written since the last sync, to be written again if the next one fails."""
        self._unsynced_bytes = 0
        self._synced_size = 0
        self._is_settled = True
        """Will the name of the file outlive a loss of power?"""
        self._work = trio.Event()
        self._working: list[trio.CancelScope] = []
        """What threads do now. Who does not want to wait for them any more cancels."""
        self._busy: list[float] = []
        """Since when: a write and a sync may run at once."""
        self._slow_until = 0.0
        self._suspect_until = 0.0

    def use(self, file: JournalFile, pending: list[bytes]) -> None:
        """Append to this file from now on. It has, synced, all batches but the pending ones."""
        self.file = file
        self._synced_size = file.size
        self._unsynced = []
        self._unsynced_bytes = 0
        self._pending = pending
        self._work.set()

    def drop(self) -> None:
        """There is no file any more: what could not be written is given up, and all is well."""
        if self.trouble:
            self._log.warning("the journal ends without what could not be written")
        self.file = None
        self.trouble = ""
        self._pending, self._unsynced = [], []
        self._unsynced_bytes = 0
        self._is_settled = True
        for scope in self._working:
            scope.cancel()
        self.keep(self.last)

    @property
    def is_busy(self) -> bool:
        """Does the disk work for us?"""
        return self.syncing.locked() or bool(self._busy)

    @property
    def held(self) -> int:
        """Bytes in memory: to be written, or to be written again if a sync fails."""
        return self.waiting + self._unsynced_bytes

    @property
    def must_sync(self) -> bool:
        """Is so much held that a sync must come before anything else?"""
        return self._unsynced_bytes > self.bound(MAX_UNSYNCED)

    def bound(self, most: int) -> int:
        """So many bytes at most, and less where there is little memory."""
        state = self._state
        room = (state.config.maxmemory - state.facts.process_bytes) // SHARE
        return min(most, max(room, LEAST))

    # At once.

    def add(self, data: bytes) -> None:
        """The next batch."""
        self.last += 1
        file = self.file
        if file is None:
            self.kept = self.last
        elif not self._pending and self._may_write_now():
            if self._write_now(file, [data]):
                self.kept = self.last
        else:
            self._pending.append(data)
            self.waiting += len(data)
            self._work.set()

    def _may_write_now(self) -> bool:
        return (
            self._state.config.appendfsync != "always"
            and not self.trouble
            and not self.writing.locked()
            and not self.syncing.locked()
            and trio.current_time() >= self._slow_until
        )

    def _write_now(self, file: JournalFile, batches: list[bytes]) -> bool:
        """False if that failed: the batches are pending."""
        started = trio.current_time()
        waits = self._store.waits() if started < self._suspect_until else 0
        try:
            file.append(_joined(batches))
        except OSError as error:
            self._pending = batches
            self.waiting = sum(map(len, batches))
            self.fail(error)
            return False
        if trio.current_time() - started > SLOW_S:
            if started < self._suspect_until and self._store.waits() > waits:
                self._slow_until = started + SLOW_FOR_S
            self._suspect_until = started + SLOW_FOR_S
        self._note_written(file, batches)
        return True

    def _note_written(self, file: JournalFile, batches: list[bytes]) -> None:
        if self._state.config.appendfsync == "no":
            self._note_synced(file.size)
        else:
            self._unsynced += batches
            self._unsynced_bytes += sum(map(len, batches))
            if self.must_sync:
                self.pressed.set()

    def _note_synced(self, size: int) -> None:
        self._synced_size = size
        self._unsynced = []
        self._unsynced_bytes = 0

    def fail(self, error: OSError) -> None:
        """Nothing can be kept for now."""
        if self.file is None:
            return
        reason = error.strerror or str(error)
        if self.trouble != reason:
            self.trouble = reason
            self._log.warning("the journal cannot be written: writes are refused", error=reason)
            self.changed()

    def _mended(self) -> None:
        self.trouble = ""
        self._log.notice("the journal is written again")
        self._work.set()
        self.changed()

    def keep(self, number: int) -> None:
        """Everything up to this batch is durable."""
        self.kept = max(self.kept, number)
        self.waiting = sum(map(len, self._pending))
        self.changed()

    # In a thread.

    async def in_thread(self, act: Callable[[*Ts], T], *args: *Ts) -> T:
        """What must not take long, or `watch` says that the disk does not answer."""
        started = trio.current_time()
        self._busy.append(started)
        with trio.CancelScope() as scope:
            self._working.append(scope)
            try:
                return await self._store.in_thread(act, *args)
            finally:
                self._busy.remove(started)
                self._working.remove(scope)
        raise OSError(0, STALLED)

    async def write(self) -> None:
        """Write what is pending, for ever."""
        while True:
            await self._work.wait()
            self._work = trio.Event()
            while self._pending and not self.trouble and self.file is not None:
                if self._may_write_now():
                    # A sync is over: otherwise a thread would never be done with what comes.
                    self._write_pending_now(self.file)
                else:
                    await self._write_group(self.file)

    def _write_pending_now(self, file: JournalFile) -> None:
        group, self._pending = self._pending, []
        if self._write_now(file, group):
            self.keep(self.last)

    async def _write_group(self, file: JournalFile) -> None:
        async with self.writing:
            if file is not self.file or self.trouble:
                return
            group, self._pending = self._pending, []
            number = self.last
            must_sync = self._state.config.appendfsync == "always"
            try:
                await self.in_thread(_put, file, group, must_sync)
            except OSError as error:
                if file is self.file:
                    self._pending = group + self._pending
                    self.fail(error)
                return
            self._note_written(file, group)
            if must_sync:
                self._note_synced(file.size)
            self.keep(number)

    async def sync_if_needed(self) -> None:
        """With everysec, sync what was written up to now; more may be written meanwhile."""
        file = self.file
        if file is None or not self._unsynced or self.trouble:
            return
        async with self.syncing:
            if file is not self.file:
                return
            batches, size = self._unsynced, file.size
            count = len(batches)
            started = trio.current_time()
            try:
                await self.in_thread(file.sync)
            except OSError as error:
                self.fail(error)
                return
            self.delayed_syncs += trio.current_time() - started > LONG_SYNC_S
            # With another `appendfsync` since, more may be synced, and `_unsynced` be another list.
            del batches[:count]
            self._synced_size = max(self._synced_size, size)
            was_much = self.must_sync
            self._unsynced_bytes = sum(map(len, self._unsynced))
            if was_much:
                self.changed()

    async def flush(self) -> bool:
        """Write and sync everything, if that can be done."""
        async with self.writing, self.syncing:
            file = self.file
            if file is None:
                return True
            group, self._pending = self._pending, []
            number = self.last
            try:
                if self.trouble:
                    await self.in_thread(self._put_anew, file, self._unsynced + group)
                else:
                    await self.in_thread(_put, file, group, True)
            except OSError as error:
                if file is self.file:
                    self._pending = group + self._pending
                    self.fail(error)
                return False
            self._note_synced(file.size)
            self.keep(number)
            if self.trouble:
                self._mended()
            return True

    def _put_anew(self, file: JournalFile, group: list[bytes]) -> None:
        if not self._is_settled:
            self._store.settle()
            self._is_settled = True
        file.rewind(self._synced_size)
        _put(file, group, must_sync=True)

    async def settle(self) -> bool:
        """The file has taken another's place: its name must last before it is relied upon."""
        self._is_settled = False
        try:
            await self.in_thread(self._store.settle)
        except OSError as error:
            self.fail(error)
            return False
        self._is_settled = True
        if self.trouble:
            self._mended()
        return True

    def settle_at_once(self) -> None:
        """The same, while everything waits. OSError: it failed, and is trouble."""
        self._is_settled = False
        try:
            self._store.settle()
        except OSError as error:
            self.fail(error)
            raise
        self._is_settled = True

    async def watch(self) -> None:
        """A disk that does not answer is trouble, until it does."""
        while True:
            await trio.sleep(STALL_S / 10)
            if not self._busy:
                if self.trouble == STALLED:
                    self._mended()
            elif trio.current_time() - min(self._busy) > STALL_S and not self.trouble:
                self.fail(OSError(0, STALLED))


def _joined(group: list[bytes]) -> bytes:
    return group[0] if len(group) == 1 else b"".join(group)


def _put(file: JournalFile, group: list[bytes], must_sync: bool) -> None:
    """In a thread."""
    file.append(_joined(group))
    if must_sync:
        file.sync()
