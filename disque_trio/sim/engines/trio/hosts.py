"""A simulated host on which a whole node runs: `disque_trio.node.Node` with all its tasks."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import trio

from disque_trio.driver.sessions import LinkSession
from disque_trio.node import Node
from disque_trio.ports import LinkPort
from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.heap.nodes import Host
from disque_trio.sim.engines.heap.stopping import OrderlyStop
from disque_trio.sim.engines.task_errors import root_of
from disque_trio.sim.engines.trio.hub import HostClock, HostProcess, HostStore, NoLog, SimHub
from disque_trio.sim.engines.trio.store import ByteDisk, SimStore, SimThread
from disque_trio.sim.model.disk import Found
from disque_trio.statemachine.chores import Shutdown
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.machine import Machine
from disque_trio.storage.journal import Journal

Dial = Callable[["NodeHost", LinkSession, str, int], LinkPort]
START_AGAIN: Final = 1_000_000
"""Microseconds until a process that could not start is started again."""


def _terminate(node: Node) -> None:
    node.stop(Shutdown(), "SIGTERM")


class NodeHost(Host):
    """The host of the heap engine, but the node runs in tasks of its own."""

    hub_kind: type[SimHub] = SimHub
    live: Engine
    nursery: trio.Nursery
    dial: Dial
    """The world sets these three."""
    hub: SimHub | None = None
    """The hub of the present life."""
    _thread: SimThread | None = None
    """The disk's thread of the present life, if it has a journal."""
    _node: Node
    _scope: trio.CancelScope
    _found: Found | None = None
    """What the journal has, until the node has loaded it."""

    # Its life.

    def start(self, cause: str, others: Sequence[Peer] = ()) -> None:
        """Start the process, with the nodes in nodes.conf, or with `others` if there is none."""
        super().start(cause, others)
        machine = self.machine
        assert machine is not None
        self.hub = hub = self.hub_kind(self, self._dial, self._has_loaded)
        log, journal = NoLog(), None
        if self._config.appendonly:
            assert isinstance(self.disk, ByteDisk)
            store = SimStore(self._engine, self.disk)
            self._thread = store.thread
            journal = Journal(store, machine.state, log)
        self._node = node = Node(
            machine, HostClock(self), hub, HostStore(self), HostProcess(), log, journal
        )
        node.spiller = self.spiller
        self._launch(node, hub)

    def _launch(self, node: Node, hub: SimHub) -> None:
        self._scope = trio.CancelScope()
        self.nursery.start_soon(self._live, node, hub, self._scope, name=self.name)

    def _kill(self) -> None:
        self._scope.cancel()

    def _dial(self, session: LinkSession, ip: str, port: int) -> LinkPort:
        return self.dial(self, session, ip, port)

    async def _live(self, node: Node, hub: SimHub, scope: trio.CancelScope) -> None:
        try:
            with scope:
                await node.run()
        except Exception as error:
            self.live.sync()
            self._fail(root_of(error))
        if not hub.is_dead:
            self.live.sync()
            self.now = node.now
            self.write_rows()
            self._ended(node)

    def _ended(self, node: Node) -> None:
        """The process has ended by itself."""
        if self.stopping is not None:
            self.end(has_queues=isinstance(self.disk, ByteDisk) and self.disk.is_sealed())
            return
        self.note("crash", cause="shutdown")
        self.crash()
        if node.life.failure:
            # A supervisor would start it again.
            self._engine.later(START_AGAIN, self._start_again, self.lives)

    def _start_again(self, life: int) -> None:
        if self.machine is None and self.lives == life:
            self.start("empty")

    def _open_journal(self, machine: Machine) -> Found:
        """The node opens it itself: only look at what it will find."""
        del machine
        return self.disk.load()

    def _tell_loaded(self, found: Found) -> None:
        """Later, when the node has loaded it."""
        self._found = found

    def _has_loaded(self) -> None:
        self.now = self._node.now
        self.write_rows()
        found, self._found = self._found, None
        if found is not None:
            self.note("loaded", cause=found.how, detail=f"records={len(found.records)}")

    def stop(self) -> bool:
        """SIGTERM, which a paused process receives when it goes on."""
        hub, node = self.hub, self._node
        if hub is None or self.stopping is not None:
            return False
        self.stopping = OrderlyStop()
        if hub.is_open:
            hub.put(_terminate)
        else:
            _terminate(node)
        return True

    def crash(self, cause: str = "kill") -> None:
        """End at once, whatever its tasks are doing."""
        hub = self.hub
        if hub is not None:
            hub.is_dead = True
            self.hub = None
            if self._thread is not None:
                self._thread.end()
            self._kill()
        super().crash(cause)

    def resume(self) -> None:
        """Let it run again."""
        self.is_paused = False
        self.rewind()

    # Inputs.

    def give(self, act: Callable[[Any], None], subject: Any) -> None:
        """Take an input, when the process runs."""
        if self.hub is not None:
            self.hub.put(lambda _: act(subject))

    def rewind(self) -> None:
        """The clock has changed, or the process runs again: wake the node."""
        if self.hub is not None:
            self.hub.wake()

    # Outputs.

    def settle(self) -> None:
        """The node does this itself."""

    def write_rows(self) -> None:
        """Write the rows of what the machine has done."""
        if self.machine is not None:
            self._write(self.machine)
