"""The world of the heap engine: hosts, with the links and clients that surround them.

A machine's output goes to `links` and `clients`; what faults do to the world is in `fault_actions`.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import attrs

from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.heap.clients import Actor, ClientConnections
from disque_trio.sim.engines.heap.links import Links
from disque_trio.sim.engines.heap.nodes import PORT, Host, MachineFactory
from disque_trio.sim.engines.heap.surroundings import NodeLinks
from disque_trio.sim.model.clock import NodeClock
from disque_trio.sim.model.disk import Disk
from disque_trio.sim.model.network import Network
from disque_trio.sim.model.recorder import Recorder
from disque_trio.sim.model.vector_clocks import NoClock, VectorClock
from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios.plan import ClockPlan, Micros, Plan
from disque_trio.sim.workload.operators import Operator
from disque_trio.sim.workload.wishes import Agent
from disque_trio.statemachine.base import NodeId
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.directives import parse_line
from disque_trio.statemachine.knobs import Knobs

START_SPREAD: Final[Micros] = 100_000
"""Nodes start within so much of each other, so that their heartbeats do not coincide."""


class WorldLinks(NodeLinks[Host], Protocol):
    """`Links`, or what another engine has instead."""

    def add(self, host: Host) -> None:
        """Add a host that can be dialled."""

    def mended(self, source: int, target: int) -> None:
        """A cut or clog has ended."""

    def half_open(self, source: int, target: int, over: Callable[[], None]) -> bool:
        """As `Links.half_open`."""


class World:
    """The world of one run."""

    host_kind: type[Host] = Host
    """The class of hosts."""
    disk_kind: type[Disk] = Disk
    """The class of disks."""

    def __init__(
        self, plan: Plan, engine: Engine, recorder: Recorder, factory: MachineFactory
    ) -> None:
        self.plan = plan
        self.engine = engine
        self.recorder = recorder
        self.network = Network(plan.link, stream(plan.seed, "net"))
        self.network.become_reliable()
        self.names: dict[NodeId, str] = {}
        self.links = self.make_links()
        self.clients = self.make_clients()
        self.hosts: dict[int, Host] = {}
        self._factory = factory
        self._config = config_of(plan)
        self._actors = 0
        for number in range(1, plan.nodes + 1):
            self.add_host(number)
        self._operator = Operator("op")
        self._operating = self.add_agent(self._operator)

    # How it is made. Other engines have other hosts, links and client connections.

    def make_links(self) -> WorldLinks:
        """The links of this engine."""
        return Links(self.engine, self.recorder, self.network, self.names, self.plan.codec_every)

    def make_clients(self) -> ClientConnections:
        """The client connections of this engine."""
        return ClientConnections(self.engine, self.recorder)

    def make_host(self, number: int) -> Host:
        """The host of a node."""
        return self.host_kind(
            self.engine,
            self.recorder,
            number,
            links=self.links,
            clients=self.clients,
            seed=self.plan.seed,
            config=attrs.evolve(self._config, replica_zone=self.plan.zone(number)),
            factory=self._factory,
            clock=NodeClock(self.clock_plan(number)),
            vector=self._vector(),
            names=self.names,
            disk=self.disk_kind(stream(self.plan.seed, "disk", number), self.plan.sync),
            knobs=Knobs(**dict(self.plan.knobs)),
        )

    def add_host(self, number: int) -> Host:
        """Add a host."""
        host = self.hosts[number] = self.make_host(number)
        self.links.add(host)
        self.clients.add_host(host)
        return host

    def clock_plan(self, number: int) -> ClockPlan:
        """The node's clocks in the plan."""
        clocks = self.plan.clocks
        return clocks[number - 1] if number <= len(clocks) else ClockPlan()

    def _vector(self) -> VectorClock:
        self._actors += 1
        return (VectorClock if self.plan.vector_clocks else NoClock)(self._actors - 1)

    def add_agent(self, agent: Agent) -> Actor:
        """Add an agent."""
        return self.clients.add_agent(agent, self._vector())

    def start_all(self) -> None:
        """Start the nodes; they know each other, or n1 meets them."""
        for host in self.hosts.values():
            spread = stream(self.plan.seed, "start", host.number).random()
            self.engine.later(int(spread * START_SPREAD), self._start_fresh, host)
        if self.plan.forming == "meet":
            self.engine.later(2 * START_SPREAD, self._meet_all, self.hosts[1])

    def _start_fresh(self, host: Host) -> None:
        others = [one for one in self.hosts.values() if one is not host]
        if self.plan.forming == "meet":
            others = []
        host.start("fresh", [Peer(other.id, other.ip, PORT) for other in others])

    def _meet_all(self, first: Host) -> None:
        for host in self.hosts.values():
            if host is not first:
                self.meet(first, host)

    def is_formed(self, numbers: Sequence[int]) -> bool:
        """Does every one of these nodes run and have links to all the others?"""
        hosts = [self.hosts[number] for number in numbers]
        return all(
            host.is_up
            and not host.is_paused
            and all(other is host or host.is_linked_to(other.id) for other in hosts)
            for host in hosts
        )

    # Operators.

    def command(self, host: Host, *words: str | bytes | int) -> None:
        """Send a command from the operator to a node."""
        self._operator.ask(host.number, words)
        self.clients.settle(self._operating)

    def meet(self, host: Host, other: Host) -> None:
        """CLUSTER MEET."""
        self.command(host, "CLUSTER", "MEET", other.ip, PORT)


def config_of(plan: Plan) -> Config:
    """The configuration of every node."""
    config = Config(trace_sample=0)  # the run keeps the rows of all jobs
    for name, value in plan.config:
        config = parse_line(config, [name, *value.split()])
    return config
