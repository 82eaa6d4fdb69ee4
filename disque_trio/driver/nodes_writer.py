"""Writes the node table to nodes.conf, beside the event loop: a disk that hangs holds up nothing.

One write is under way at a time; changes that come meanwhile are in the next one. Those who wait
for a change are told once it has been written, or could not be; then it is tried again after
`RETRY_S`, and the table in memory is right all the same.

A new ID of this node is written in the loop, before anybody is told of it: after a restart the node
must not be another one than it said.
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
"""After so long the operator is told that the disk does not answer."""

Told = Callable[[str | None], None]
"""Called with the system's error text, or with None."""


class NodesWriter:
    """The nodes.conf of one node, which has been written once."""

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
        """Write the table soon; with a new ID of this node, at once."""
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
        """Write, for ever."""
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
        """Wait until everything has been written, or could not be."""
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
            self._log.warning("the node table is not written: the disk does not answer")

    def _warn(self, error: OSError) -> None:
        reason = error.strerror or str(error)
        self._log.warning("cannot write the node table", error=reason)

    def _draft(self) -> tuple[int, bytes]:
        self._drafts += 1
        return self._drafts, nodes_text(self._state, handshakes=False)

    def _write(self, number: int, text: bytes) -> None:
        """In either thread: write it, unless a later one has been written."""
        with self._lock:
            if number > self._written:
                self._store.save(text)
                self._written = number
