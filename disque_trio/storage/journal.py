"""The journal of a node: records are appended to its file, which is rewritten when it has grown.

`append` makes the bytes durable, `rewriter` makes a new file, `load` reads one.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Final

from disque_trio import __version__
from disque_trio.ports import JournalError, JournalFile, JournalStore, Log
from disque_trio.statemachine.chores import JournalVitals
from disque_trio.statemachine.journaling import (
    STARTED,
    STOPPED,
    UNKNOWN,
    are_dequeuings,
    first_notes,
    has_no_place,
    known_since,
)
from disque_trio.statemachine.records import DeleteJob, LoadJob, Record
from disque_trio.statemachine.state import NodeState
from disque_trio.storage.append import STALL_S, Appender, write
from disque_trio.storage.load import Loading, load, read_at_once
from disque_trio.storage.rewrite import Rewrite
from disque_trio.storage.rewriter import Rewriter
from disque_trio.storage.tasks import Event, Tasks
from disque_trio.wire.journal import DamagedFileError, Format, Reader, Writer, this

CRON_S: Final = 1.0
"""How often the file is synced with everysec, retried after an error, and checked for growth."""
WHOLE_S: Final = 5.0
"""The pause before the next attempt to replace a lost file."""
CLOSE_S: Final = 30.0
"""How long a stopping node waits for the disk."""
_UNSYNCED: Final = "left unsynced"
"""Why the file was lost, if the node could not sync it at its start."""
QUIET_S: Final = 10.0
"""The shortest time between two warnings of unreadable bodies."""


class Journal:
    """Keeps records, from `load` or a first rewrite until `stop`."""

    def __init__(self, store: JournalStore, state: NodeState, log: Log) -> None:
        self.tasks = tasks = Tasks()
        """All tasks of the node."""
        self.end = Appender(store, state, log, tasks)
        """The appender to the file: the kept batches, and the error that prevents writing."""
        self.rewriter = Rewriter(store, state, self.end, log, tasks, self._use)
        self.loading = Loading(tasks)
        self._store = store
        self.thread = store.thread
        self._state = state
        self._log = log
        self._writer: Writer
        self._base_size = 0
        self._is_stopping = False
        self._warn_at = 0.0
        self._loss = ""
        """What another process has done to the file (`JournalVitals.file_status`), until there is a
        new one."""
        self._whole_at = 0.0
        """The earliest time of the next attempt to replace a lost file."""

    @property
    def rewrite(self) -> Rewrite | None:
        """The running rewrite."""
        return self.rewriter.current

    @property
    def is_full(self) -> bool:
        """Does so much wait for the disk that no further requests that write should be served?

        After an error they are served, because writes are refused, and clients must receive the
        error.
        """
        end, rewrite = self.end, self.rewrite
        if end.trouble:
            return False
        waiting = end.waiting if rewrite is None else max(end.waiting, rewrite.unwritten)
        return end.exceeds(waiting, self._state.knobs.waiting_bytes) or end.must_sync

    @property
    def is_busy(self) -> bool:
        """Are there tasks of the journal that should continue at once?"""
        return self.rewrite is not None or self.end.writing.locked()

    def abandon(self) -> None:
        """The node has ended: write nothing further."""
        self.end.file = None
        self.thread.abandon()

    def record(self, records: Sequence[Record]) -> None:
        """Append the next batch of records."""
        rewrite, end = self.rewrite, self.end
        if rewrite is None:
            has_file = end.file is not None
            data = b"".join(self._bytes(self._writer.encode_live, records)) if has_file else b""
            end.add(data, must_last=not are_dequeuings(records))
            return
        drafts = self._bytes(rewrite.writer.draft, records)
        rewrite.follow(drafts)
        if end.file is None:
            end.add(b"")
            return
        writer = self._writer
        if writer.format is not rewrite.writer.format:
            drafts = self._bytes(writer.draft, records)
        end.add(b"".join(map(writer.seal, drafts)), must_last=not are_dequeuings(records))

    def _bytes(self, encode: Callable[[Record], bytes], records: Sequence[Record]) -> list[bytes]:
        """The encoded records. Omits a record whose spilled body cannot be read: earlier records of
        its job have the body, and stay valid."""
        try:
            return list(map(encode, records))
        except OSError:
            return [data for record in records if (data := self._try(encode, record))]

    def _try(self, encode: Callable[[Record], bytes], record: Record) -> bytes:
        try:
            return encode(record)
        except OSError as error:
            now = self.tasks.time()
            if now >= self._warn_at and isinstance(record, LoadJob):
                self._warn_at = now + QUIET_S
                self._log.warning(
                    "cannot read a spilled body: the journal keeps its earlier record of the job",
                    job=record.copy.id.decode(),
                    error=error.strerror or str(error),
                )
            return b""

    def weigh(self) -> None:
        """Account for the memory of the journal."""
        rewrite = self.rewrite
        held = self.end.held if rewrite is None else self.end.held + rewrite.unwritten
        self._state.facts.traffic.journal = held

    # Loading.

    def must_load(self) -> bool:
        """Must a file be loaded at the start?"""
        config = self._state.config
        return config.appendonly or config.aof_enqueue_jobs_once

    async def load(self, take: Callable[[list[Record]], None]) -> None:
        """Read the file, and append to it from now on if `appendonly` is set. Raises
        JournalError."""
        config, store = self._state.config, self._store
        self.loading.begin(self._state.wall // 1000, 0)
        if not config.appendonly and not await self.tasks.on(store.thread, store.exists):
            raise JournalError(
                f"aof-enqueue-jobs-once is yes, but there is no {store.name} to load: set 'no', "
                "or put the file there"
            )
        file = await self.tasks.on(store.thread, store.open)
        self.loading.begin(self._state.wall // 1000, file.size)
        last: list[Record] = []

        def took(records: list[Record]) -> None:
            last[:] = records[-1:] or last
            take(records)

        reader = await load(
            store, file, self.loading, took, self._log, may_cut=config.aof_load_truncated
        )
        unwritten: list[bytes] = []
        loss = ""
        if reader.format is not None:
            was_stopped = last == [STOPPED]
            unwritten, loss = await self._note_start(file, reader, take, was_stopped=was_stopped)
        self.loading.since = 0
        if not config.appendonly:
            await self.tasks.on(store.thread, file.close)
        elif reader.format is not None:
            self._use(file, reader.writer(), unwritten, loss)
        else:
            await self._begin(file)

    async def _note_start(
        self,
        file: JournalFile,
        reader: Reader,
        take: Callable[[list[Record]], None],
        *,
        was_stopped: bool,
    ) -> tuple[list[bytes], str]:
        """Write notes about this start to the file, and sync it: an earlier process may have been
        killed before it did so, and what is loaded is confirmed from now on. This start relies on
        the queues in the file if they are complete: if it ends with STOPPED, or if only the process
        has died while each job that left a queue had a record. If the notes cannot be written, this
        start does not rely on the queues. Returns the notes, which are to be written first, and the
        `_loss` if the sync has failed: the system may have dropped what it had not written."""
        state, boot = self._state, self._store.boot()
        note = state.queues_note
        first = first_notes(state.config, boot) if state.config.appendonly else []
        is_same = reader.format is Format.FRAMED and reader.written_by == this(__version__)
        are_known = was_stopped or (is_same and bool(boot) and note == known_since(boot).id)
        notes: list[Record] = [STARTED] if was_stopped else []
        if reader.format is Format.FRAMED and not is_same:
            notes.append(this(__version__).note())
        if not are_known if first else note not in (b"", UNKNOWN.id):
            notes.append(UNKNOWN)
        if notes or first != [DeleteJob(note)]:
            notes += first
        if are_known:
            take([STOPPED])
        data = list(map(reader.writer().encode_live, notes))
        size = file.size + sum(map(len, data))
        try:
            await self.tasks.on(self._store.thread, write, file, data, sync=file.sync)
        except OSError as error:
            self._log.warning(
                "cannot record the start in the journal: enqueued jobs wait for RETRY",
                error=error.strerror or str(error),
            )
            take([STARTED])
            return data, _UNSYNCED if file.size == size else ""
        return [], ""

    async def mend_format(self) -> None:
        """Rewrite the loaded file if its format is not that of `aof-format`. Raises JournalError if
        that format has no room for the extensions of its jobs."""
        if self.end.file is not None and self._writer.format is not self.rewriter.format():
            if has_no_place(self._state, self._state.config):
                raise JournalError(
                    f"{self._store.name} has jobs with extensions, such as PRIORITY, which "
                    "aof-format disque cannot represent: set 'aof-format framed'"
                )
            self._log.notice("the format of the journal has changed: rewriting")
            await self.start_rewrite(stays=True)

    async def _begin(self, file: JournalFile) -> None:
        """Begin with an empty file."""
        writer = Writer(self.rewriter.format(), self._store.salt())
        notes = first_notes(self._state.config, self._store.boot())
        beginning = [writer.beginning(__version__), *map(writer.encode_live, notes)]
        try:
            await self.tasks.on(self._store.thread, write, file, beginning, sync=file.sync)
        except OSError as error:
            raise JournalError(f"cannot write {self._store.name}: {error.strerror}") from None
        self._use(file, writer, [])

    def _use(self, file: JournalFile, writer: Writer, pending: list[bytes], loss: str = "") -> None:
        self._writer = writer
        self._loss = loss
        self._base_size = file.size
        self.end.use(file, pending)

    def read_at_once(self) -> list[Record] | str:
        """All records of the file, read without yielding to other tasks; or an error text."""
        file = self.end.file
        if file is None:
            return "The append only file is being written for the first time"
        try:
            return read_at_once(file)
        except (OSError, DamagedFileError) as error:
            return str(error)

    # Running.

    def start(self) -> None:
        """Begin to write, sync and rewrite."""
        self.end.write_on()
        self.tasks.start(self.end.watch())
        self.tasks.start(self._run())

    async def _run(self) -> None:
        while True:
            with self.tasks.move_on_after(CRON_S):
                await self.end.pressed.wait()
            # From now on, a request is for the next turn: this one may have begun its sync.
            self.end.pressed = Event(self.tasks)
            await self._cron()
            self.weigh()

    async def _cron(self) -> None:
        if self._is_stopping:
            return
        if self._loss or await self._is_lost():
            await self._make_whole()
        elif self.end.trouble:
            await self.end.flush()
        elif self._may_sync():
            await self.end.sync_if_needed()
        if not self._is_stopping:
            await self._rewrite_if_needed()

    async def _is_lost(self) -> bool:
        """Has another process removed, replaced or truncated the file?"""
        end, file = self.end, self.end.file
        if file is None:
            return False
        try:
            loss = await end.in_thread(file.loss)
        except OSError as error:
            if file is end.file:  # otherwise a rewrite has closed it meanwhile
                end.fail(error)
            return False
        # A rewrite that is finishing replaces the file as well.
        if file is end.file and not end.writing.locked():
            self._loss = loss
        return bool(self._loss)

    async def _make_whole(self) -> None:
        """Replace a lost file, without which the next start would lack confirmed jobs: refuse
        writes until a new file has everything. A foreign file in its place is kept under another
        name."""
        if self.rewrite is not None:
            return
        what = (
            "could not be synced at the start of the node"
            if self._loss == _UNSYNCED
            else f"was {self._loss} by another process"
        )
        self.end.fail(OSError(0, f"{self._store.name} {what}, and is being rewritten"))
        if self.tasks.time() < self._whole_at:
            return
        self._whole_at = self.tasks.time() + WHOLE_S
        try:
            if self._loss == "replaced":
                await self.tasks.on(self._store.thread, self._store.set_aside)
        except (OSError, JournalError) as error:
            self._log.warning("cannot move the file in the journal's place", error=str(error))
            return
        await self.start_rewrite(stays=True)

    def _may_sync(self) -> bool:
        config = self._state.config
        if self.end.must_sync:
            return True
        if config.appendfsync == "no":
            return False
        return self.rewrite is None or not config.no_appendfsync_on_rewrite

    def stop(self) -> None:
        """Stop keeping records: write the pending ones, and close. From now on, jobs leave their
        queues without a record."""
        if self.rewrite is not None:
            self.rewrite.is_cancelled = True
        if not self._is_stopping:
            self._is_stopping = True
            if self._state.config.records_queues:
                self.record([UNKNOWN])
            self.tasks.start(self._stop())

    async def _stop(self) -> None:
        """Errors do not matter, because the file is no longer needed."""
        with self.tasks.move_on_after(STALL_S):
            while self.rewrite is not None:
                await self.tasks.sleep(CRON_S / 10)
            await self.end.flush()
        self.rewriter.give_up()
        file = self.end.file
        self.end.drop()
        self._is_stopping = False
        if file is not None:
            self.tasks.start(self._let_go(file))

    async def _let_go(self, file: JournalFile) -> None:
        """The content is synced or dropped, so an error on closing does not matter."""
        with contextlib.suppress(OSError):
            await self.tasks.on(self._store.thread, file.close)

    async def close(self, *, has_queues: bool = False) -> None:
        """The node stops: write and sync the pending records, unless the disk does not answer.

        `has_queues`: the file has the queues too, and there are no further changes.
        """
        if has_queues:
            self.record([STOPPED])
        with self.tasks.move_on_after(CLOSE_S) as scope:
            if self.end.file is not None:
                await self.end.flush()
                await self._let_go(self.end.file)
            elif self._state.config.appendonly:
                # The first version of the file is not complete yet.
                await self.rewriter.write_whole()
        if scope.was_cut:
            self._log.warning("the disk does not answer: exiting without closing the journal")

    # Rewriting.

    async def start_rewrite(self, *, stays: bool) -> str | None:
        """Begin to rewrite the file in the background. Returns an error text, or None.

        `stays`: the new file is the journal from then on.
        """
        if self._is_stopping:
            return "The append only file is being closed, try again"
        return await self.rewriter.start(stays=stays)

    async def _rewrite_if_needed(self) -> None:
        """Start a rewrite if the file has no complete first version, or has grown."""
        file, config, rewriter = self.end.file, self._state.config, self.rewriter
        if rewriter.current is not None or self.tasks.time() < rewriter.at:
            return
        if self.loading.since:
            # Not everything in the file has been loaded yet.
            return
        if file is None:
            if config.appendonly:
                await self.start_rewrite(stays=True)
            return
        if self._state.memory.is_refused:
            # A rewrite keeps the batches that arrive meanwhile in memory, and its threads need
            # memory.
            return
        percent = config.auto_aof_rewrite_percentage
        has_grown = file.size * 100 // max(self._base_size, 1) - 100 >= percent
        if percent and has_grown and file.size > config.auto_aof_rewrite_min_size:
            self._log.notice("the journal has grown: rewriting", size=file.size)
            await self.start_rewrite(stays=True)

    def vitals(self) -> JournalVitals:
        """The state of the journal, for INFO."""
        end, rewrite = self.end, self.rewrite
        now = self.tasks.time()
        state = "off"
        if self._state.config.appendonly:
            state = "wait-rewrite" if end.file is None and rewrite is not None else "on"
        return JournalVitals(
            **self.loading.shown(now),
            state=state,
            is_rewriting=rewrite is not None,
            last_rewrite_s=self.rewriter.last_s,
            current_rewrite_s=-1 if rewrite is None else int(now - rewrite.started),
            last_rewrite_ok=not self.rewriter.has_failed,
            last_write_ok=not end.trouble,
            file_status=self._loss or "ok",
            size=0 if end.file is None else end.file.size,
            base_size=self._base_size,
            unwritten=end.waiting,
            rewrite_unwritten=0 if rewrite is None else rewrite.unwritten,
            is_syncing=end.is_busy,
            delayed_syncs=end.delayed_syncs,
        )
