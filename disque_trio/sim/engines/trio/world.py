"""The world of the trio engine: that of the heap engine, with whole nodes in it."""

import trio

from disque_trio.sim.engines.heap.clients import ClientConnections
from disque_trio.sim.engines.heap.links import Links
from disque_trio.sim.engines.heap.nodes import MachineFactory
from disque_trio.sim.engines.heap.world import World
from disque_trio.sim.engines.live_events import LiveEngine
from disque_trio.sim.engines.trio.clients import SimClientConnections
from disque_trio.sim.engines.trio.hosts import NodeHost
from disque_trio.sim.engines.trio.links import SimLinks
from disque_trio.sim.engines.trio.store import ByteDisk
from disque_trio.sim.model.recorder import Recorder
from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios.plan import Plan


class WholeNodesWorld(World):
    """A world of whole nodes, whose links and client connections carry bytes."""

    host_kind: type[NodeHost] = NodeHost
    disk_kind = ByteDisk

    def make_links(self) -> Links:
        """Links that carry bytes."""
        rng = stream(self.plan.seed, "pieces", "links")
        self._links = SimLinks(self.engine, self.recorder, self.network, self.names, rng)
        return self._links

    def make_clients(self) -> ClientConnections:
        """Client connections that carry bytes."""
        rng = stream(self.plan.seed, "pieces", "clients")
        return SimClientConnections(self.engine, self.recorder, rng)

    def make_host(self, number: int) -> NodeHost:
        """A host."""
        host = super().make_host(number)
        assert isinstance(host, NodeHost)
        host.live, host.dial = self.engine, self._links.open
        return host


class NodeWorld(WholeNodesWorld):
    """The world of one run of the trio engine: its hosts have a nursery."""

    def __init__(
        self,
        plan: Plan,
        engine: LiveEngine,
        recorder: Recorder,
        factory: MachineFactory,
        nursery: trio.Nursery,
    ) -> None:
        self._nursery = nursery
        super().__init__(plan, engine, recorder, factory)

    def make_host(self, number: int) -> NodeHost:
        """A host with a nursery."""
        host = super().make_host(number)
        host.nursery = self._nursery
        return host
