"""Group commit: the output of a batch is sent once the journal has the batch's records.

Replies and messages about jobs wait, in order, for the records of their batch and of all earlier
batches. Output that depends on no record is sent at once (`overtaking`), so that a slow disk does
not look like a dead node. Without a journal, nothing waits.

While the journal cannot be written, nothing is confirmed: clients receive MISCONF instead of
replies whose records could not be kept, and the node sends no messages about jobs, so that other
holders take over. Its other messages are sent as usual.
"""

from collections import deque
from collections.abc import Callable

from disque_trio.driver.output import Output
from disque_trio.driver.overtaking import overtaking
from disque_trio.driver.sessions import Session
from disque_trio.statemachine.base import Failure, Now, Reply
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.outbox import Outbox
from disque_trio.storage.journal import Journal


class GroupCommit:
    """The outboxes of one node that wait for its journal."""

    def __init__(
        self,
        journal: Journal,
        machine: Machine,
        output: Output,
        carry: Callable[[Outbox], None],
        wake: Callable[[], None],
    ) -> None:
        self._journal = journal
        self._end = journal.end
        self._machine = machine
        self._output = output
        self._carry = carry
        self._waiting: deque[tuple[int, Outbox, dict[Session, int]]] = deque()
        self._known_trouble = ""
        """The error of the journal that was reported to the machine; empty if there is none."""
        self.has_changed = False
        """Has the journal kept more, failed, or recovered, since `catch_up`?"""
        self._is_recording = False
        """Is the current batch being recorded?"""
        self._wake = wake
        journal.end.changed = self._note_change

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def _is_over(self) -> bool:
        """Has BGREWRITEAOF ended where `appendonly` is no, so that nothing is recorded any more?"""
        journal = self._journal
        return (
            not self._machine.state.config.appendonly
            and journal.rewrite is None
            and journal.end.file is None
        )

    def _note_change(self) -> None:
        """Request `catch_up` in the next batch, unless the change is that the current batch was
        written at once."""
        if self._is_recording and not self._waiting and not self._end.trouble:
            return
        self.has_changed = True
        self._wake()

    def submit(self, out: Outbox, now: Now) -> None:
        """Carry out the outbox, now or once the journal has its records."""
        end = self._end
        if out.records:
            self._is_recording = True
            self._journal.record(out.records)
            self._is_recording = False
            self._journal.weigh()
            out.records = []
        if end.trouble or self._known_trouble:
            if not self._known_trouble:
                self.catch_up(now)
            self._send_early(out, end.last)
            self._refuse_unkept(out)
        elif self._waiting or end.kept < end.last:
            self._send_early(out, end.kept)
            if out:
                self._waiting.append((end.last, out, self._output.delay(out, now)))
        else:
            self._carry(out)

    def _send_early(self, out: Outbox, kept: int) -> None:
        """Carry out the output that depends on no record."""
        early = overtaking(out, kept, self._end.last)
        if early is not None:
            self._carry(early)

    def catch_up(self, now: Now) -> None:
        """At the beginning of a batch: carry out the output whose records are kept, or refuse it if
        they cannot be kept."""
        self.has_changed = False
        end = self._end
        waiting = self._waiting
        while waiting and waiting[0][0] <= end.kept:
            _, out, weights = waiting.popleft()
            self._output.go_on(weights)
            self._carry(out)
        if self._machine.state.is_recording and self._is_over():
            self._machine.record(on=False)
        if self._known_trouble == end.trouble:
            return
        self._known_trouble = end.trouble
        if not end.trouble:
            self._machine.journal_mended(now)
            return
        self._machine.journal_failed(end.trouble, now)
        while waiting:
            _, out, weights = waiting.popleft()
            self._output.go_on(weights)
            self._refuse_unkept(out)

    def _refuse_unkept(self, out: Outbox) -> None:
        """The records of this batch could not be kept: drop its messages, and reply to its clients
        with an error."""
        out.messages = []
        out.replies = [(client, self._error(reply)) for client, reply in out.replies]
        self._carry(out)

    def _error(self, reply: Reply) -> Reply:
        refusal = self._machine.state.refusal
        assert refusal is not None, "the machine does not know of the trouble"
        return reply if isinstance(reply, Failure) else refusal
