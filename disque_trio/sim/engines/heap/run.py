"""Runs: a plan from start to end, or a world controlled by hand.

A run has four parts. In the warm-up, before time 0, the nodes start and link without faults. Then
agents and faults start as planned. At `Plan.chaos` everything heals, or everything within a core:
links become reliable, and consumers ack every job. The following drain lasts as long as the
liveness properties may take (`bounds`), or until nothing is left to do.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs

from disque_trio.sim.bounds import drain_bound
from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.heap.fault_actions import FaultActions
from disque_trio.sim.engines.heap.inspection import Inspection
from disque_trio.sim.engines.heap.meetings import Meetings
from disque_trio.sim.engines.heap.node_world import NodeWorld, on_the_heap
from disque_trio.sim.engines.heap.nodes import MachineFactory
from disque_trio.sim.engines.heap.world import World
from disque_trio.sim.model.faults import Faults, draw_core
from disque_trio.sim.model.recorder import Recorder
from disque_trio.sim.scenarios.fault_check import impossible
from disque_trio.sim.scenarios.plan import Fault, Limit, Micros, Plan
from disque_trio.sim.workload.administrators import administrators
from disque_trio.sim.workload.agents import agents
from disque_trio.sim.workload.observers import observers
from disque_trio.statemachine.machine import Machine
from disque_trio.tracing.rows import Row

WARM_UP: Final[Micros] = 2_000_000
MEETING_TIME: Final[Micros] = 20_000_000
"""The warm-up if nodes meet: gossip needs a few rounds."""
LOOK: Final[Micros] = 250_000
"""The interval at which the drain checks whether it may end."""
REUNITE: Final[Micros] = 5_000_000
"""After the heal, the interval at which nodes that do not know each other meet again."""
TELL: Final[Micros] = 1_000_000
"""The time for which rows are kept back from the observer."""
QUIET: Final[Micros] = 3_000_000
"""The default of `Run.quiet`: longer than any packet is in transit."""


class UnplayableError(Exception):
    """The engine, or every engine, cannot run the plan. The text says why, and which engine can."""


@attrs.frozen
class Outcome:
    """The result of a run."""

    digest: str
    """SHA-256 of all rows: equal runs have equal digests."""
    steps: int
    """The number of processed events."""
    end: Micros
    """The end of the run, in true time."""


class Run:
    """One plan, run in a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.plan = plan = world.plan
        for _, why in impossible(plan):
            raise UnplayableError(f"no engine can play a fault of this plan: {why}")
        self.engine = world.engine
        self.recorder = world.recorder
        self.fault_actions = FaultActions(world)
        self.faults = Faults(plan.faults, self.fault_actions)
        self.inspection = Inspection(world)
        self.meetings = Meetings(world)
        self.core: Sequence[int] | None = None
        """The healed nodes; None for all."""
        self.quiet: Micros = QUIET
        """How long all must be idle before the drain ends."""

    # The course of the run.

    def play(self) -> Outcome:
        """Run the plan to its end. The observer receives rows once per simulated second."""
        engine, recorder = self.engine, self.recorder
        recorder.keep_back()
        try:
            flushed = engine.now
            for until in self.parts():
                while engine.now < until:
                    engine.run(min(flushed + TELL, until))
                    if engine.now >= flushed + TELL:
                        recorder.flush()
                        flushed = engine.now
        finally:
            recorder.flush()
        return self.outcome()

    def outcome(self) -> Outcome:
        """Return the result."""
        return Outcome(self.recorder.digest(), self.engine.steps, self.engine.now)

    def parts(self) -> Iterator[Micros]:
        """Yield the end of each part of the run. The caller advances the time to it before it
        continues."""
        yield from self.warm_up()
        self.begin()
        yield self.plan.chaos
        yield from self.ending()

    def ending(self) -> Iterator[Micros]:
        """The heal and what follows it."""
        self.heal()
        yield from self.drain()
        self.inspection.look_at_all()
        self.meetings.finish()
        self._note("end")

    def warm_up(self) -> Iterator[Micros]:
        """Start the nodes, and wait until they are a cluster."""
        yield from self.world.form()
        self.world.network.use(self.plan.link)

    def begin(self) -> None:
        """Start agents and faults."""
        for agent in (
            *agents(self.plan),
            *observers(self.plan),
            *administrators(self.plan),
        ):
            self.world.add_agent(agent)
        for kind in self.faults.kinds:
            self.recorder.watch(kind, self.faults.see)
        for fault in self.faults.timed:
            self.engine.at(fault.at, self._apply_fault, fault)
        for limit in self.plan.limits:
            self.engine.at(limit.at, self._set_limit, limit)
        self.inspection.begin()
        self.meetings.begin()

    def _apply_fault(self, fault: Fault) -> None:
        self.faults.apply(fault)
        self.inspection.check_all()

    def _set_limit(self, limit: Limit) -> None:
        """Send QUEUE LIMIT. The row is written before the reply."""
        host = self.world.hosts[limit.node]
        if not host.is_up or host.is_paused:
            return
        words: list[str | int] = []
        for word, number, default in (
            ("CONCURRENCY", limit.concurrency, 0),
            ("RATE", limit.rate, 0),
            ("PER", limit.per_s, 1),
            ("BURST", limit.burst, 0),
            ("GROUP-CONCURRENCY", limit.group_concurrency, 0),
            ("GROUP-RATE", limit.group_rate, 0),
            ("GROUP-PER", limit.group_per_s, 1),
            ("GROUP-BURST", limit.group_burst, 0),
        ):
            if number != default:
                words += [word, number]
        words += ["LOOSE"] if limit.is_loose else []
        words = words or ["NONE"]
        host.note("limit", detail=" ".join(map(str, (limit.queue, *words))))
        self.world.command(host, "QUEUE", "LIMIT", limit.queue, *words)

    def heal(self) -> None:
        """End all faults, or all within the core."""
        self._note("chaos.end")
        numbers = self.fault_actions.numbers()
        if self.plan.heal == "core":
            self.core = draw_core(numbers, self.plan.seed)
        self.world.network.become_reliable()
        self.faults.heal(self.core)
        self._reunite(self.core or numbers)
        for actor in self.world.clients.actors:
            actor.agent.settle()
        self._note("heal.end", ",".join(f"n{number}" for number in self.core or numbers))

    def _reunite(self, core: Sequence[int]) -> None:
        """Make nodes that do not know each other meet again, as an operator would."""
        for number in core:
            self.fault_actions.meet(number)

    def drain(self) -> Iterator[Micros]:
        """Wait until nothing is left to do, or until the bound."""
        end = self.engine.now + drain_bound(self.plan) + self.quiet - QUIET
        core = self.core or self.fault_actions.numbers()
        quiet_since = None
        is_whole = False
        reunited_at = self.engine.now
        while self.engine.now < end:
            yield min(self.engine.now + LOOK, end)
            if not is_whole and self.world.is_formed(core):
                is_whole = True
                self._note("rejoin")
            elif not is_whole and self.engine.now - reunited_at >= REUNITE:
                reunited_at = self.engine.now
                self._reunite(core)
            if not (is_whole and self._is_quiet()):
                quiet_since = None
            elif quiet_since is None:
                quiet_since = self.engine.now
            elif self.engine.now - quiet_since >= self.quiet:
                return

    def _is_quiet(self) -> bool:
        hosts = [self.world.hosts[number] for number in self.core or self.fault_actions.numbers()]
        return all(actor.agent.is_idle() for actor in self.world.clients.actors) and not any(
            host.has_jobs() for host in hosts
        )

    def _note(self, kind: str, detail: str = "") -> None:
        self.recorder.add((self.engine.now, kind, "", "", "", "", "", "", detail, 0, 0, 0, ()))


