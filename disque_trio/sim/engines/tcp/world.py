"""The world of the tcp engine, whose hosts have processes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs
import trio

from disque_trio.sim.engines.heap.clients import ClientConnections
from disque_trio.sim.engines.heap.nodes import Host, MachineError, Site
from disque_trio.sim.engines.heap.world import FormingError, World
from disque_trio.sim.engines.live_events import LiveEngine
from disque_trio.sim.engines.tcp.addresses import NodeAddresses
from disque_trio.sim.engines.tcp.clients import Sockets
from disque_trio.sim.engines.tcp.hosts import ProcessHost
from disque_trio.sim.engines.tcp.links import ProxyLinks
from disque_trio.sim.engines.tcp.merge import Sources
from disque_trio.sim.engines.tcp.processes import NodeProcess
from disque_trio.sim.model.recorder import Recorder
from disque_trio.sim.scenarios.plan import Micros, Plan
from disque_trio.sim.workload.operators import Refused, Word
from disque_trio.statemachine.base import NodeId
from disque_trio.statemachine.wording import short_name
from disque_trio.tracing.rows import Row

FORMING_TIME: Final[Micros] = 60_000_000
"""How long processes may take to start and to link, on a busy machine."""
_LOOK: Final[Micros] = 200_000
AGAIN: Final[Micros] = 500_000
TRIES: Final = 60


class ProcessWorld(World):
    """The world of one run of the tcp engine."""

    def __init__(
        self,
        plan: Plan,
        engine: LiveEngine,
        recorder: Recorder,
        *,
        directory: Path,
        addresses: NodeAddresses,
        nursery: trio.Nursery,
    ) -> None:
        self._live = engine
        self._directory = directory
        self.addresses = addresses
        self._nursery = nursery
        self.processes: list[ProcessHost] = []
        """All hosts."""
        super().__init__(plan, engine, recorder)

    def surround(self) -> None:
        """Create proxies and sockets."""
        live, recorder, addresses, nursery = (
            self._live,
            self.recorder,
            self.addresses,
            self._nursery,
        )
        self.proxies = ProxyLinks(live, self.network, self.names, addresses, nursery)
        self.links = self.proxies.links
        self.sockets = Sockets(live, addresses, nursery)
        self.clients = ClientConnections(live, recorder, self.sockets.connect)

    def make_host(self, site: Site) -> Host:
        """Return a host of processes."""
        number = site.number
        zone = (("replica-zone", self.plan.zone(number)),) if self.plan.zones else ()
        process = NodeProcess(self._directory, self.addresses, number, (*self.plan.config, *zone))
        host = ProcessHost(self._live, self.recorder, site, self.addresses, process)
        self.processes.append(host)
        self.proxies.add(host)
        self.clients.add_host(host)
        return host

    def form(self) -> Iterator[Micros]:
        """Start the processes; when all are linked, time 0 begins."""
        self._start_all()
        while not self.is_formed(list(self.hosts)):
            if self._live.now >= -_LOOK:
                raise FormingError(f"no cluster within {FORMING_TIME // 1_000_000} s")
            yield self._live.now + _LOOK
        self.proxies.begin(self._live.sync())
        self._live.restart()

    def meet(self, host: Host, other: Host) -> None:
        """Send CLUSTER MEET."""
        self.command(host, "CLUSTER", "MEET", other.ip, self.addresses.port)

    def introduce(self, host: Host) -> None:
        """Make all other nodes meet the node. It may not listen yet, so they repeat it until they
        know it."""
        self._introduce((host, host.id, TRIES))

    def _introduce(self, asked: tuple[Host, NodeId, int]) -> None:
        host, name, tries = asked
        others = [other for other in self.others(host) if other.is_up and not other.knows(name)]
        if host.id == name:
            for other in others:
                self.meet(other, host)
            if others and tries:
                self._live.later(AGAIN, self._introduce, (host, name, tries - 1))

    def command(self, host: Host, *words: Word, refused: Refused | None = None) -> None:
        """Send a command to a node, and repeat it if the node does not listen yet."""
        self._command(host, words, refused, TRIES)

    def _command(
        self, host: Host, words: tuple[Word, ...], refused: Refused | None, tries: int
    ) -> None:
        pending = self._operator.ask(host.number, words, refused)
        self.clients.settle(self._operating)

        def look(_: None) -> None:
            if not pending.is_done:
                self._live.later(AGAIN, look, None)
            elif pending.is_lost and tries:
                self._command(host, words, refused, tries - 1)

        self._live.later(AGAIN, look, None)

    # Its rows.

    def stop(self) -> None:
        """End all processes."""
        for host in self.processes:
            host.process.kill()
            host.tail.read()
            host.tail.close()

    def sources(self, ours: list[Row]) -> Sources:
        """Return everything to merge. Raise `MachineError` if a node has logged a traceback."""
        for host in self.processes:
            if "Traceback" in host.process.log:
                raise MachineError(f"{host.name}: {host.process.log[-2000:]}")
        return Sources(
            epoch=self._live.epoch,
            traces=[host.trace() for host in self.processes],
            ours=ours,
            flights=self.proxies.flights,
            agents=self.sockets.agents,
            operations=self.sockets.operations,
        )

    def with_our_names(self, row: Row) -> Row:
        """Return a node's row with the run's names and time."""
        names = {short_name(id): name for id, name in self.names.items()}
        node, peer = names.get(row.node, ""), names.get(row.peer, row.peer)
        return attrs.evolve(row, time=row.time - self._live.epoch, node=node, peer=peer)
