"""Hypothesis strategies that draw plans of simulated runs, and functions that run and check
them."""

from typing import Any, Final

from disque_trio.sim.checkers.verdict import Verdict, judge
from disque_trio.sim.engines.heap.nodes import MachineFactory
from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.scenarios.plan import Add, ClockPlan, Consumer, Expect, Fault, Micros, Plan
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.messages import MESSAGES
from disque_trio.testing.hypothesis import st

MILLI: Final[Micros] = 1_000
SECOND: Final[Micros] = 1_000_000
ALLOWED: Final = ("D0", "D1", "D2", "D3a", "D4", "D5", "D7", "D9", "D12")
"""Causes of duplicates that faults and careless clients explain; all other causes are bugs."""
WAYS: Final = ("ackjob", "fastack", "nack", "none", "die", "elsewhere", "working")
NODE_TIMEOUT: Final = ("cluster-node-timeout", "1000")


def verdict_of(plan: Plan, *, machine_factory: MachineFactory = Machine) -> Verdict:
    """Run a plan in the heap engine, and return the verdict of the checkers."""
    checkers = judge(plan)
    simulate(plan, checkers.see, machine_factory=machine_factory)
    return checkers.finish()


# Strategies.


def durations(most: Micros = 5 * SECOND) -> st.SearchStrategy[Micros]:
    """Durations from a millisecond up to `most`, in microseconds; round ones are more frequent."""
    round_ones = [step for step in (MILLI, 10 * MILLI, 100 * MILLI, SECOND) if step <= most]
    return st.sampled_from(round_ones) | st.integers(MILLI, most)


def job_options(nodes: int = 3) -> st.SearchStrategy[dict[str, Any]]:
    """Options of ADDJOB, with the names of `steering.Client.addjob`.

    Jobs with RETRY 0 have one replica and expire soon, because there may be no consumer left to
    take them.
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
    """Clocks with small drifts and offsets."""
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
    """Plans with jobs of all options, consumers that use all ways to end a job, and faults."""
    size = draw(nodes or st.integers(2, 5))
    count = draw(st.integers(1, most_jobs))
    mixes = st.tuples(*(st.tuples(st.just(way), st.integers(0, 3)) for way in WAYS[1:]))
    workers = draw(st.lists(st.integers(1, size), min_size=1, max_size=size, unique=True))
    return Plan(
        scenario="drawn",
        seed=draw(st.integers(0, 1 << 32)),
        nodes=size,
        config=(NODE_TIMEOUT,),
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
