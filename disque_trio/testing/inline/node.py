"""A node in memory: the state machine, without peers, sockets and a real clock."""

import random
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from typing import Final

import attrs

from disque_trio.statemachine.base import (
    ACTIVE,
    DEAD,
    MYSELF,
    PAUSE_OUT,
    QUEUED,
    Millis,
    Now,
    Reply,
)
from disque_trio.statemachine.chores import ReadVitals, Vitals
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.lengthy import whole
from disque_trio.statemachine.machine import Machine
from disque_trio.worker.options import NOTES

ID: Final = b"1" * 40
HOST: Final = "disque-inline"
_NOTES: Final = NOTES.encode()
"""The queue of notes, whose jobs never become due."""
_GRACE: Final[Millis] = 1000
_COPIES: Final = (b"REPLICATE", b"SYNC")
_FIRST_OPTION: Final = 4
"""The place of the first option of ADDJOB."""


class InlineError(RuntimeError):
    """An operation that is impossible without a server."""


def _begin() -> Now:
    return Now(mono=0, wall=round(time.time() * 1000))


@attrs.define(eq=False)
class MemoryNode:
    """A node whose time passes only in `sleep`, or while a request waits."""

    now: Now = attrs.Factory(_begin)
    machine: Machine = attrs.field(init=False)
    _lock: threading.RLock = attrs.Factory(threading.RLock)

    def __attrs_post_init__(self) -> None:
        myself = Peer(ID, HOST, 7711, MYSELF)
        self.machine = Machine(Config(), myself, random.Random(0), self.now)

    # Requests.

    def ask(self, words: Sequence[bytes], wait_s: float = 0.0) -> Reply:
        """The reply to a request. If the request waits, time passes. Raises `InlineError` if it
        would wait without end."""
        with self._lock:
            client = self.machine.connect(b"127.0.0.1:1", self.now)
            assert client is not None
            self.machine.request(client, _with_one_copy(list(words)), self.now)
            until = self.now.mono + min(wait_s * 1000, 1e12) + _GRACE
            while not (replies := self._replies(client)):
                due = max(self.machine.deadline(), self.now.mono + 1)
                if due > until:
                    raise InlineError(f"{words[0].decode()} waits, and nothing else happens here")
                self._tick(due)
            self.machine.disconnect(client, self.now)
            self._replies(client)
            return whole(replies[0])

    def _replies(self, client: Client) -> list[Reply]:
        found: list[Reply] = []
        while True:
            self.machine.complete()
            if not self.machine.state.out:
                return found
            out = self.machine.take()
            found += [reply for to, reply in out.replies if to is client]
            for asker, chore in out.chores:
                done = Vitals() if isinstance(chore, ReadVitals) else None
                self.machine.done(asker, done, self.now)

    # Time.

    def wall(self) -> float:
        """Unix time on the node."""
        return self.now.wall / 1000

    def monotonic(self) -> float:
        """Seconds since the start of the node."""
        return self.now.mono / 1000

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        with self._lock:
            until = self.now.mono + round(seconds * 1000)
            while (due := self.next_due()) is not None and due <= until:
                self._pass(due)
            self._pass(until)

    def next_due(self) -> Millis | None:
        """When the next job is enqueued, or enqueued again; None for never."""
        found = [
            job.requeue_at
            for job in self.waiting()
            if job.state == ACTIVE and job.requeue_at and job.queue != _NOTES
        ]
        return min(found, default=None)

    def next_token(self, queues: Collection[bytes]) -> Millis | None:
        """When the rate of one of these queues may allow the next of its jobs; None for never."""
        found = [
            self.now.mono + -(-queue.limit.setting.period // queue.limit.setting.rate)
            for queue in self.machine.state.queues.values()
            if queue.name in queues and queue.length and not queue.paused & PAUSE_OUT
            if queue.limit is not None and queue.limit.setting.rate
        ]
        return min(found, default=None)

    def _pass(self, until: Millis) -> None:
        self._tick(until)
        self.machine.take()

    def _tick(self, until: Millis) -> None:
        """Let time pass; the effects of the node remain to be taken."""
        self.now = Now(until, self.now.wall + until - self.now.mono)
        self.machine.tick(self.now)

    # Jobs.

    def waiting(self) -> Iterator[Job]:
        """Jobs that are enqueued, or will be."""
        return (job for job in self.machine.state.jobs.values() if job.state in (ACTIVE, QUEUED))

    def dead(self) -> Iterator[Job]:
        """Jobs that are dead."""
        return (job for job in self.machine.state.jobs.values() if job.state == DEAD)


def _with_one_copy(words: list[bytes]) -> list[bytes]:
    """Replace the numbers of REPLICATE and SYNC by 1, because there is one node."""
    for name in _COPIES if words[0] == b"ADDJOB" else ():
        if name in words[_FIRST_OPTION:]:
            words[words.index(name, _FIRST_OPTION) + 1] = b"1"
    return words
