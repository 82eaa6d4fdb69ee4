"""The world of the trio engine: that of the heap engine, with real shells in it."""

import trio

from disque_trio.sim.lanes import Lanes
from disque_trio.sim.live import LiveEngine
from disque_trio.sim.nodes import Host, MachineFactory
from disque_trio.sim.plan import Plan
from disque_trio.sim.record import Recorder
from disque_trio.sim.shell.hosts import NodeHost
from disque_trio.sim.shell.lanes import ShellLanes
from disque_trio.sim.shell.links import ShellLinks
from disque_trio.sim.shell.store import ByteDisk
from disque_trio.sim.streams import stream
from disque_trio.sim.wires import Wires
from disque_trio.sim.world import World


class ShellWorld(World):
    """Everything there is in one run of the trio engine."""

    host_kind = NodeHost
    disk_kind = ByteDisk

    def __init__(
        self,
        plan: Plan,
        engine: LiveEngine,
        recorder: Recorder,
        factory: MachineFactory,
        nursery: trio.Nursery,
    ) -> None:
        self._live = engine
        self._nursery = nursery
        super().__init__(plan, engine, recorder, factory)

    def make_wires(self) -> Wires:
        """Links with bytes on them."""
        rng = stream(self.plan.seed, "pieces", "links")
        self._links = ShellLinks(self.engine, self.recorder, self.network, self.names, rng)
        return self._links

    def make_lanes(self) -> Lanes:
        """Clients' connections with bytes on them."""
        rng = stream(self.plan.seed, "pieces", "clients")
        return ShellLanes(self.engine, self.recorder, rng)

    def make_host(self, number: int) -> Host:
        """A host with a nursery."""
        host = super().make_host(number)
        assert isinstance(host, NodeHost)
        host.live, host.nursery, host.dial = self._live, self._nursery, self._links.open
        return host
