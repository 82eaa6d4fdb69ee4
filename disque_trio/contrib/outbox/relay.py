"""The relay: adds the jobs of an outbox, and deletes their rows.

If it is killed between the two, the next relay adds the job again with the same key, and nodes
return the id of the first one. Several relays may run. If the database supports SKIP LOCKED, each
processes different rows; otherwise the key ensures that two attempts add one job.
"""

import contextlib
import logging
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any, Final, Protocol

import attrs

from disque_trio.client.errors import DisqueError
from disque_trio.client.refusals import DuplicateJobError
from disque_trio.contrib.outbox.rows import Row, request_of
from disque_trio.statemachine.base import LONGEST_PERIOD_S
from disque_trio.terminal.counting import counted
from disque_trio.worker.app import App
from disque_trio.worker.checks import number
from disque_trio.worker.describing import line_of
from disque_trio.worker.runtime import runtime

KEEP_S: Final = 3600.0
"""How long nodes keep the key of a job after it has ended, in seconds."""
POLL_S: Final = 0.5
SHORTEST_S: Final = 0.001
AT_ONCE: Final = 128
LONGEST_PAUSE_S: Final = 300.0
_LONGEST_ERROR: Final = 500
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_log: Final = logging.getLogger("disque_trio.outbox")


class _SignalledError(Exception):
    """A signal ends the process."""


class Transaction(Protocol):
    """The operations of a relay in a transaction."""

    def rows(self, limit: int, now: float, *, lock: bool) -> list[Row]:
        """The first rows that are due, in order; with `lock` only those that no other transaction
        has locked."""
        ...

    def delete(self, ids: Sequence[int]) -> None:
        """Delete these rows, if they exist."""
        ...

    def failed(self, row: Row) -> None:
        """Update `attempts`, `next_at` and `error` of the row, if it exists."""
        ...


class Database(Protocol):
    """The database with the rows."""

    def skips_locked(self) -> bool:
        """Does it support `SELECT … FOR UPDATE SKIP LOCKED`?"""
        ...

    def transaction(self) -> AbstractContextManager[Transaction]:
        """A transaction that commits at the end of the block, or rolls back if the block raises."""
        ...

    def close(self) -> None:
        """Close the connection of this thread."""
        ...


@attrs.define(eq=False)
class Relay:
    """Adds the jobs of one table. Its methods block. Raises `ValueError` for invalid options."""

    app: App[Any]
    database: Database
    keep: float = attrs.field(default=KEEP_S, validator=number(SHORTEST_S, LONGEST_PERIOD_S))
    """How long nodes keep the key of a job after it has ended, in seconds. If a relay was killed,
    the next one must start within this time, or the job may run twice."""
    poll: float = attrs.field(default=POLL_S, validator=number(SHORTEST_S, LONGEST_PERIOD_S))
    """The interval at which an empty table is read, in seconds."""
    _stopped: threading.Event = attrs.field(init=False, factory=threading.Event)

    def run(self) -> None:
        """Add jobs until `stop`. After errors of the database and of nodes it retries."""
        pause = self.poll
        while not self._stopped.is_set():
            try:
                added, failed = self.step()
            except Exception as error:  # drivers of databases have errors of their own
                pause = min(max(2 * pause, 1.0), 30.0)
                _log.warning(
                    "cannot read the outbox: %s; retrying in %.0f s", line_of(error), pause
                )
            else:
                has_more = added + failed >= AT_ONCE
                is_stuck = failed and not (added or has_more)
                pause = min(max(2 * pause, 1.0), 30.0) if is_stuck else self.poll
                if added and has_more:
                    continue
            self._stopped.wait(pause)
        self.app.blocking.client.close()
        self.database.close()

    def stop(self) -> None:
        """Let `run` return after its current step. Do not call it in signal handlers (`main`)."""
        self._stopped.set()

    def main(self) -> None:
        """Run the relay until SIGTERM, SIGINT or SIGHUP, in the main thread of a separate
        process."""
        before = {number: signal.signal(number, _raise) for number in _SIGNALS}
        try:
            with contextlib.suppress(_SignalledError), self.in_thread() as thread:
                thread.join()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextlib.contextmanager
    def in_thread(self) -> Iterator[threading.Thread]:
        """Run the relay in a thread during the block, for example in a lifespan. The end of the
        block waits for the current step."""
        thread = threading.Thread(target=self.run, name="disque-outbox", daemon=True)
        thread.start()
        try:
            yield thread
        finally:
            self.stop()
            thread.join()

    def drain(self) -> int:
        """Add all jobs that are due now, and return their number. For tests and for cron."""
        now, count = runtime().now(), 0
        while True:
            added, failed = self.step(now)
            count += added
            if added + failed < AT_ONCE:
                return count

    def step(self, now: float | None = None) -> tuple[int, int]:
        """Add at most `AT_ONCE` jobs that are due at `now`. Returns the number of added jobs, and
        the number that no node accepted. Raises errors of the database."""
        now = runtime().now() if now is None else now
        if self.database.skips_locked():
            with self.database.transaction() as transaction:
                rows = transaction.rows(AT_ONCE, now, lock=True)
                added, failed = self._add(rows)
                self._settle(transaction, added, failed)
        else:
            # A transaction would block others while nodes are asked.
            with self.database.transaction() as transaction:
                rows = transaction.rows(AT_ONCE, now, lock=False)
            added, failed = self._add(rows)
            if rows:
                with self.database.transaction() as transaction:
                    self._settle(transaction, added, failed)
        return len(added), len(failed)

    def _add(self, rows: Sequence[Row]) -> tuple[list[int], list[Row]]:
        """The ids of added rows, and the other rows with the error."""
        if not rows:
            return [], []
        enqueuer = self.app._enqueuer
        asked = [request_of(enqueuer, row, self.keep) for row in rows]
        results = enqueuer.add_requests_blocking(asked)
        added, failed = [], []
        for row, result in zip(rows, results, strict=True):
            if isinstance(result, DuplicateJobError):
                _log.info("%s %s: another job has its unique key", row.task, row.key)
                added.append(row.id)
            elif isinstance(result, DisqueError):
                failed.append(_later(row, line_of(result)))
            else:
                added.append(row.id)
        if failed:
            were = counted(len(failed), "job of the outbox was", "jobs of the outbox were")
            _log.warning("%s not added, the first one because %s", were, failed[0].error)
        return added, failed

    def _settle(self, transaction: Transaction, added: list[int], failed: list[Row]) -> None:
        if added:
            transaction.delete(added)
        for row in failed:
            transaction.failed(row)


def _later(row: Row, error: str) -> Row:
    pause = min(2.0 ** min(row.attempts, 20), LONGEST_PAUSE_S)
    at = runtime().now() + pause
    return attrs.evolve(row, attempts=row.attempts + 1, next_at=at, error=error[:_LONGEST_ERROR])


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise _SignalledError
