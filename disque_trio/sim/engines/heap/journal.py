"""The journal of a simulated process: group commit, and the durability gate for its output.

The records of a batch are written before its output leaves the node, and synced first, too, under
``appendfsync always``. One sync runs at a time, for all that was written when it began. Output that
has to wait stands in a queue; output that does not depend on records overtakes it (`overtaking`).

When the disk fails, clients get MISCONF instead of replies that depend on records, and the node
sends no messages about jobs; once a second everything since the last good sync is tried again. In
a process `storage.group_commit` and `storage.append` do all this.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from disque_trio.driver.overtaking import overtaking
from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.heap.spill import whole_record
from disque_trio.sim.model.disk import Disk, DiskError
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine.base import Failure, Now, Reply
from disque_trio.statemachine.journaling import STOPPED
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.outbox import Outbox
from disque_trio.statemachine.records import Record

TRY_AGAIN: Final[Micros] = 1_000_000
"""How long until what was refused is tried again."""
STILL: Final[Micros] = 50_000
"""How often a sync checks whether the disk still hangs."""
SYNC_EVERY: Final[Micros] = 1_000_000
FLUSH_EVERY: Final[Micros] = 10_000_000
"""How often the system itself syncs."""


class JournalHost(Protocol):
    """The host, as the journal sees it."""

    now: Now

    def give(self, act: Callable[[Any], None], subject: Any) -> None:
        """Do it when the process runs."""

    def carry_out(self, machine: Machine, out: Outbox) -> None:
        """Carry out a batch."""


class Journal:
    """The journal of one life of a process."""

    def __init__(self, engine: Engine, host: JournalHost, disk: Disk, machine: Machine) -> None:
        self._engine = engine
        self._host = host
        self._disk = disk
        self._machine = machine
        self._policy = machine.state.config.appendfsync
        self._queue: deque[tuple[int, Outbox]] = deque()
        """Waiting output, each with the number of records that must be safe first."""
        self._handed = 0
        self._unwritten: list[Record] = []
        self._unsynced: list[Record] = []
        self._is_syncing = False
        self._trouble = ""
        """Why the disk fails; empty if it does not."""
        self._told = ""
        """The trouble that the machine was told of."""
        self._is_dead = False
        self._anew: list[Record] | None = None
        """The records of the new file that is written before a stop."""
        disk.when_released = self._go_on
        if self._policy != "always":
            period = SYNC_EVERY if self._policy == "everysec" else FLUSH_EVERY
            self._engine.later(period, self._sync_now_and_then, period)

    def end(self) -> None:
        """The process is gone."""
        self._is_dead = True
        self._disk.when_released = None

    # Batches.

    def take(self, out: Outbox) -> bool:
        """Write a batch's records. False if its output leaves at once, in its present form; True if
        it waits."""
        if out.records:
            self._handed += len(out.records)
            records = [whole_record(record) for record in out.records]
            self._unwritten += records
            if self._anew is not None:
                self._anew += records
            self._work()
        if self._told or self._trouble:
            if not self._told:
                self.look()
            self._send_early(out, self._handed)
            self._break(out)
            return False
        if not self._queue and not (out.records and self._safe() < self._handed):
            return False
        left = self._queue[0][0] - 1 if self._queue else self._safe()
        self._send_early(out, left)
        if out:
            self._queue.append((self._handed, out))
        return True

    def _send_early(self, out: Outbox, left: int) -> None:
        """Send what need not wait: a slow disk should not look like a dead node."""
        early = overtaking(out, left, self._handed)
        if early is not None:
            self._host.carry_out(self._machine, early)

    def _break(self, out: Outbox) -> None:
        """The records could not be written: drop messages, and turn replies into errors."""
        out.messages = []
        out.replies = [(client, self._error(reply)) for client, reply in out.replies]

    def _error(self, reply: Reply) -> Reply:
        refusal = self._machine.state.refusal
        return reply if isinstance(reply, Failure) or refusal is None else refusal

    def _safe(self) -> int:
        """How many records are safe: written, or synced under ``always``."""
        written = self._handed - len(self._unwritten)
        return written - len(self._unsynced) if self._policy == "always" else written

    def look(self, _subject: object = None) -> None:
        """The disk has changed: send what may leave, or tell the machine of the trouble."""
        if self._is_dead:
            return
        safe = self._safe()
        while self._queue and self._queue[0][0] <= safe and not self._is_dead:
            self._host.carry_out(self._machine, self._queue.popleft()[1])
        if self._is_dead or self._told == self._trouble:
            return
        self._told = self._trouble
        if not self._trouble:
            self._machine.journal_mended(self._host.now)
            return
        self._machine.journal_failed(self._trouble, self._host.now)
        while self._queue and not self._is_dead:
            out = self._queue.popleft()[1]
            self._break(out)
            self._host.carry_out(self._machine, out)

    def _wake(self) -> None:
        if self._queue or self._told != self._trouble:
            self._host.give(self.look, None)

    # Before a stop.

    def has_trouble(self) -> bool:
        """Can nothing be written now?"""
        return bool(self._trouble or self._told) or self._disk.is_stalled

    def begin_anew(self) -> None:
        """From now on all records go into a new file, too."""
        self._anew = []

    def write_anew(self, records: Iterable[Record]) -> None:
        """Add records of existing jobs to the new file."""
        if self._anew is not None:
            self._anew.extend(map(whole_record, records))

    def flush(self) -> None:
        """Write and sync everything, and send what has waited for it."""
        if not self.has_trouble() and self._write():
            try:
                self._disk.sync(len(self._disk.records))
            except DiskError as error:
                self._fail(str(error))
            else:
                self._unsynced = []
        self.look()

    def seal(self) -> bool:
        """Replace the file by the new one, with the mark of the stop at its end. False if that
        fails: then the old file stays, without the mark."""
        if self._anew is None or self._queue or self._unwritten or self.has_trouble():
            return False
        try:
            self._disk.replace([*self._anew, STOPPED])
        except DiskError:
            return False
        return True

    # The disk.

    def _work(self) -> None:
        """Write what is unwritten, and under `always` begin to sync it."""
        if self._is_dead or self._trouble or self._disk.is_stalled:
            return
        self._write()
        if self._policy == "always" and self._unsynced and not self._is_syncing:
            self._begin_sync()

    def _write(self) -> bool:
        if self._unwritten:
            try:
                self._disk.write(self._unwritten)
            except DiskError as error:
                self._fail(str(error))
                return False
            self._unsynced += self._unwritten
            self._unwritten = []
        return True

    def _begin_sync(self) -> None:
        self._is_syncing = True
        mark = (len(self._unsynced), len(self._disk.records))
        self._engine.later(self._disk.sync_time(), self._synced, mark)

    def _synced(self, mark: tuple[int, int]) -> None:
        if self._is_dead:
            return
        if self._disk.is_stalled:
            self._engine.later(STILL, self._synced, mark)
            return
        self._is_syncing = False
        count, length = mark
        try:
            self._disk.sync(length)
        except DiskError as error:
            self._fail(str(error))
        else:
            del self._unsynced[:count]
            self._trouble = ""
            self._work()
        self._wake()

    def _sync_now_and_then(self, period: Micros) -> None:
        if self._is_dead:
            return
        self._engine.later(period, self._sync_now_and_then, period)
        if self._unsynced and not self._is_syncing and not self._trouble:
            self._begin_sync()

    def _go_on(self) -> None:
        """The disk has stopped hanging."""
        self._work()
        self._wake()

    def _fail(self, reason: str) -> None:
        self._trouble = reason
        self._engine.later(TRY_AGAIN, self._try_again, None)

    def _try_again(self, _subject: object) -> None:
        """Everything since the last good sync, written and synced."""
        if self._is_dead or self._is_syncing:
            return
        if self._disk.is_stalled:
            self._engine.later(TRY_AGAIN, self._try_again, None)
        elif self._write():
            self._begin_sync()
