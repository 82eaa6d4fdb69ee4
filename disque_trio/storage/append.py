"""Appending to the journal's file: makes batches of bytes durable, according to `appendfsync`.

Batches are numbered. `add` appends one; it is durable once `kept` has reached its number:

* everysec, no: when it has been written;
* always: when it has been synced, if it must survive a power failure.

A write into the page cache rarely waits for the disk, but then it may take as long as a sync. So
the event loop writes itself only while the disk is quick (`disk_thread`), and never syncs.
Otherwise the journal's own thread writes one group of batches at a time, and batches that arrive
meanwhile form the next group (group commit). The loop waits up to `QUICK_S` for a write, so that
the output of the batch is nearly always sent in the same turn; it does not wait for a sync. Syncs
of everysec run in another thread.

A failed write or sync sets `trouble`, and nothing is kept until it is resolved: once per second,
everything since the last good sync is written again and synced, because after a failed sync it is
unknown which pages the disk has.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar, TypeVarTuple

import attrs

from disque_trio.ports import JournalFile, JournalStore, Log
from disque_trio.statemachine.state import NodeState
from disque_trio.storage.tasks import Cancelled, Event, Lock, Scope, Tasks

WRITE_STALL_S: Final = 5.0
"""A write that takes longer counts as failed, because clients wait for it."""
STALL_S: Final = 10.0
"""Any other operation that takes longer counts as failed. Clients do not wait for syncs of
everysec, which may take some seconds if other programs use the disk."""
STALLED: Final = "no answer from the disk"
QUICK_S: Final = 0.001
"""How long the event loop waits for a write: nearly all take a tenth of that, and delaying the
batch to a later turn costs more."""
LONG_SYNC_S: Final = 2.0
SHARE: Final = 8
"""Up to 1/8 of `maxmemory` less the process itself may wait in memory."""
LEAST: Final = 128 << 10
"""The minimum of this limit."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


@attrs.define(eq=False)
class Group:
    """A group of batches that is being written."""

    file: JournalFile
    batches: list[bytes]
    number: int
    """The number of the last batch."""
    must_sync: bool
    started: float


