"""The sandbox: time, operations, their limits, and its end.

The same plan, seed and operations at the same times give the same rows and the same digest, however
the time between them is divided.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from disque_trio.sim.engines.heap.nodes import MachineError, MachineFactory
from disque_trio.sim.engines.heap.run import QUIET
from disque_trio.sim.sandbox.args import Args, OperationError
from disque_trio.sim.sandbox.context import Context
from disque_trio.sim.sandbox.operations import OPERATIONS
from disque_trio.sim.sandbox.plans import by_hand, plan_of
from disque_trio.sim.scenarios.plan import Micros, Plan
from disque_trio.sim.steering import Simulation
from disque_trio.statemachine.machine import Machine
from disque_trio.terminal.counting import counted
from disque_trio.tracing.rows import Row

EVENTS: Final = 150_000
"""The most rows that are kept. With three idle nodes, this is an hour and a half."""
MOST_OPERATIONS: Final = 2_000
GRID: Final[Micros] = 100_000
"""The limit is checked at multiples of this time, independent of the caller's steps."""
STEP_MOST: Final[Micros] = 10_000_000
QUIET_MOST: Final[Micros] = 120_000_000
FINISH: Final = "finish"


@attrs.frozen
class Done:
    """An operation that was carried out."""

    at: Micros
    name: str
    args: dict[str, Any]
    words: str


class Sandbox:
    """A cluster with faults on request. Time passes only in `run_to`, `step` and `play`."""

    def __init__(
        self,
        plan: Plan | None = None,
        *,
        nodes: int = 3,
        seed: int = 0,
        machine_factory: MachineFactory = Machine,
    ) -> None:
        """Create a cluster for a plan, with its agents and faults, or for no plan, without events
        of its own."""
        self.is_by_hand = plan is None
        self.rows: list[Row] = []
        self.counts: Counter[str] = Counter()
        """By kind: the number of rows."""
        self.deliveries: Counter[str] = Counter()
        """By job: the number of deliveries."""
        self.done: list[Done] = []
        self.ended = ""
        """Why time has stopped for good; empty if it has not."""
        self.is_finished = False
        """The sandbox was played to its end: the verdict is complete."""
        self._chaos: Micros | None = None
        """When all faults ended for the final part."""
        self._stirred: Micros = 0
        """The time of the last event about a job."""
        sim = Simulation(
            plan or by_hand(nodes, seed), observer=self._see, machine_factory=machine_factory
        )
        self.context = Context(sim)

    def _see(self, row: Row) -> None:
        self.rows.append(row)
        self.counts[row.kind] += 1
        if row.kind == "get.deliver":
            self.deliveries[row.job] += 1
        if row.job:
            self._stirred = row.time

    # What it is.

    @property
    def sim(self) -> Simulation:
        """The simulation of the cluster."""
        return self.context.sim

    @property
    def now(self) -> Micros:
        """True time since the cluster was formed."""
        return self.sim.now

    @property
    def digest(self) -> str:
        """The digest of all rows so far."""
        return self.sim.digest

    def plan(self) -> Plan:
        """Return the plan with the operations in it."""
        return plan_of(self.context, self.now if self._chaos is None else self._chaos)

    # Operations.

    def do(self, name: str, /, **args: Any) -> str:
        """Carry out an operation now. Return a description of its effect. Raise `OperationError` if
        it has none."""
        self._check_open()
        if name not in OPERATIONS:
            raise OperationError(
                f"there is no operation '{name}': {', '.join([*OPERATIONS, FINISH])}"
            )
        if len(self.done) >= MOST_OPERATIONS:
            raise OperationError(f"{MOST_OPERATIONS} operations are the most: begin anew")
        checked = Args(args, self.context.nodes)
        words = OPERATIONS[name](self.context, checked)
        self.done.append(Done(self.now, name, checked.used, words))
        return words

    @property
    def is_finishing(self) -> bool:
        """Has the final part begun?"""
        return bool(self.done) and self.done[-1].name == FINISH

    def _check_open(self) -> None:
        if self.ended or self.is_finishing:
            raise OperationError(f"{self.ended or 'it is being finished'}: begin anew")

    # Time.

    def run_to(self, time: Micros) -> None:
        """Advance the time, unless the sandbox has ended."""
        while self.now < time and not self.ended:
            self._run(min(time, (self.now // GRID + 1) * GRID))

    def _run(self, time: Micros) -> None:
        try:
            self.sim.engine.run(time)
        except MachineError as error:
            self.ended = f"a node has failed, which it never must: {error}"
        if len(self.rows) >= EVENTS and self.now % GRID == 0:
            self.ended = f"it has {counted(len(self.rows), 'event')}, and keeps no more"

    def step(self) -> None:
        """Advance the time to the next visible event."""
        seen, end = len(self.rows), self.now + STEP_MOST
        while len(self.rows) == seen and self.now < end and not self.ended:
            self.run_to(min(end, max(self.sim.engine.next_time(), self.now + 1)))

    def play(self, moments: Iterable[Micros]) -> None:
        """Advance the time to one moment after another, from `quieting` or `finishing`."""
        for moment in moments:
            self.run_to(moment)

    def quieting(self) -> Iterator[Micros]:
        """Yield moments until no event about a job has happened for three seconds, or two minutes
        have passed."""
        self._check_open()
        end = self.now + QUIET_MOST
        self._stirred = max(self._stirred, self.now)
        while self.now < min(end, self._stirred + QUIET) and not self.ended:
            yield min(end, self._stirred + QUIET)

    def finishing(self) -> Iterator[Micros]:
        """End all faults, and let workers at every node acknowledge all jobs until none is left.
        The faults and clients of the plan run to their end before."""
        self._check_open()
        self.done.append(Done(self.now, FINISH, {}, "heal everything, and end all jobs"))
        if self.now < self.sim.plan.chaos:
            yield self.sim.plan.chaos
        self.context.end(*self.context.going_on())
        self._chaos = self.now
        for moment in self.sim.ending(self.plan()):
            yield moment
            if self.ended:
                return
        self.is_finished = True
        self.ended = "it is finished"

    # Repetition.

    def repeat(self, operations: Iterable[Mapping[str, Any]]) -> None:
        """Carry out operations, each with its time `at` and its `name`. Raise `OperationError`."""
        for each in operations:
            args = dict(each)
            at, name = args.pop("at"), args.pop("name")
            self.run_to(at)
            if name == FINISH:
                self.play(self.finishing())
            else:
                self.do(name, **args)
