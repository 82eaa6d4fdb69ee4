"""The virtual engine: the nodes that run on sockets, driven by an event heap."""

from collections.abc import Callable

from disque_trio.sim.engines.heap.clients import ClientConnections
from disque_trio.sim.engines.heap.links import Links
from disque_trio.sim.engines.heap.nodes import Host, MachineFactory
from disque_trio.sim.engines.heap.run import Outcome, Run
from disque_trio.sim.engines.heap.world import World
from disque_trio.sim.engines.trio.clients import SimClientConnections
from disque_trio.sim.engines.trio.links import SimLinks
from disque_trio.sim.engines.trio.store import ByteDisk
from disque_trio.sim.engines.virtual.hosts import VirtualHost
from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.statemachine.machine import Machine
from disque_trio.tracing.rows import Row


class VirtualWorld(World):
    """The world of one run."""

    host_kind = VirtualHost
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

    def make_host(self, number: int) -> Host:
        """A host."""
        host = super().make_host(number)
        assert isinstance(host, VirtualHost)
        host.live, host.dial = self.engine, self._links.open
        return host


class VirtualRun(Run):
    """One plan, played."""

    checks_states = False

    def make_world(self, machine_factory: MachineFactory) -> World:
        """A world of whole nodes."""
        return VirtualWorld(self.plan, self.engine, self.recorder, machine_factory)


def simulate(
    plan: Plan,
    observer: Callable[[Row], None] | None = None,
    *,
    machine_factory: MachineFactory = Machine,
    messages: bool = True,
) -> Outcome:
    """Play a plan. Every row goes to the observer; without `messages` but those of messages."""
    return VirtualRun(plan, observer, machine_factory, messages=messages).play()