class Appender:
    """Appends to a journal's file. Without a file, every batch counts as kept at once."""

    def __init__(self, store: JournalStore, state: NodeState, log: Log, tasks: Tasks) -> None:
        self._tasks = tasks
        self.file: JournalFile | None = None
        self.trouble = ""
        """Why nothing can be kept: the system's error text; empty if there is no error."""
        self.last = 0
        """The number of the latest batch."""
        self.kept = 0
        """The number of the latest batch that is as durable as `appendfsync` requires."""
        self.waiting = 0
        """The size of batches that are not kept yet."""
        self.delayed_syncs = 0
        self.changed: Callable[[], None] = lambda: None
        """Called when `kept` or `trouble` has changed."""
        self.pressed = Event(self._tasks)
        """Set when a sync is needed before its time."""
        self.writing = Lock(tasks, self.write_on)
        """Held while no group may be written."""
        self.syncing = Lock(tasks)
        self._store = store
        self._state = state
        self._log = log
        self._pending: list[bytes] = []
        """Batches not written yet."""
        self._must_last = False
        """Must any of them survive a power failure?"""
        self._unsynced: list[bytes] = []
        """Batches written since the last sync, to be written again if the next one fails."""
        self._unsynced_bytes = 0
        self._synced_size = 0
        self._is_settled = True
        """Would the rename of the file survive a power failure?"""
        self.group: Group | None = None
        """The group that the journal's thread is writing."""
        self._idle = Event(self._tasks)
        """Set when the group has been written."""
        self._working: list[Scope] = []
        """Scopes around waits for threads; cancelled to stop waiting."""
        self._busy: list[float] = []
        """When each running operation began: a write and a sync may run at the same time."""

    def use(self, file: JournalFile, pending: list[bytes]) -> None:
        """Append to this file from now on. It must have all batches but the pending ones,
        synced."""
        self.file = file
        self._synced_size = file.size
        self._unsynced = []
        self._unsynced_bytes = 0
        self._pending = pending
        self._must_last = bool(pending)

    def drop(self) -> None:
        """Stop using a file, and drop the batches that could not be written."""
        if self.trouble:
            self._log.warning("the journal lacks records that could not be written")
        self.file = None
        self.trouble = ""
        self._pending, self._unsynced = [], []
        self._unsynced_bytes = 0
        self._is_settled = True
        for scope in self._working:
            scope.cancel()
        # Stop waiting for the group that is being written.
        if self.group is not None:
            self._busy.remove(self.group.started)
            self.group = None
            self._store.thread.abandon()
            self._idle.set()
        self.keep(self.last)

    @property
    def is_busy(self) -> bool:
        """Is an operation running?"""
        return self.syncing.locked() or bool(self._busy)

    @property
    def held(self) -> int:
        """The bytes in memory: batches not written yet, and those kept in case a sync fails."""
        return self.waiting + self._unsynced_bytes

    @property
    def must_sync(self) -> bool:
        """Is so much unsynced, and kept in memory, that a sync must precede further batches?"""
        return self.exceeds(self._unsynced_bytes, self._state.knobs.unsynced_bytes)

    def exceeds(self, size: int, most: int) -> bool:
        """Is the size greater than `most`, or than the limit for little memory?"""
        if size <= LEAST and size <= most:
            return False
        state = self._state
        room = (state.config.maxmemory - state.facts.process_bytes) // SHARE
        return size > min(most, max(room, LEAST))

    # Without waiting.

    def add(self, data: bytes, *, must_last: bool = True) -> None:
        """Append the next batch. Without `must_last`, it need not survive a power failure."""
        self.last += 1
        if self.file is None:
            self.kept = self.last
        else:
            self._pending.append(data)
            self._must_last |= must_last
            self.waiting += len(data)
            if self.group is None:
                self.write_on(QUICK_S)

    def write_on(self, wait_s: float = 0.0) -> None:
        """Have the thread write the pending batches, unless it is writing or must not. Wait up to
        `wait_s` for a write without sync."""
        file = self.file
        if (
            file is None
            or self.group is not None
            or not self._pending
            or self.trouble
            or self.writing.locked()
        ):
            return
        batches, self._pending = self._pending, []
        must_sync = self._must_last and self._state.config.appendfsync == "always"
        self._must_last = False
        started = self._tasks.time()
        group = self.group = Group(file, batches, self.last, must_sync, started)
        self._busy.append(started)
        self._store.thread.start(
            write,
            (file, batches),
            partial(self._written, group),
            sync=file.sync if must_sync else None,
            wait_s=0.0 if must_sync else wait_s,
        )

    def _written(self, group: Group, error: OSError | None) -> None:
        """The thread has written the group, or has failed."""
        if group is not self.group:
            return
        self.group = None
        self._busy.remove(group.started)
        self._idle.set()
        if error is not None:
            self._pending = group.batches + self._pending
            self._must_last = True
            self.fail(error)
            return
        self._note_written(group.file, group.batches)
        if group.must_sync:
            self._note_synced(group.file.size)
        self.keep(group.number)
        if self._pending:
            self.write_on()

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
        """Set `trouble`: nothing can be kept until it is resolved."""
        if self.file is None:
            return
        reason = error.strerror or str(error)
        if self.trouble != reason:
            self.trouble = reason
            self._log.warning("the journal cannot be written: writes are refused", error=reason)
            self.changed()

    def _mended(self) -> None:
        self.trouble = ""
        self._log.notice("the journal can be written again")
        self.write_on()
        self.changed()

    def keep(self, number: int) -> None:
        """Mark everything up to this batch as durable."""
        self.kept = max(self.kept, number)
        self.waiting = sum(map(len, self._pending)) if self._pending else 0
        self.changed()

    # Waiting for a thread.

    async def in_thread(
        self, act: Callable[[*Ts], T], *args: *Ts, sync: Callable[[], object] | None = None
    ) -> T:
        """Run `act`, then `sync`, in a thread. `watch` sets `trouble` if it takes too long."""
        started = self._tasks.time()
        self._busy.append(started)
        with self._tasks.scope() as scope:
            self._working.append(scope)
            try:
                return await self._tasks.on(self._store.thread, act, *args, sync=sync)
            finally:
                self._busy.remove(started)
                self._working.remove(scope)
        raise OSError(0, STALLED)

    async def finish_group(self) -> None:
        """Wait for the end of the group that is being written. The caller must hold `writing`."""
        while self.group is not None:
            self._idle = Event(self._tasks)
            await self._idle.wait()

    async def sync_if_needed(self) -> None:
        """Sync what has been written so far, for everysec. More may be written meanwhile."""
        file = self.file
        if file is None or not self._unsynced or self.trouble:
            return
        async with self.syncing:
            if file is not self.file or not self._unsynced:
                return  # a flush was first; it may be the last one before the file is closed
            batches, size = self._unsynced, file.size
            count = len(batches)
            started = self._tasks.time()
            try:
                await self.in_thread(nothing, sync=file.sync)
            except OSError as error:
                if file is self.file:
                    self.fail(error)
                return
            self.delayed_syncs += self._tasks.time() - started > LONG_SYNC_S
            # If `appendfsync` has changed meanwhile, more may be synced, and `_unsynced` may be
            # another list.
            del batches[:count]
            self._synced_size = max(self._synced_size, size)
            was_much = self.must_sync
            self._unsynced_bytes = sum(map(len, self._unsynced))
            if was_much:
                self.changed()

    async def flush(self) -> bool:
        """Write and sync everything. Returns False if that fails."""
        async with self.writing, self.syncing:
            await self.finish_group()
            file = self.file
            if file is None:
                return True
            group, self._pending = self._pending, []
            number = self.last
            try:
                if self.trouble:
                    if not self._is_settled:
                        await self._settle()
                    anew = self._unsynced + group
                    await self.in_thread(self._write_anew, file, anew, sync=file.sync)
                else:
                    await self.in_thread(write, file, group, sync=file.sync)
            except (OSError, Cancelled) as error:
                if file is self.file:
                    self._pending = group + self._pending
                    self.fail(error if isinstance(error, OSError) else OSError(0, STALLED))
                if isinstance(error, Cancelled):
                    # The thread still writes to the file, so nothing else must write.
                    raise
                return False
            self._note_synced(file.size)
            self.keep(number)
            if self.trouble:
                self._mended()
            return True

    async def _settle(self) -> None:
        await self.in_thread(nothing, sync=self._store.settle)
        self._is_settled = True

    def _write_anew(self, file: JournalFile, group: list[bytes]) -> None:
        file.rewind(self._synced_size)
        write(file, group)

    async def settle(self) -> bool:
        """Make the rename of the file durable, after it has replaced another one. Returns False if
        that fails."""
        self._is_settled = False
        try:
            await self._settle()
        except OSError as error:
            self.fail(error)
            return False
        if self.trouble:
            self._mended()
        return True

    async def watch(self) -> None:
        """Set `trouble` while the disk does not answer; never returns."""
        while True:
            await self._tasks.sleep(STALL_S / 10)
            if not self._busy:
                if self.trouble == STALLED:
                    self._mended()
            elif self._hangs() and not self.trouble:
                self.fail(OSError(0, STALLED))

    def _hangs(self) -> bool:
        """Has an operation taken too long?"""
        now, group = self._tasks.time(), self.group
        if group is not None and now - group.started > WRITE_STALL_S:
            return True
        return now - min(self._busy) > STALL_S


def write(file: JournalFile, group: list[bytes]) -> None:
    """Write a group. Runs in a thread, or in the loop while the disk is quick."""
    file.append(group[0] if len(group) == 1 else b"".join(group))


def nothing() -> None:
    """Does nothing, for a sync without a write."""
