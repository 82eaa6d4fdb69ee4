"""A simulated host on which the real shell runs: `disque_trio.node.Node` with all its tasks."""

from collections.abc import Callable, Sequence
from typing import Any

import trio

from disque_trio.node import Node
from disque_trio.ports import LinkPort
from disque_trio.session import LinkSession
from disque_trio.sim.groups import root_of
from disque_trio.sim.live import LiveEngine
from disque_trio.sim.nodes import Host
from disque_trio.sim.shell.hub import HostClock, HostProcess, HostStore, NoLog, SimHub
from disque_trio.statemachine.cluster import Peer

Dial = Callable[["NodeHost", LinkSession, str, int], LinkPort]


class NodeHost(Host):
    """The host of the heap engine, but the node in it runs by itself."""

    live: LiveEngine
    nursery: trio.Nursery
    dial: Dial
    """These three the world gives."""
    hub: SimHub | None = None
    """Of the life that there is."""
    _scope: trio.CancelScope

    # Its life.

    def start(self, cause: str, others: Sequence[Peer] = ()) -> None:
        """Run, with the nodes that nodes.conf tells of, or with `others` if there is none."""
        super().start(cause, others)
        machine = self.machine
        assert machine is not None
        self.hub = hub = SimHub(self, self._dial)
        node = Node(machine, HostClock(self), hub, HostStore(self), HostProcess(), NoLog())
        node.spiller = self.spiller
        self._scope = trio.CancelScope()
        self.nursery.start_soon(self._live, node, hub, self._scope, name=self.name)

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
            self.note("crash", cause="shutdown")
            self.crash()

    def crash(self, cause: str = "kill") -> None:
        """End at once, wherever its tasks are."""
        hub = self.hub
        if hub is not None:
            hub.is_dead = True
            self.hub = None
            self._scope.cancel()
        super().crash(cause)

    def resume(self) -> None:
        """Let it run again."""
        self.is_paused = False
        self.rewind()

    # Inputs.

    def give(self, act: Callable[[Any], None], subject: Any) -> None:
        """An input, when the process has time."""
        if self.hub is not None:
            self.hub.put(lambda _: act(subject))

    def rewind(self) -> None:
        """The clock has changed, or the process runs again: let it look."""
        if self.hub is not None:
            self.hub.wake()

    # Outputs.

    def settle(self) -> None:
        """The shell's part."""

    def tell(self) -> None:
        """Write down what the machine has done."""
        machine = self.machine
        if machine is not None and machine.state.trace:
            self._write(machine.state.trace)
            machine.state.trace = []