def has_journals(plan: Plan) -> bool:
    """Do the nodes of the plan keep journals?"""
    return dict(plan.config).get("appendonly") == "yes"


def warm_up_of(plan: Plan) -> Micros:
    """Return how long before time 0 the nodes start."""
    return MEETING_TIME if plan.forming == "meet" else WARM_UP


def run_on_heap(
    plan: Plan,
    observer: Callable[[Row], None] | None = None,
    machine_factory: MachineFactory = Machine,
    *,
    messages: bool = True,
    engine: Engine | None = None,
) -> Run:
    """Return a run in which the event heap drives the nodes. `engine` replaces the heap."""
    engine = engine or Engine(-warm_up_of(plan))
    recorder = Recorder(observer, messages=messages)
    world = NodeWorld(plan, engine, recorder, machine_factory, on_the_heap(engine))
    return Run(world)


def simulate(
    plan: Plan,
    observer: Callable[[Row], None] | None = None,
    *,
    machine_factory: MachineFactory = Machine,
    messages: bool = True,
    prepare: Callable[[Run], None] = lambda _: None,
) -> Outcome:
    """Run a plan. The observer receives every row; `prepare` is called before the start.

    Without `messages` the observer receives no rows of messages; the digest includes them
    nevertheless.
    """
    run = run_on_heap(plan, observer, machine_factory, messages=messages)
    prepare(run)
    return run.play()
