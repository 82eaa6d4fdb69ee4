"""The world of whole nodes, for the heap engine, and for the trio engine, which only drives the
nodes differently."""

from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.heap.clients import ClientConnection, ClientConnections, Line
from disque_trio.sim.engines.heap.driving import HeapDriver
from disque_trio.sim.engines.heap.links import NodeLinks
from disque_trio.sim.engines.heap.node_clients import SimClientPort
from disque_trio.sim.engines.heap.node_hosts import Drive, Driver, NodeHost, SimEventLoop
from disque_trio.sim.engines.heap.nodes import Host, MachineFactory, Site
from disque_trio.sim.engines.heap.world import World
from disque_trio.sim.model.recorder import Recorder
from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios.plan import Plan


def on_the_heap(engine: Engine) -> Drive:
    """Return the driver for batches as events."""

    def drive(host: NodeHost, event_loop: SimEventLoop) -> Driver:
        return HeapDriver(host, event_loop, host.clock, engine)

    return drive


class NodeWorld(World):
    """The world of one run."""

    def __init__(
        self,
        plan: Plan,
        engine: Engine,
        recorder: Recorder,
        factory: MachineFactory,
        drive: Drive,
    ) -> None:
        self._factory = factory
        self._drive = drive
        self._nodes: dict[int, NodeHost] = {}
        super().__init__(plan, engine, recorder)

    def surround(self) -> None:
        """Create links and connections that pass objects, and sometimes bytes."""
        plan = self.plan
        engine, recorder = self.engine, self.recorder
        rng = stream(plan.seed, "pieces", "links")
        self._links = NodeLinks(engine, recorder, self.network, self.names, rng, plan.codec_every)
        self.links = self._links.links
        self._rng = stream(plan.seed, "pieces", "clients")
        self.clients = ClientConnections(engine, recorder, self._connect)

    def _connect(self, clients: ClientConnections, connection: ClientConnection) -> Line | None:
        host = self._nodes[connection.host.number]
        if host.event_loop is None:
            return None
        return SimClientPort(clients, connection, host, host.event_loop, self.engine, self._rng)

    def make_host(self, site: Site) -> Host:
        """Return a host on which nodes run."""
        host = NodeHost(
            self.engine,
            self.recorder,
            site,
            links=self._links,
            crashed=self._crashed,
            factory=self._factory,
            drive=self._drive,
            encodes_every=self.plan.codec_every,
        )
        self._links.add(host)
        self.clients.add_host(host)
        self._nodes[host.number] = host
        return host

    def _crashed(self, host: NodeHost) -> None:
        self._links.crashed(host)
        self.clients.crashed(host)
