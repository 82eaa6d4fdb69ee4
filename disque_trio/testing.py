"""Property-based tests against simulated clusters, for this project and for yours.

`plans` draws whole plans, which `verdict_of` runs and judges. `ClusterStateMachine` is a Hypothesis
state machine that steers a cluster step by step: subclass it, add your own rules, and run its
`TestCase`. See docs/simulation.md, "Your own tests".

Needs Hypothesis (``pip install 'disque-trio[testing]'``).
"""

from collections.abc import Callable
from typing import Any, Final

from disque_trio.sim.checkers.verdict import Judge, Verdict, judge
from disque_trio.sim.engines.heap.nodes import MachineFactory
from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.scenarios.plan import Add, ClockPlan, Consumer, Expect, Fault, Micros, Plan
from disque_trio.sim.steering import Simulation, Trouble
from disque_trio.sim.workload.operators import Pending
from disque_trio.statemachine.base import Status
from disque_trio.statemachine.machine import Machine

try:
    from hypothesis import strategies as st
    from hypothesis.stateful import (
        RuleBasedStateMachine,
        initialize,
        invariant,
        precondition,
        rule,
    )
except ImportError as error:
    raise ImportError(
        "disque_trio.testing needs Hypothesis: pip install 'disque-trio[testing]'"
    ) from error

MILLI: Final[Micros] = 1_000
SECOND: Final[Micros] = 1_000_000
ALLOWED: Final = ("D0", "D1", "D2", "D3a", "D4", "D5", "D7", "D9", "D12")
"""Causes of duplicates that faults and careless clients explain; all others are bugs."""
MESSAGES: Final = (
    "repljob", "gotjob", "queued", "willqueue", "working", "setack", "gotack", "deljob",
    "needjobs", "yourjobs", "waiting", "havejobs", "holders",
)  # fmt: skip
WAYS: Final = ("ackjob", "fastack", "nack", "none", "die", "elsewhere", "working")
_NODE_TIMEOUT: Final = ("cluster-node-timeout", "1000")


def verdict_of(plan: Plan, *, machine_factory: MachineFactory = Machine) -> Verdict:
    """Run a plan in the heap engine, and judge it."""
    checkers = judge(plan)
    simulate(plan, checkers.see, machine_factory=machine_factory)
    return checkers.finish()


# Strategies.


def durations(most: Micros = 5 * SECOND) -> st.SearchStrategy[Micros]:
    """From milliseconds up to `most`; round ones are more frequent."""
    round_ones = [step for step in (MILLI, 10 * MILLI, 100 * MILLI, SECOND) if step <= most]
    return st.sampled_from(round_ones) | st.integers(MILLI, most)


def job_options(nodes: int = 3) -> st.SearchStrategy[dict[str, Any]]:
    """Options of ADDJOB, named as `steering.Client.addjob` takes them.

    Jobs with RETRY 0 have one copy and expire soon: maybe no consumer is left to take them.
    """
    at_least_once = st.fixed_dictionaries(
        {
            "replicate": st.integers(1, nodes),
            "retry": st.integers(1, 5),
            "ttl": st.sampled_from((30, 3600)),
        },
        optional={"delay": st.integers(1, 5), "is_async": st.just(value=True)},
    )
    at_most_once = st.fixed_dictionaries(
        {"replicate": st.just(1), "retry": st.just(0), "ttl": st.just(60)}
    )
    return at_least_once | at_least_once | at_most_once


def clock_plans() -> st.SearchStrategy[ClockPlan]:
    """Clocks that drift and differ a little."""
    return st.builds(
        ClockPlan,
        drift_ppm=st.integers(-500, 500),
        wall_offset_ms=st.integers(-60_000, 60_000),
    )


