"""A Hypothesis state machine that controls a cluster step by step."""

from collections.abc import Callable
from typing import Any, Final

from disque_trio.sim.checkers.verdict import Judge, judge
from disque_trio.sim.fault_controls import ActiveFault
from disque_trio.sim.scenarios.plan import Expect, Micros, Plan
from disque_trio.sim.steering import Simulation
from disque_trio.sim.workload.operators import Pending
from disque_trio.statemachine.base import Status
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.messages import MESSAGES
from disque_trio.testing.drawing import (
    ALLOWED,
    NODE_TIMEOUT,
    SECOND,
    durations,
    job_options,
)
from disque_trio.testing.hypothesis import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    st,
)

_ANY: Final = st.integers(0, 99)
"""An index into any list, modulo its length."""


class ClusterStateMachine(RuleBasedStateMachine):
    """A cluster with clients and faults that Hypothesis chooses.

    After each step the state of every node must keep its invariants, and no property may be
    violated. At the end all faults are undone, workers acknowledge all jobs, and the whole run is
    checked. Change the attributes or override `make_simulation` to test another cluster; add rules
    to send other requests. `sim` is the cluster, and `judge` has the checkers.
    """

    nodes: tuple[int, int] = (2, 5)
    """The minimum and the maximum number of nodes."""
    config: tuple[tuple[str, str], ...] = (NODE_TIMEOUT,)
    duplicates: tuple[str, ...] = ALLOWED
    """Causes of duplicates that are allowed."""
    machine_factory: Callable[..., Machine] = Machine
    most_troubles = 4
    """The maximum number of concurrent faults."""

    def __init__(self) -> None:
        super().__init__()
        self.sim: Simulation
        self.judge: Judge
        self.added: list[Pending] = []
        self.asked: list[Pending] = []
        self.active_faults: list[ActiveFault] = []

    def make_simulation(self, plan: Plan) -> Simulation:
        """Create the cluster, whose rows are passed to the checkers."""
        return Simulation(plan, observer=self.judge.see, machine_factory=type(self).machine_factory)

    @initialize(seed=st.integers(0, 1 << 32), size=st.integers(0, 99))
    def begin(self, seed: int, size: int) -> None:
        """Form a cluster."""
        low, high = self.nodes
        plan = Plan(
            scenario="by hypothesis",
            seed=seed,
            nodes=low + size % (high - low + 1),
            config=self.config,
            codec_every=1,
            expect=Expect(duplicates=self.duplicates),
        )
        self.judge = judge(plan)
        self.sim = self.make_simulation(plan)

    # For rules.

    def name(self, number: int) -> str:
        """The name of a node, for any number."""
        return f"n{1 + number % self.sim.plan.nodes}"

    def jobs(self) -> list[bytes]:
        """The ids of all jobs that were reported as added."""
        replies = [pending.reply for pending in self.added]
        return [reply.text for reply in replies if isinstance(reply, Status)]

    def taken(self) -> list[bytes]:
        """The ids of all jobs that were delivered."""
        replies = [pending.reply for pending in self.asked]
        delivered = [job for reply in replies if isinstance(reply, list) for job in reply]
        return [job[1] for job in delivered if isinstance(job, list) and isinstance(job[1], bytes)]

    def keep(self, trouble: ActiveFault) -> None:
        """Keep a fault, so that a later step may undo it. If there are too many, undo the
        oldest."""
        self.active_faults.append(trouble)
        if len(self.active_faults) > self.most_troubles:
            self.active_faults.pop(0).undo()

    # Clients.

    @rule(node=_ANY, queue=st.sampled_from(("q", "r")), options=job_options(5))
    def add_job(self, node: int, queue: str, options: dict[str, Any]) -> None:
        """A new client adds a job."""
        options["replicate"] = min(options["replicate"], self.sim.plan.nodes)
        body = f"job {len(self.added)}"
        client = self.sim.client(self.name(node))
        self.added.append(client.addjob(queue, body, 500, **options))

    @rule(node=_ANY, count=st.integers(1, 3), wait=st.sampled_from((0, 300)))
    def get_jobs(self, node: int, count: int, wait: int) -> None:
        """A new client requests jobs, and may wait."""
        client = self.sim.client(self.name(node))
        self.asked.append(client.getjob("q", "r", count=count, timeout_ms=wait))

    def _send(self, node: int, number: int, command: str) -> None:
        """Send a command for a job: ACKJOB for any added job, other commands for delivered ones."""
        known = self.jobs() if command == "ACKJOB" else self.taken()
        if known:
            job = known[number % len(known)]
            self.sim.request(self.name(node), command, job)

    @rule(node=_ANY, job=_ANY)
    def ack_job(self, node: int, job: int) -> None:
        """A client acknowledges a job at some node."""
        self._send(node, job, "ACKJOB")

    @rule(node=_ANY, job=_ANY)
    def fast_ack(self, node: int, job: int) -> None:
        """A client acknowledges a job with FASTACK."""
        self._send(node, job, "FASTACK")

    @rule(node=_ANY, job=_ANY)
    def nack(self, node: int, job: int) -> None:
        """A client returns a job as failed."""
        self._send(node, job, "NACK")

    @rule(node=_ANY, job=_ANY)
    def working(self, node: int, job: int) -> None:
        """A client renews the lease of a job."""
        self._send(node, job, "WORKING")

    # Links.

    @rule(mask=st.integers(1, 30))
    def partition(self, mask: int) -> None:
        """Cut the links between two groups."""
        names = [f"n{number}" for number in range(1, self.sim.plan.nodes + 1)]
        ours = [name for bit, name in enumerate(names) if mask >> bit & 1]
        theirs = [name for name in names if name not in ours]
        self.keep(self.sim.partition(ours, theirs))

    @rule(source=_ANY, other=_ANY)
    def cut(self, source: int, other: int) -> None:
        """Cut a link in one direction."""
        if self.name(source) != self.name(other):
            self.keep(self.sim.cut(self.name(source), self.name(other)))

    @rule(source=_ANY, other=_ANY, only=st.sampled_from(MESSAGES), count=st.integers(1, 5))
    def drop(self, source: int, other: int, only: str, count: int) -> None:
        """Drop some messages of one kind."""
        if self.name(source) != self.name(other):
            self.keep(self.sim.drop(self.name(source), self.name(other), only=only, count=count))

    # Processes and clocks.

    @rule(node=_ANY)
    def crash(self, node: int) -> None:
        """Kill a node; when the fault is undone, it restarts without its jobs."""
        self.keep(self.sim.crash(self.name(node)))

    @rule(node=_ANY)
    def restart(self, node: int) -> None:
        """Kill a node and restart it immediately."""
        self.sim.restart(self.name(node))

    @rule(node=_ANY)
    def pause_node(self, node: int) -> None:
        """Suspend a node."""
        self.keep(self.sim.pause(self.name(node)))

    @rule(node=_ANY, ppm=st.integers(-500, 500))
    def drift(self, node: int, ppm: int) -> None:
        """Let a node's clocks run fast or slow."""
        self.keep(self.sim.drift(self.name(node), ppm))

    @rule(node=_ANY, ms=st.sampled_from((-3_600_000, -1000, 1000, 3_600_000)))
    def step_clock(self, node: int, ms: int) -> None:
        """Change a wall clock."""
        self.sim.step_clock(self.name(node), ms)

    @precondition(lambda self: bool(self.active_faults))
    @rule(number=_ANY)
    def undo(self, number: int) -> None:
        """Undo one fault."""
        self.active_faults.pop(number % len(self.active_faults)).undo()

    @rule()
    def heal(self) -> None:
        """Undo all faults."""
        self.active_faults.clear()
        self.sim.heal()

    # Time.

    @rule(duration=durations(10 * SECOND))
    def run(self, duration: Micros) -> None:
        """Let time pass."""
        self.sim.run(duration)

    # What must hold.

    @invariant()
    def every_node_is_sound(self) -> None:
        """The state of each node keeps its invariants."""
        self.sim.check()

    @invariant()
    def nothing_is_violated(self) -> None:
        """No property is violated so far."""
        found = self.judge.violated
        assert found is None, found

    def teardown(self) -> None:
        """Undo all faults, drain the jobs, and check the whole run."""
        if not hasattr(self, "sim") or self.judge.violated is not None:
            return
        self.active_faults.clear()
        self.sim.drain()
        self.sim.check()
        verdict = self.judge.finish()
        assert verdict.ok, verdict.violations
