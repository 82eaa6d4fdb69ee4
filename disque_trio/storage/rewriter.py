"""Runs rewrites of the journal's file: one at a time, while the node continues.

Only the portions of `rewrite` run in the event loop: files are created, written, synced, renamed
and closed in threads.
"""

import contextlib
from collections.abc import Callable
from typing import Final

from disque_trio.ports import JournalError, JournalFile, JournalStore, Log
from disque_trio.statemachine.state import NodeState
from disque_trio.storage.append import STALL_S, STALLED, Appender, nothing
from disque_trio.storage.rewrite import Rewrite, failing
from disque_trio.storage.tasks import Cancelled, Tasks
from disque_trio.wire.journal import Format, Writer

RETRY_S: Final = 60.0
"""The pause before the next automatic rewrite after a failed one."""
_LOOK_S: Final = 0.05
"""How often a task that waits for the end of a rewrite polls."""


class Rewriter:
    """The rewrites of one journal."""

    def __init__(
        self,
        store: JournalStore,
        state: NodeState,
        end: Appender,
        log: Log,
        tasks: Tasks,
        use: Callable[[JournalFile, Writer, list[bytes]], None],
    ) -> None:
        """`use` is called with a new file that is the journal from then on, its writer, and the
        batches that are not in it yet."""
        self.current: Rewrite | None = None
        self.error = ""
        """Why the latest rewrite did not complete; empty if it did."""
        self.has_failed = False
        """Did the latest rewrite fail, rather than being cancelled?"""
        self.last_s = -1
        self.at = 0.0
        """The earliest time of the next automatic rewrite."""
        self._store = store
        self._state = state
        self._end = end
        self._log = log
        self._tasks = tasks
        self._use = use
        self._giving_up = tasks.scope()
        """The scope of the latest rewrite."""

    def format(self) -> Format:
        """The format of a new file."""
        return Format(self._state.config.aof_format)

    async def start(self, *, stays: bool) -> str | None:
        """Begin a rewrite, and return once the new file is open. Returns an error text, or None.

        The new file also has all records from now on. `stays`: it becomes the journal.
        """
        if self.current is not None:
            return "Background append only file rewriting already in progress"
        rewrite = self.current = Rewrite(
            self._store, self._state, self._tasks, self.format(), stays=stays
        )
        error = STALLED
        try:
            with self._tasks.move_on_after(STALL_S):
                # Never replace another node's file.
                await rewrite.open(may_be_new=self._end.file is None)
                error = ""
        except Cancelled:
            self._end_of(rewrite, error)
            raise
        except (OSError, JournalError) as met:
            error = getattr(met, "strerror", None) or str(met)
        if error:
            rewrite.is_cancelled = error == STALLED
            self._end_of(rewrite, error)
            return error
        self._tasks.start(self._run(rewrite))
        return None

    async def write_whole(self) -> str | None:
        """Rewrite the file now, cancelling a running rewrite, and append to the new file. Returns
        an error text if that fails or makes no progress for `STALL_S`, in which case nothing has
        changed; otherwise None."""
        await self.cancel()
        error = await self.start(stays=True)
        rewrite = self.current
        while error is None and self.current is rewrite:
            await self._tasks.sleep(_LOOK_S)
            if rewrite is not None and self._tasks.time() - rewrite.moved > STALL_S:
                self.give_up()
        return error or self.error or self._end.trouble or None

    async def cancel(self) -> None:
        """Cancel the running rewrite, even if the disk does not answer."""
        with self._tasks.move_on_after(STALL_S):
            await self._cancelled()
        if self.current is not None:
            self.give_up()
            await self._cancelled()

    async def _cancelled(self) -> None:
        while self.current is not None:
            self.current.is_cancelled = True
            await self._tasks.sleep(_LOOK_S)

    def give_up(self) -> None:
        """Stop waiting for a disk that does not answer."""
        if self.current is not None:
            self.current.is_cancelled = True
        self._giving_up.cancel()

    async def _run(self, rewrite: Rewrite) -> None:
        error = ""
        try:
            with self._tasks.scope() as self._giving_up:
                await rewrite.write()
                await self._hand_over(rewrite)
            if self._giving_up.was_cut:
                # The thread still uses the file, so its name is not removed.
                error = STALLED
                rewrite.file.close()
        except OSError as met:
            error = met.strerror or str(met)
            await self._tasks.on(self._store.thread, self._store.discard, rewrite.file)
        finally:
            self._end_of(rewrite, error)

    def _end_of(self, rewrite: Rewrite, error: str) -> None:
        self.error = error
        if not error:
            self.has_failed = False
        elif not rewrite.is_cancelled or error == STALLED:
            self.has_failed = True
            self.at = self._tasks.time() + RETRY_S
            self._log.warning("the journal could not be rewritten", error=error)
        self.last_s = int(self._tasks.time() - rewrite.started)
        rewrite.end()
        self.current = None
        self._end.changed()

    async def _hand_over(self, rewrite: Rewrite) -> None:
        """Finish a nearly complete file: write the rest, and make it the journal."""
        end = self._end
        async with end.writing, end.syncing:
            await end.finish_group()
            rewrite.moved = self._tasks.time()
            with failing():
                rest, number = b"".join(rewrite.rest()), end.last
            await end.in_thread(rewrite.append, rest, sync=rewrite.file.sync)
            await end.in_thread(rewrite.replace)
            self._log.notice("the journal has been rewritten", size=rewrite.file.size)
            old = end.file if rewrite.stays else rewrite.file
            if rewrite.stays:
                self._use(rewrite.file, rewrite.writer, rewrite.rest())
            if not rewrite.stays:
                await end.in_thread(nothing, sync=self._store.settle)
            elif await end.settle():
                end.keep(number)
            if old is not None:
                # An error on closing the old file does not matter.
                with contextlib.suppress(OSError):
                    await end.in_thread(old.close)