@st.composite
def faults(draw: st.DrawFn, nodes: int, chaos: Micros) -> Fault:
    """One fault of links, processes or clocks, within the chaos."""
    kind = draw(
        st.sampled_from(("partition", "cut", "clog", "drop", "crash", "pause", "clock-step"))
    )
    numbers = draw(st.permutations(range(1, nodes + 1)))
    split = draw(st.integers(1, nodes - 1))
    change: dict[str, Any] = {"nodes": (numbers[0],)}
    if kind == "partition":
        change = {"groups": (tuple(numbers[:split]), tuple(numbers[split:]))}
    elif kind in {"cut", "clog", "drop"}:
        change = {"links": ((numbers[0], numbers[1]),)}
    if kind == "drop":
        change["mode"] = draw(st.sampled_from(MESSAGES))
    elif kind == "clock-step":
        change["amount"] = draw(st.integers(-3_600_000, 3_600_000))
    at = draw(st.integers(0, chaos * 3 // 4))
    return Fault(kind=kind, at=at, hold=draw(st.integers(SECOND // 10, chaos // 2)), **change)


@st.composite
def plans(
    draw: st.DrawFn,
    *,
    nodes: st.SearchStrategy[int] | None = None,
    chaos: Micros = 15 * SECOND,
    most_jobs: int = 20,
    most_faults: int = 4,
    duplicates: tuple[str, ...] = ALLOWED,
) -> Plan:
    """Plans with jobs of all options, workers of all mixes, and faults."""
    size = draw(nodes or st.integers(2, 5))
    count = draw(st.integers(1, most_jobs))
    mixes = st.tuples(*(st.tuples(st.just(way), st.integers(0, 3)) for way in WAYS[1:]))
    workers = draw(st.lists(st.integers(1, size), min_size=1, max_size=size, unique=True))
    return Plan(
        scenario="drawn",
        seed=draw(st.integers(0, 1 << 32)),
        nodes=size,
        config=(_NODE_TIMEOUT,),
        clocks=tuple(draw(st.lists(clock_plans(), max_size=size))),
        adds=tuple(draw(_adds(size, chaos, number)) for number in range(count)),
        consumers=tuple(
            Consumer(
                name=f"c{node}",
                node=node,
                queues=("q",),
                mix=(("ackjob", 2.0), *((way, float(w)) for way, w in draw(mixes))),
            )
            for node in workers
        ),
        faults=tuple(draw(st.lists(faults(size, chaos), max_size=most_faults))),
        chaos=chaos,
        expect=Expect(duplicates=duplicates),
    )


@st.composite
def _adds(draw: st.DrawFn, nodes: int, chaos: Micros, number: int) -> Add:
    options = draw(job_options(nodes))
    node = draw(st.integers(1, nodes))
    return Add(
        at=draw(st.integers(0, chaos * 3 // 4)),
        node=node,
        producer=f"p{node}",
        queue="q",
        body=f"job {number}",
        timeout_ms=draw(st.sampled_from((50, 1000))),
        replicate=options["replicate"],
        retry_s=options["retry"],
        ttl_s=options["ttl"],
        delay_s=options.get("delay"),
        is_async=bool(options.get("is_async")),
    )


# The state machine.

_ANY: Final = st.integers(0, 99)
"""An index into any list, taken modulo its length."""


class ClusterStateMachine(RuleBasedStateMachine):
    """A cluster with clients and faults that Hypothesis chooses.

    After each step every node's state must keep its invariants, and no property may be violated. At
    the end everything is healed, workers ack all jobs, and the run is judged as a whole. Change the
    attributes or override `make_simulation` to test another cluster; add rules to send other
    requests. `sim` is the cluster, `judge` holds the checkers.
    """

    nodes: tuple[int, int] = (2, 5)
    """Least and most."""
    config: tuple[tuple[str, str], ...] = (_NODE_TIMEOUT,)
    duplicates: tuple[str, ...] = ALLOWED
    """Causes of duplicates that are allowed."""
    machine_factory: Callable[..., Machine] = Machine
    most_troubles = 4
    """At once."""

    def __init__(self) -> None:
        super().__init__()
        self.sim: Simulation
        self.judge: Judge
        self.added: list[Pending] = []
        self.asked: list[Pending] = []
        self.troubles: list[Trouble] = []

    def make_simulation(self, plan: Plan) -> Simulation:
        """A cluster whose rows go to the checkers."""
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
        """Some node."""
        return f"n{1 + number % self.sim.plan.nodes}"

    def jobs(self) -> list[bytes]:
        """The ids of all jobs that producers know of."""
        replies = [pending.reply for pending in self.added]
        return [reply.text for reply in replies if isinstance(reply, Status)]

    def taken(self) -> list[bytes]:
        """The ids of all jobs that consumers were given."""
        replies = [pending.reply for pending in self.asked]
        given = [job for reply in replies if isinstance(reply, list) for job in reply]
        return [job[1] for job in given if isinstance(job, list) and isinstance(job[1], bytes)]

    def keep(self, trouble: Trouble) -> None:
        """Remember a fault, so that a later step may undo it. If too many, undo the oldest."""
        self.troubles.append(trouble)
        if len(self.troubles) > self.most_troubles:
            self.troubles.pop(0).undo()

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
        """A new client asks for jobs, and maybe waits."""
        client = self.sim.client(self.name(node))
        self.asked.append(client.getjob("q", "r", count=count, timeout_ms=wait))

    def _tell(self, node: int, number: int, command: str) -> None:
        """ACKJOB goes to any added job, other commands to jobs that were delivered."""
        known = self.jobs() if command == "ACKJOB" else self.taken()
        if known:
            job = known[number % len(known)]
            self.sim.request(self.name(node), command, job)

    @rule(node=_ANY, job=_ANY)
    def ack_job(self, node: int, job: int) -> None:
        """A client acknowledges a job at some node."""
        self._tell(node, job, "ACKJOB")

    @rule(node=_ANY, job=_ANY)
    def fast_ack(self, node: int, job: int) -> None:
        """A client acknowledges a job with FASTACK."""
        self._tell(node, job, "FASTACK")

    @rule(node=_ANY, job=_ANY)
    def nack(self, node: int, job: int) -> None:
        """A client gives a job back."""
        self._tell(node, job, "NACK")

    @rule(node=_ANY, job=_ANY)
    def working(self, node: int, job: int) -> None:
        """A client asks for more time."""
        self._tell(node, job, "WORKING")

    # Links.

    @rule(mask=st.integers(1, 30))
    def partition(self, mask: int) -> None:
        """Links between two groups are cut."""
        names = [f"n{number}" for number in range(1, self.sim.plan.nodes + 1)]
        ours = [name for bit, name in enumerate(names) if mask >> bit & 1]
        theirs = [name for name in names if name not in ours]
        self.keep(self.sim.partition(ours, theirs))

    @rule(source=_ANY, other=_ANY)
    def cut(self, source: int, other: int) -> None:
        """A link is cut in one direction."""
        if self.name(source) != self.name(other):
            self.keep(self.sim.cut(self.name(source), self.name(other)))

    @rule(source=_ANY, other=_ANY, only=st.sampled_from(MESSAGES), count=st.integers(1, 5))
    def drop(self, source: int, other: int, only: str, count: int) -> None:
        """Some messages of one kind are lost."""
        if self.name(source) != self.name(other):
            self.keep(self.sim.drop(self.name(source), self.name(other), only=only, count=count))

    # Processes and clocks.

    @rule(node=_ANY)
    def crash(self, node: int) -> None:
        """A process is killed; healed, it comes back without its jobs."""
        self.keep(self.sim.crash(self.name(node)))

    @rule(node=_ANY)
    def restart(self, node: int) -> None:
        """A process is killed and comes back at once."""
        self.sim.restart(self.name(node))

    @rule(node=_ANY)
    def pause_node(self, node: int) -> None:
        """A process is stopped."""
        self.keep(self.sim.pause(self.name(node)))

    @rule(node=_ANY, ppm=st.integers(-500, 500))
    def drift(self, node: int, ppm: int) -> None:
        """A node's clocks run fast or slow."""
        self.keep(self.sim.drift(self.name(node), ppm))

    @rule(node=_ANY, ms=st.sampled_from((-3_600_000, -1000, 1000, 3_600_000)))
    def step_clock(self, node: int, ms: int) -> None:
        """A wall clock jumps."""
        self.sim.step_clock(self.name(node), ms)

    @precondition(lambda self: bool(self.troubles))
    @rule(number=_ANY)
    def undo(self, number: int) -> None:
        """One fault ends."""
        self.troubles.pop(number % len(self.troubles)).undo()

    @rule()
    def heal(self) -> None:
        """All faults end."""
        self.troubles.clear()
        self.sim.heal()

    # Time.

    @rule(duration=durations(10 * SECOND))
    def run(self, duration: Micros) -> None:
        """Time passes."""
        self.sim.run(duration)

    # What must hold.

    @invariant()
    def every_node_is_sound(self) -> None:
        """Each node's state keeps its invariants."""
        self.sim.check()

    @invariant()
    def nothing_is_violated(self) -> None:
        """No property is violated so far."""
        found = self.judge.violated
        assert found is None, found

    def teardown(self) -> None:
        """Heal, drain, and judge the whole run."""
        if not hasattr(self, "sim") or self.judge.violated is not None:
            return
        self.troubles.clear()
        self.sim.drain()
        self.sim.check()
        verdict = self.judge.finish()
        assert verdict.ok, verdict.violations
