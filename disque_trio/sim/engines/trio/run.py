"""The trio engine: the nodes that run on sockets, in virtual time, in a simulated world.

Where the heap engine calls machines, this one runs `disque_trio.node.Node` in its nurseries:
parsers, sessions, flow control, batches, timers and their tasks. Their world is simulated and
shared with the heap engine, so that plans and checkers serve both. It is some ten times slower.

The seed decides how tasks interleave, so a plan has one history here too. It differs from that of
the heap engine: two events of the same microsecond may come in another order. With one task for
everything (`simulate_on_one_task`) both are the same.
"""

from collections.abc import Callable, Coroutine
from typing import Any, Final

import trio

from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.heap.nodes import MachineFactory
from disque_trio.sim.engines.heap.run import Outcome, Run
from disque_trio.sim.engines.heap.world import World
from disque_trio.sim.engines.live_events import LiveEngine
from disque_trio.sim.engines.task_errors import ungrouped
from disque_trio.sim.engines.trio import virtual_time
from disque_trio.sim.engines.trio.world import NodeWorld
from disque_trio.sim.scenarios.plan import Micros, Plan
from disque_trio.statemachine.machine import Machine
from disque_trio.tracing.rows import Row

SECOND: Final = 1_000_000


def simulate(
    plan: Plan,
    observer: Callable[[Row], None] | None = None,
    *,
    machine_factory: MachineFactory = Machine,
    messages: bool = True,
) -> Outcome:
    """Play a plan. Every row goes to the observer; without `messages` but those of messages."""

    async def main() -> Outcome:
        async with trio.open_nursery() as nursery:
            run = NodeRun(plan, observer, machine_factory, nursery, messages=messages)
            for until in run.parts():
                await run.live.live(until)
            nursery.cancel_scope.cancel()
        return run.outcome()

    return _run(plan, main)


class NodeRun(Run):
    """One plan, played with tasks."""

    live: LiveEngine
    checks_states = False

    def __init__(
        self,
        plan: Plan,
        observer: Callable[[Row], None] | None,
        machine_factory: MachineFactory,
        nursery: trio.Nursery,
        *,
        messages: bool,
    ) -> None:
        self._nursery = nursery
        super().__init__(plan, observer, machine_factory, messages=messages)

    def make_engine(self, warm_up: Micros) -> Engine:
        """Time follows Trio's clock."""

        def clock() -> Micros:
            return round(trio.current_time() * SECOND) - warm_up

        self.live = LiveEngine(clock)
        return self.live

    def make_world(self, machine_factory: MachineFactory) -> World:
        """A world of whole nodes."""
        return NodeWorld(self.plan, self.live, self.recorder, machine_factory, self._nursery)


def simulate_on_one_task(
    plan: Plan, observer: Callable[[Row], None] | None = None, *, messages: bool = True
) -> Outcome:
    """The heap engine's run, by one task that sleeps from event to event."""

    async def main() -> Outcome:
        run = Run(plan, observer, Machine, messages=messages)
        engine, began = run.engine, run.engine.now
        for until in run.parts():
            while engine.next_time() <= until:
                await trio.sleep_until((engine.next_time() - began) / SECOND)
                assert round(trio.current_time() * SECOND) + began == engine.next_time()
                engine.step()
            await trio.sleep_until((until - began) / SECOND)
            engine.run(until)
        return run.outcome()

    return _run(plan, main)


def _run(plan: Plan, main: Callable[[], Coroutine[Any, Any, Outcome]]) -> Outcome:
    """Errors of tasks are raised as in the heap engine."""
    with ungrouped():
        return virtual_time.run(f"{plan.seed}/tasks", main)
