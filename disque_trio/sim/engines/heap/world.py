"""The world of a run: hosts, with their links and clients.

`fault_actions` applies faults to the world.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.heap.clients import Actor, ClientConnections
from disque_trio.sim.engines.heap.nodes import PORT, Host, Site
from disque_trio.sim.engines.links import Links
from disque_trio.sim.model.clock import NodeClock
from disque_trio.sim.model.disk import Disk
from disque_trio.sim.model.network import Network
from disque_trio.sim.model.recorder import Recorder
from disque_trio.sim.model.vector_clocks import NoClock, VectorClock
from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios.plan import ClockPlan, Micros, Plan
from disque_trio.sim.workload.actions import Agent
from disque_trio.sim.workload.operators import Operator, Refused, Word
from disque_trio.statemachine.base import NodeId
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.directives import parse_line
from disque_trio.statemachine.knobs import Knobs

START_SPREAD: Final[Micros] = 100_000
"""Nodes start within this time of each other, so that their heartbeats do not coincide."""


class FormingError(Exception):
    """The nodes have not formed a cluster in the warm-up."""


class World(ABC):
    """The world of one run. Each engine has its own hosts, links and client connections."""

    clients: ClientConnections
    links: Links

    def __init__(self, plan: Plan, engine: Engine, recorder: Recorder) -> None:
        self.plan = plan
        self.engine = engine
        self.recorder = recorder
        self.network = Network(plan.link, stream(plan.seed, "net"))
        self.network.become_reliable()
        self.names: dict[NodeId, str] = {}
        self.hosts: dict[int, Host] = {}
        self._config = config_of(plan)
        self._actors = 0
        self.surround()
        for number in range(1, plan.nodes + 1):
            self.add_host(number)
        self._operator = Operator("op")
        self._operating = self.add_agent(self._operator)

    @abstractmethod
    def surround(self) -> None:
        """Create `links` and `clients`."""

    @abstractmethod
    def make_host(self, site: Site) -> Host:
        """Return a host that is added to links and clients."""

    def add_host(self, number: int) -> Host:
        """Add a host."""
        plan = self.plan
        site = Site(
            number=number,
            seed=plan.seed,
            config=attrs.evolve(self._config, replica_zone=plan.zone(number)),
            clock=NodeClock(self.clock_plan(number)),
            vector=self._vector(),
            names=self.names,
            disk=Disk(stream(plan.seed, "disk", number), plan.sync),
            knobs=Knobs(**dict(plan.knobs)),
            capabilities=plan.capabilities_of(number),
        )
        host = self.hosts[number] = self.make_host(site)
        return host

    def clock_plan(self, number: int) -> ClockPlan:
        """Return the node's clocks in the plan."""
        clocks = self.plan.clocks
        return clocks[number - 1] if number <= len(clocks) else ClockPlan()

    def _vector(self) -> VectorClock:
        self._actors += 1
        return (VectorClock if self.plan.vector_clocks else NoClock)(self._actors - 1)

    def add_agent(self, agent: Agent) -> Actor:
        """Add an agent."""
        return self.clients.add_agent(agent, self._vector())

    def form(self) -> Iterator[Micros]:
        """Start the nodes, and wait until they are a cluster. Raise `FormingError` if they do not
        become one. The caller advances the time to each moment that is yielded."""
        self._start_all()
        yield 0
        if not self.is_formed(list(self.hosts)):
            raise FormingError(f"{self.plan.scenario}, seed {self.plan.seed}: no cluster at time 0")

    def _start_all(self) -> None:
        """Start all nodes. They know each other, or n1 meets them."""
        for host in self.hosts.values():
            spread = stream(self.plan.seed, "start", host.number).random()
            self.engine.later(int(spread * START_SPREAD), self._start_fresh, host)
        if self.plan.forming == "meet":
            self.engine.later(2 * START_SPREAD, self._meet_all, self.hosts[1])

    def _start_fresh(self, host: Host) -> None:
        others = self.others(host) if self.plan.forming != "meet" else []
        host.start("fresh", [Peer(other.id, other.ip, PORT) for other in others])

    def _meet_all(self, first: Host) -> None:
        for host in self.others(first):
            self.meet(first, host)

    def is_formed(self, numbers: Sequence[int]) -> bool:
        """Do all these nodes run, and have links to each other?"""
        hosts = [self.hosts[number] for number in numbers]
        return all(
            host.is_up
            and not host.is_paused
            and all(other is host or host.is_linked_to(other.id) for other in hosts)
            for host in hosts
        )

    # Operators.

    def command(self, host: Host, *words: Word, refused: Refused | None = None) -> None:
        """Send a command from the operator to a node."""
        self._operator.ask(host.number, words, refused)
        self.clients.settle(self._operating)

    def meet(self, host: Host, other: Host) -> None:
        """Send CLUSTER MEET."""
        self.command(host, "CLUSTER", "MEET", other.ip, PORT)

    def introduce(self, host: Host) -> None:
        """Make all other nodes meet the node, unless they know it."""
        for other in self.others(host):
            if other.is_up and not other.knows(host.id):
                other.note("meet", peer=host.name)
                self.meet(other, host)

    def others(self, host: Host) -> list[Host]:
        """Return all other hosts."""
        return [other for other in self.hosts.values() if other is not host]


def config_of(plan: Plan) -> Config:
    """Return the configuration of every node."""
    config = Config(trace_sample=0)  # the run records the rows of all jobs
    for name, value in plan.config:
        config = parse_line(config, [name, *value.split()])
    return config
