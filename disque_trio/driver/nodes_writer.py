"""Writes the node table to nodes.conf in a thread, so that a hanging disk does not block the event
loop.

There is one write at a time; the next one includes the changes since. Callers that wait for a
change are called back after it is written, or writing has failed. A failed write is retried after
`RETRY_S`; the table in memory is valid meanwhile.

A new ID of this node is written in the loop, before it is announced, so that the node has the same
ID after a restart.
"""

import threading
from collections.abc import Callable
from typing import Final

from disque_trio.ports import Log, NodesStore
from disque_trio.statemachine.nodesfile import nodes_text
from disque_trio.statemachine.state import NodeState
from disque_trio.storage.tasks import Event, Tasks

RETRY_S: Final = 1.0
STALL_S: Final = 5.0
"""The time without an answer of the disk after which a warning is logged."""

Told = Callable[[str | None], None]
"""Called with the system's error text, or None."""


class NodesWriter:
    """The writer of one node's nodes.conf, which must exist already."""

    def __init__(self, state: NodeState, store: NodesStore, log: Log, tasks: Tasks) -> None:
        self._state = state
        self._tasks = tasks
        self._store = store
        self._log = log
        self._id = state.cluster.myself.id
        self._wanted = Event(self._tasks)
        self._waiting: list[Told] = []
        self._is_idle = Event(self._tasks)
        self._is_idle.set()
        self._lock = threading.Lock()
        self._drafts = 0
        self._written = 0

    def changed(self) -> None:
        """Write the table soon; at once if this node has a new ID."""
        if self._id != self._state.cluster.myself.id:
            try:
                self._write(*self._draft())
            except OSError as error:
                self._warn(error)
            self._id = self._state.cluster.myself.id
        self._want()

    def write(self, then: Told) -> None:
        """Write the table soon, and call `then` in the loop."""
        self._waiting.append(then)
        self._want()

    def _want(self) -> None:
        if self._is_idle.is_set():
            self._is_idle = Event(self._tasks)
        self._wanted.set()

    async def run(self) -> None:
        """Write whenever there are changes; never returns."""
        while True:
            await self._wanted.wait()
            self._wanted = Event(self._tasks)
            error = await self._write_beside()
            if not self._wanted.is_set():
                self._is_idle.set()
            if error is not None:
                with self._tasks.move_on_after(RETRY_S):
                    await self._wanted.wait()
                self._wanted.set()

    async def finish(self) -> None:
        """Wait until all changes have been written, or writing has failed."""
        await self._is_idle.wait()

    async def _write_beside(self) -> OSError | None:
        waiting, self._waiting = self._waiting, []
        met = None
        done = Event(self._tasks)
        self._tasks.start(self._warn_if_slow(done))
        try:
            await self._tasks.on(self._store.thread, self._write, *self._draft())
        except OSError as error:
            met = error
            self._warn(error)
        done.set()
        for then in waiting:
            then(None if met is None else met.strerror or str(met))
        return met

    async def _warn_if_slow(self, done: Event) -> None:
        with self._tasks.move_on_after(STALL_S) as scope:
            await done.wait()
        if scope.was_cut:
            self._log.warning("cannot write the node table: the disk does not answer")

    def _warn(self, error: OSError) -> None:
        reason = error.strerror or str(error)
        self._log.warning("cannot write the node table", error=reason)

    def _draft(self) -> tuple[int, bytes]:
        self._drafts += 1
        return self._drafts, nodes_text(self._state, handshakes=False)

    def _write(self, number: int, text: bytes) -> None:
        """Write a draft, unless a later one has been written. Runs in the loop or in the thread."""
        with self._lock:
            if number > self._written:
                self._store.save(text)
                self._written = number
