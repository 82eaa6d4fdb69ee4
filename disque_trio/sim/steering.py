"""A cluster to steer by hand, for tests and for property-based testing.

    sim = Simulation(nodes=3, seed=7)
    client = sim.client("n1")
    job = client.addjob("mail", "hello", replicate=3, retry=1)
    sim.run_until(lambda: job.is_done)
    with sim.partition(["n1"], ["n2", "n3"]):
        sim.run(5_000_000)
    sim.settle()

The cluster is formed when the constructor returns, at time 0. Time passes only in `run`, `settle`
and the like. Nodes are given by name or number; times are microseconds unless a name says ms.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from disque_trio.sim.engines.heap.nodes import MachineFactory
from disque_trio.sim.engines.heap.run import LOOK, QUIET, run_on_heap
from disque_trio.sim.fault_controls import ActiveFault, FaultControls, Name, number_of
from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios.plan import ClockPlan, Consumer, LinkPlan, Micros, Plan
from disque_trio.sim.workload.agents import Worker
from disque_trio.sim.workload.operators import Operator, Pending, Word
from disque_trio.statemachine.invariants import check
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.state import NodeState
from disque_trio.tracing.rows import Row

_LIMIT: Final[Micros] = 60_000_000


class LimitError(AssertionError):
    """A condition was not met in time."""


class Client:
    """One connection to one node. Requests get their replies in order."""

    def __init__(self, simulation: "Simulation", name: str, node: int) -> None:
        self._simulation = simulation
        self._node = node
        self._operator = Operator(name)
        self._actor = simulation.world.add_agent(self._operator)

    def ask(self, *words: Word) -> Pending:
        """Send any request."""
        pending = self._operator.ask(self._node, words)
        self._simulation.world.clients.settle(self._actor)
        return pending

    def addjob(
        self, queue: str, body: str | bytes, timeout_ms: int = 1000, **options: int | bool
    ) -> Pending:
        """Send ADDJOB; options have lower-case names, ASYNC is `is_async`."""
        words: list[Word] = ["ADDJOB", queue, body, timeout_ms]
        for name, value in options.items():
            if name == "is_async":
                words += ["ASYNC"] if value else []
            else:
                words += [name.upper(), int(value)]
        return self.ask(*words)

    def getjob(self, *queues: str, count: int = 1, timeout_ms: int = 0) -> Pending:
        """Send GETJOB WITHCOUNTERS; without a timeout it does not wait."""
        wait: list[Word] = ["TIMEOUT", timeout_ms] if timeout_ms else ["NOHANG"]
        return self.ask("GETJOB", *wait, "COUNT", count, "WITHCOUNTERS", "FROM", *queues)

    def ackjob(self, *jobs: bytes) -> Pending:
        """Send ACKJOB."""
        return self.ask("ACKJOB", *jobs)

    def close(self) -> None:
        """Close the connection. Requests without a reply are lost."""
        self._operator.hang_up(self._node)
        self._simulation.world.clients.settle(self._actor)


class Simulation(FaultControls):
    """The heap engine with its controls."""

    def __init__(
        self,
        plan: Plan | None = None,
        *,
        nodes: int = 3,
        seed: int = 0,
        config: Sequence[tuple[str, str]] = (("cluster-node-timeout", "2000"),),
        link: LinkPlan | None = None,
        clocks: Sequence[ClockPlan] = (),
        observer: Callable[[Row], None] | None = None,
        machine_factory: MachineFactory = Machine,
        vector_clocks: bool = True,
    ) -> None:
        """Create a cluster from a plan, with its agents and faults, or from the other arguments."""
        self.plan = plan or Plan(
            scenario="by hand",
            seed=seed,
            nodes=nodes,
            config=tuple(config),
            link=link or LinkPlan(),
            clocks=tuple(clocks),
            vector_clocks=vector_clocks,
            codec_every=1,
        )
        self.rows: list[Row] = []
        """All rows, unless there is an observer."""
        self._run = run_on_heap(self.plan, observer or self.rows.append, machine_factory)
        self.world = self._run.world
        self.engine = self._run.engine
        self.active_faults: dict[ActiveFault, None] = {}
        self._fault_actions = self._run.fault_actions
        self._clients: dict[int, Client] = {}
        self._last_client = 0
        for moment in self._run.warm_up():
            self.engine.run(moment)
        self._run.begin()

    # State.

    @property
    def now(self) -> Micros:
        """True time since the cluster was formed."""
        return self.engine.now

    @property
    def digest(self) -> str:
        """The digest of all rows."""
        return self._run.recorder.digest()

    def names(self) -> list[str]:
        """Return the names of the running nodes."""
        return [host.name for host in self.world.hosts.values() if host.machine is not None]

    def machine(self, node: Name) -> Machine:
        """Return the machine of a running node."""
        machine = self.world.hosts[number_of(node)].machine
        assert machine is not None, f"{node} does not run"
        return machine

    def state(self, node: Name) -> NodeState:
        """Return the node's state."""
        return self.machine(node).state

    def check(self) -> None:
        """Raise AssertionError if a node's state violates an invariant."""
        for name in self.names():
            check(self.state(name))

    # Clients.

    def client(self, node: Name) -> Client:
        """Return a new client, named x1, x2 …"""
        self._last_client += 1
        return Client(self, f"x{self._last_client}", number_of(node))

    def request(self, node: Name, *words: Word) -> Pending:
        """Send a request from a persistent client, one for each node."""
        number = number_of(node)
        if number not in self._clients:
            self._clients[number] = self.client(number)
        return self._clients[number].ask(*words)

    # Time.

    def run(self, duration: Micros) -> None:
        """Advance the time."""
        self.engine.run(self.engine.now + duration)

    def run_until(self, condition: Callable[[], bool], limit: Micros = _LIMIT) -> None:
        """Advance the time until the condition holds. Raise `LimitError` if that takes longer."""
        end = self.engine.now + limit
        while not condition():
            if self.engine.next_time() > end:
                raise LimitError(f"not within {limit} us: {condition}")
            self.engine.step()

    # The end.

    def settle(self, limit: Micros = _LIMIT) -> None:
        """End all faults, and advance the time until all nodes have links to each other."""
        self.heal()
        self.run_until(lambda: self.world.is_formed(self._fault_actions.numbers()), limit)

    def drain(self, limit: Micros = 10 * _LIMIT) -> None:
        """Settle, and let workers at every node acknowledge all jobs, until all nodes have been
        empty for a while."""
        self.settle()
        end = self.engine.now + limit
        empty_since = None
        drained: dict[str, None] = {}
        while empty_since is None or self.engine.now - empty_since < QUIET:
            if self.engine.now > end:
                raise LimitError(f"not drained within {limit} us")
            self._drain_queues(drained)
            self.run(LOOK)
            if any(self.state(name).jobs for name in self.names()):
                empty_since = None
            elif empty_since is None:
                empty_since = self.engine.now

    def ending(self, plan: Plan) -> Iterator[Micros]:
        """End like a planned run: all faults end, workers at every node acknowledge all jobs until
        none is left, and all nodes are inspected. The caller advances the time to each moment.
        `plan` includes the operations by hand, because the bound follows from it."""
        self.heal()
        self._run.plan = plan
        drained: dict[str, None] = {}
        for moment in self._run.ending():
            yield moment
            self._drain_queues(drained)

    def _drain_queues(self, drained: dict[str, None]) -> None:
        """Give every node a worker for each queue of any node."""
        for name in self.names():
            for job in self.state(name).jobs.values():
                queue = "" if job.queue is None else job.queue.decode()
                if queue and queue not in drained:
                    drained[queue] = None
                    for number in self._fault_actions.numbers():
                        self._drain_queue(queue, number)

    def _drain_queue(self, queue: str, node: int) -> None:
        name = f"drain/{queue}/{node}/{self.engine.now}"
        plan = Consumer(name=name, node=node, queues=(queue,), start=self.engine.now)
        rng = stream(self.plan.seed, "work", name)
        self.world.add_agent(Worker(plan, len(self.world.hosts), rng))
