"""What a node's process does with its journal: group commit, and nothing said before its time.

Each batch's records are written before anything of the batch leaves the node; under ``appendfsync
always`` they are synced first, too. One sync is under way at a time, and takes all that was written
when it began. What does not leave yet stands in a row.

When the disk refuses, the machine is told, clients hear MISCONF, and the write is tried again until
it succeeds; what promised nothing goes its way meanwhile. After a failed sync all that was not
synced before is written anew (docs/durability.md).
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

from disque_trio.sim.disk import Disk, DiskError
from disque_trio.sim.engine import Engine
from disque_trio.sim.plan import Micros
from disque_trio.statemachine.base import Now
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.outbox import Outbox
from disque_trio.statemachine.records import Record

TRY_AGAIN: Final[Micros] = 100_000
"""How long until a refused write is tried again."""
SYNC_EVERY: Final[Micros] = 1_000_000
FLUSH_EVERY: Final[Micros] = 10_000_000
"""How often the system itself syncs what nobody has asked to be synced."""


class Office(Protocol):
    """The host, as the journal sees it."""

    now: Now

    def give(self, act: Callable[[Any], None], subject: Any) -> None:
        """Do it when the process has time."""

    def carry_out(self, machine: Machine, out: Outbox) -> None:
        """Let a batch leave."""


class Journal:
    """The journal of one life of a process."""

    def __init__(self, engine: Engine, office: Office, disk: Disk, machine: Machine) -> None:
        self._engine = engine
        self._office = office
        self._disk = disk
        self._machine = machine
        self._policy = machine.state.config.appendfsync
        self._row: deque[tuple[int, Outbox]] = deque()
        """What has to wait, each until so many records are as safe as they have to be."""
        self._handed = 0
        self._unwritten: list[Record] = []
        self._unsynced: list[Record] = []
        self._is_syncing = False
        self._is_failing = False
        self._is_dead = False
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
        """A batch: write it down. False if it may leave at once; otherwise it leaves later."""
        if not out.records:
            if self._is_failing:
                return self._hold_what_is_owed(out)
            if not self._row:
                return False
        self._handed += len(out.records)
        self._unwritten += out.records
        self._row.append((self._handed, out))
        self._work()
        if len(self._row) > 1 or self._safe() < self._handed:
            return True
        self._row.clear()
        return False

    def _hold_what_is_owed(self, out: Outbox) -> bool:
        """Replies to a client stay in order: one who waits for one goes on waiting."""
        waiting: dict[Client, None] = {}
        for _, held in self._row:
            waiting.update((client, None) for client, _ in held.replies)
        if not waiting:
            return False
        late = Outbox(replies=[each for each in out.replies if each[0] in waiting])
        if late.replies:
            out.replies = [each for each in out.replies if each[0] not in waiting]
            late.closes = [client for client in out.closes if client in waiting]
            out.closes = [client for client in out.closes if client not in waiting]
            self._row.append((self._handed, late))
        return False

    def _safe(self) -> int:
        """How many records are as safe as they have to be before anything is said."""
        written = self._handed - len(self._unwritten)
        return written - len(self._unsynced) if self._policy == "always" else written

    def _wake_row(self) -> None:
        if self._row:
            self._office.give(self._release, None)

    def _release(self, _subject: object) -> None:
        """Let everything leave whose time has come."""
        if self._is_dead:
            return
        safe = self._safe()
        while self._row and self._row[0][0] <= safe and not self._is_dead:
            _, out = self._row.popleft()
            self._office.carry_out(self._machine, out)

    # The disk.

    def _work(self) -> None:
        """Write what there is to write, and under `always` begin to sync it."""
        if self._is_dead or self._disk.is_stalled:
            return
        if self._unwritten:
            try:
                self._disk.write(self._unwritten)
            except DiskError as error:
                self._fail(str(error))
                return
            self._unsynced += self._unwritten
            self._unwritten = []
        if self._policy == "always" and self._unsynced:
            if not self._is_syncing:
                self._begin_sync()
        elif self._is_failing and self._policy != "everysec":
            self._mend()

    def _begin_sync(self) -> None:
        self._is_syncing = True
        mark = (len(self._unsynced), len(self._disk.records))
        self._engine.later(self._disk.sync_time(), self._synced, mark)

    def _synced(self, mark: tuple[int, int]) -> None:
        if self._is_dead:
            return
        if self._disk.is_stalled:
            self._engine.later(TRY_AGAIN, self._synced, mark)
            return
        self._is_syncing = False
        count, length = mark
        try:
            self._disk.sync(length)
        except DiskError as error:
            self._unwritten = self._unsynced + self._unwritten
            self._unsynced = []
            self._fail(str(error))
            return
        del self._unsynced[:count]
        if self._is_failing:
            self._mend()
        self._work()
        self._wake_row()

    def _sync_now_and_then(self, period: Micros) -> None:
        if self._is_dead:
            return
        self._engine.later(period, self._sync_now_and_then, period)
        if self._unsynced and not self._is_syncing:
            self._begin_sync()

    def _go_on(self) -> None:
        """The disk is not stalled any more."""
        self._work()
        self._wake_row()

    def _fail(self, reason: str) -> None:
        self._engine.later(TRY_AGAIN, self._retry, None)
        if not self._is_failing:
            self._is_failing = True
            self._office.give(self._refuse_writes, reason)

    def _retry(self, _subject: object) -> None:
        if self._is_dead:
            return
        self._work()
        is_sync_due = self._is_failing and self._policy == "everysec" and not self._unwritten
        if is_sync_due and not self._is_syncing:
            self._begin_sync()
        self._wake_row()

    def _mend(self) -> None:
        self._is_failing = False
        self._office.give(self._allow_writes, None)

    def _refuse_writes(self, reason: str) -> None:
        if not self._is_dead:
            self._machine.journal_failed(reason, self._office.now)

    def _allow_writes(self, _subject: object) -> None:
        if not self._is_dead:
            self._machine.journal_mended(self._office.now)
