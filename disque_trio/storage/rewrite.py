"""A rewrite: writes a new journal with the current jobs, while the node continues.

The jobs are written in small portions, each in its current state. The records of batches in between
are written to the new file too, in order. So the last record of each job in the file is its state,
and a portion blocks the event loop for about a millisecond.
"""

import contextlib
import errno
import itertools
from collections.abc import Iterable, Iterator
from typing import Final

from disque_trio import __version__
from disque_trio.ports import JournalFile, JournalStore
from disque_trio.statemachine import journaling
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.records import LoadJob, Record
from disque_trio.statemachine.state import NodeState
from disque_trio.storage.disk_thread import out_of_memory
from disque_trio.storage.tasks import Tasks
from disque_trio.wire.journal import Format, Writer

SYNC_EVERY: Final = 8 << 20
"""The number of bytes between two syncs with `aof-rewrite-incremental-fsync`, so that the last sync
is short."""


@contextlib.contextmanager
def failing() -> Iterator[None]:
    """A context in which a lack of memory raises OSError, so that only the rewrite fails."""
    try:
        yield
    except MemoryError:
        raise out_of_memory() from None


class Rewrite:
    """One rewrite."""

    file: JournalFile
    """The new file, after `open`."""

    def __init__(
        self,
        store: JournalStore,
        state: NodeState,
        tasks: Tasks,
        format_: Format,
        *,
        stays: bool,
    ) -> None:
        self.stays = stays
        """Is the new file the journal from then on?"""
        self.started = tasks.time()
        self.writer = Writer(format_, store.salt())
        self.is_cancelled = False
        self.moved = tasks.time()
        """When it last made progress."""
        self._store = store
        self._state = state
        self._tasks = tasks
        self._jobs = state.table.walk()
        self._kept: Iterator[Record] = itertools.chain(
            journaling.kept_keys(state), journaling.kept_results(state)
        )
        notes = journaling.first_notes(state.config, store.boot()) if stays else []
        self._chunks: list[bytes] = [
            self.writer.beginning(__version__),
            *map(self.writer.encode_live, notes),
        ]
        self.unwritten = sum(map(len, self._chunks))
        """The number of bytes not written yet."""
        self._unsynced = 0
        self._has_gap = False
        """Was a batch dropped, because there was no memory for its records?"""

    async def open(self, *, may_be_new: bool) -> None:
        """Create the file, in a thread. Raises OSError and, with `may_be_new`, JournalError if
        another node has the journal open."""
        self.file = await self._tasks.on(self._store.thread, self._open, may_be_new)

    def _open(self, may_be_new: bool) -> JournalFile:
        if may_be_new:
            self._store.open().close()
        # After cancellation, another rewrite may have a file with this name.
        self._check()
        return self._store.begin()

    def follow(self, drafts: Iterable[bytes]) -> None:
        """Add the records of a new batch, drafted by a writer of this format. If there is no memory
        for them, the rewrite fails, and frees its memory."""
        if self._has_gap:
            return
        try:
            self._put(b"".join(map(self.writer.seal, drafts)))
        except MemoryError:
            self._has_gap = True
            self._chunks.clear()
            self.unwritten = 0

    def _put(self, data: bytes) -> None:
        self._chunks.append(data)
        self.unwritten += len(data)

    async def write(self) -> None:
        """Write all jobs, and sync."""
        while not self.is_cancelled:
            with failing():
                is_last = not self._portion()
                data = b"".join(self.rest())
            sync = self.file.sync if self._must_sync(len(data), is_last=is_last) else None
            await self._tasks.on(self._store.thread, self.append, data, sync=sync)
            self.moved = self._tasks.time()
            if is_last:
                return
        self._check()

    def end(self) -> None:
        """End the walk over the jobs, after success or failure."""
        self._jobs.end()

    def rest(self) -> list[bytes]:
        """The data since the last call. Raises MemoryError if there was no memory for some of
        it."""
        if self._has_gap:
            raise MemoryError
        chunks, self._chunks = self._chunks, []
        self.unwritten = 0
        return chunks

    def append(self, data: bytes) -> None:
        """Append data to the new file. Runs in a thread."""
        self._check()
        self.file.append(data)

    def replace(self) -> None:
        """Replace the journal by the new file, which must be synced. Runs in a thread. Raises
        OSError if the rewrite is cancelled, because another file may have its name."""
        self._check()
        self._store.replace(self.file)

    def _check(self) -> None:
        if self.is_cancelled:
            raise OSError(errno.ECANCELED, "cancelled")

    def _portion(self) -> bool:
        """Encode the next keys, results or jobs. Returns False once there are none."""
        size = 0
        found = False
        for record in itertools.islice(self._kept, self._state.knobs.rewritten_jobs):
            found = True
            self._put(self.writer.encode_live(record))
        if found:
            return True
        for job in itertools.islice(self._jobs, self._state.knobs.rewritten_jobs):
            found = True
            if journaling.has_record(self._state, job):
                data = self._encode(job)
                self._put(data)
                size += len(data)
                if size > self._state.knobs.rewritten_bytes:
                    break
        return found

    def _encode(self, job: Job) -> bytes:
        """Encode a job. Raises OSError if its body cannot be read, because the old file, which has
        the body, must stay then."""
        try:
            return self.writer.encode_live(LoadJob(journaling.stored(self._state, job)))
        except OSError as error:
            raise OSError(
                f"the body of {job.id.decode()} cannot be read from the spill-directory: "
                f"{error.strerror or error}"
            ) from None

    def _must_sync(self, size: int, *, is_last: bool) -> bool:
        """Must the file be synced after `size` more bytes?"""
        self._unsynced += size
        is_much = self._unsynced > SYNC_EVERY
        if is_last or (is_much and self._state.config.aof_rewrite_incremental_fsync):
            self._unsynced = 0
            return True
        return False
