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

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final

import attrs

from disque_trio.sim.engines.heap.nodes import MachineFactory
from disque_trio.sim.engines.heap.run import LOOK, QUIET, Run
from disque_trio.sim.model.faults import Link
from disque_trio.sim.model.network import Rule
from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios.plan import ClockPlan, Consumer, LinkPlan, Micros, Plan
from disque_trio.sim.workload.agents import Worker
from disque_trio.sim.workload.operators import Operator, Pending, Word
from disque_trio.statemachine.invariants import check
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.state import NodeState
from disque_trio.tracing.rows import Row

Name = str | int
"""``n1``, or 1."""
_LIMIT: Final[Micros] = 60_000_000


class LimitError(AssertionError):
    """A condition was not met in time."""


@attrs.define(eq=False)
class Trouble:
    """A fault that goes on until it is undone, or until its ``with`` block ends."""

    _simulation: "Simulation"
    _undo: Callable[[], object]

    def undo(self) -> None:
        """End it. A second call does nothing."""
        if self in self._simulation.troubles:
            del self._simulation.troubles[self]
            self._undo()

    release = undo

    def __enter__(self) -> "Trouble":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.undo()


class Client:
    """One connection to one node. Requests are answered in order."""

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
        """ADDJOB; options by their names in lower case, ASYNC as `is_async`."""
        words: list[Word] = ["ADDJOB", queue, body, timeout_ms]
        for name, value in options.items():
            if name == "is_async":
                words += ["ASYNC"] if value else []
            else:
                words += [name.upper(), int(value)]
        return self.ask(*words)

    def getjob(self, *queues: str, count: int = 1, timeout_ms: int = 0) -> Pending:
        """GETJOB WITHCOUNTERS; without a time-out it does not wait at all."""
        wait: list[Word] = ["TIMEOUT", timeout_ms] if timeout_ms else ["NOHANG"]
        return self.ask("GETJOB", *wait, "COUNT", count, "WITHCOUNTERS", "FROM", *queues)

    def ackjob(self, *jobs: bytes) -> Pending:
        """ACKJOB."""
        return self.ask("ACKJOB", *jobs)

    def close(self) -> None:
        """Close the connection. Requests without a reply are lost."""
        self._operator.hang_up(self._node)
        self._simulation.world.clients.settle(self._actor)


class Simulation:
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
        """From a plan, with its agents and faults, or from the other arguments."""
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
        """All rows, unless an observer takes them."""
        self._run = Run(self.plan, observer or self.rows.append, machine_factory, messages=True)
        self.world = self._run.world
        self.engine = self._run.engine
        self.troubles: dict[Trouble, None] = {}
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
        """The nodes that run."""
        return [host.name for host in self.world.hosts.values() if host.machine is not None]

    def machine(self, node: Name) -> Machine:
        """The machine of a node that runs."""
        machine = self.world.hosts[_number(node)].machine
        assert machine is not None, f"{node} does not run"
        return machine

    def state(self, node: Name) -> NodeState:
        """The node's state."""
        return self.machine(node).state

    def check(self) -> None:
        """Raise AssertionError if a node's state breaks an invariant."""
        for name in self.names():
            check(self.state(name))

    # Clients.

    def client(self, node: Name) -> Client:
        """One more client, called x1, x2 …"""
        self._last_client += 1
        return Client(self, f"x{self._last_client}", _number(node))

    def request(self, node: Name, *words: Word) -> Pending:
        """Send a request from a client that is kept for each node."""
        number = _number(node)
        if number not in self._clients:
            self._clients[number] = self.client(number)
        return self._clients[number].ask(*words)

    # Time.

    def run(self, duration: Micros) -> None:
        """Let time pass."""
        self.engine.run(self.engine.now + duration)

    def run_until(self, condition: Callable[[], bool], limit: Micros = _LIMIT) -> None:
        """Let time pass until the condition holds. Raises `LimitError` if that takes longer."""
        end = self.engine.now + limit
        while not condition():
            if self.engine.next_time() > end:
                raise LimitError(f"not within {limit} us: {condition}")
            self.engine.step()

    # Links.

    def _trouble(
        self, links: Sequence[Link], do: Callable[[Link], bool], undo: Callable[[Link], bool]
    ) -> Trouble:
        for link in links:
            do(link)
        return self._keep(lambda: [undo(link) for link in links])

    def _keep(self, undo: Callable[[], object]) -> Trouble:
        trouble = Trouble(self, undo)
        self.troubles[trouble] = None
        return trouble

    def partition(self, *groups: Sequence[Name]) -> Trouble:
        """Cut all links between groups."""
        numbers = [[_number(node) for node in group] for group in groups]
        links = [
            (source, target)
            for group in numbers
            for other in numbers
            if other is not group
            for source in group
            for target in other
        ]
        return self._trouble(links, self._fault_actions.cut, self._fault_actions.mend)

    def isolate(self, node: Name) -> Trouble:
        """Cut all links of the node."""
        others = [number for number in self.world.hosts if number != _number(node)]
        return self.partition([node], others)

    def cut(self, source: Name, target: Name) -> Trouble:
        """Cut the link in this direction."""
        return self._trouble(
            _link(source, target), self._fault_actions.cut, self._fault_actions.mend
        )

    def hold(self, source: Name, target: Name) -> Trouble:
        """Keep back everything in this direction until it is released."""
        return self._trouble(
            _link(source, target), self._fault_actions.clog, self._fault_actions.release
        )

    def delay(self, source: Name, target: Name, delay: Micros) -> Trouble:
        """Add a delay in this direction."""
        fault_actions = self._fault_actions
        return self._trouble(
            _link(source, target),
            lambda link: fault_actions.add_delay(link, delay),
            lambda link: fault_actions.add_delay(link, -delay),
        )

    def drop(
        self, source: Name, target: Name, share: float = 1.0, *, only: str = "", count: int = 0
    ) -> Trouble:
        """Lose a share of the messages, of those named `only`, at most `count`."""
        rule, fault_actions = Rule(share, only, count), self._fault_actions
        return self._trouble(
            _link(source, target),
            lambda link: fault_actions.add_rule(link, rule),
            lambda link: fault_actions.remove_rule(link, rule),
        )

    # Processes.

    def crash(self, node: Name, cause: str = "kill") -> Trouble:
        """Kill the process; undone, it starts again, without its jobs."""
        number = _number(node)
        self._fault_actions.crash(number, cause)
        return self._keep(lambda: self._fault_actions.start(number))

    def restart(self, node: Name) -> None:
        """Start the process, after ending it if it runs."""
        self._fault_actions.crash(_number(node), "kill")
        self._fault_actions.start(_number(node))

    def wipe(self, node: Name) -> None:
        """Kill the process; it starts again with a new id and no data."""
        self._fault_actions.wipe(_number(node))

    def remove(self, node: Name) -> None:
        """Kill the process for ever."""
        self._fault_actions.remove(_number(node))

    def pause(self, node: Name) -> Trouble:
        """Stop the process."""
        number = _number(node)
        self._fault_actions.pause(number)
        return self._keep(lambda: self._fault_actions.resume(number))

    def slow(self, node: Name, busy: Micros) -> Trouble:
        """Make each batch of inputs take so long."""
        number = _number(node)
        self._fault_actions.slow(number, busy)
        return self._keep(lambda: self._fault_actions.slow(number, 0))

    # Clocks.

    def drift(self, node: Name, ppm: int) -> Trouble:
        """Make the clocks run so much faster than true time."""
        number = _number(node)
        self._fault_actions.set_rate(number, ppm)
        return self._keep(lambda: self._fault_actions.set_rate(number, None))

    def step_clock(self, node: Name, ms: int) -> None:
        """Make the wall clock jump."""
        self._fault_actions.step_clock(_number(node), ms)

    def freeze(self, node: Name) -> Trouble:
        """Stop the wall clock."""
        number = _number(node)
        self._fault_actions.freeze(number)
        return self._keep(lambda: self._fault_actions.thaw(number))

    # Membership.

    def join(self) -> str:
        """Add a new node, which all others meet. Returns its name."""
        self._fault_actions.join(0)
        return f"n{len(self.world.hosts)}"

    def leave(self, node: Name) -> Trouble:
        """Make the node announce that it leaves."""
        number = _number(node)
        self._fault_actions.leave(number, leaving=True)
        return self._keep(lambda: self._fault_actions.leave(number, leaving=False))

    def forget(self, node: Name) -> Trouble:
        """Make all others forget the node; undone, they meet it again."""
        number = _number(node)
        self._fault_actions.forget(number)
        return self._keep(lambda: self._fault_actions.meet(number))

    # The end.

    def heal(self) -> None:
        """Undo every fault."""
        for trouble in list(self.troubles):
            trouble.undo()

    def settle(self, limit: Micros = _LIMIT) -> None:
        """Heal, and let time pass until all nodes have links to each other."""
        self.heal()
        self.run_until(lambda: self.world.is_formed(self._fault_actions.numbers()), limit)

    def drain(self, limit: Micros = 10 * _LIMIT) -> None:
        """Settle, and have workers at every node ack all jobs, until all nodes are empty for a
        while."""
        self.settle()
        end = self.engine.now + limit
        empty_since = None
        hired: dict[str, None] = {}
        while empty_since is None or self.engine.now - empty_since < QUIET:
            if self.engine.now > end:
                raise LimitError(f"not drained within {limit} us")
            self._hire(hired)
            self.run(LOOK)
            if any(self.state(name).jobs for name in self.names()):
                empty_since = None
            elif empty_since is None:
                empty_since = self.engine.now

    def _hire(self, hired: dict[str, None]) -> None:
        """Give every node a worker for each queue that any node has."""
        for name in self.names():
            for job in self.state(name).jobs.values():
                queue = "" if job.queue is None else job.queue.decode()
                if queue and queue not in hired:
                    hired[queue] = None
                    for number in self._fault_actions.numbers():
                        self._hire_for(queue, number)

    def _hire_for(self, queue: str, node: int) -> None:
        name = f"drain/{queue}/{node}/{self.engine.now}"
        plan = Consumer(name=name, node=node, queues=(queue,), start=self.engine.now)
        rng = stream(self.plan.seed, "work", name)
        self.world.add_agent(Worker(plan, len(self.world.hosts), rng))


def _number(node: Name) -> int:
    return node if isinstance(node, int) else int(node[1:])


def _link(source: Name, target: Name) -> list[Link]:
    return [(_number(source), _number(target))]
