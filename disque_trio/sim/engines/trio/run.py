"""The trio engine: each node is a task of Trio, in virtual time, in the world of the heap engine.

The nodes, their world and the plans are those of the heap engine, and only the driver differs:
where there the next batch is an event, here each node has a task that sleeps until there is
something to do, and the seed decides how tasks interleave. So a plan has one history here too, but
another one: two events of the same microsecond may come in another order. It is some five times
slower. With one task for everything (`simulate_on_one_task`) both are the same.
"""

from collections.abc import Callable, Coroutine
from typing import Any, Final

import trio

from disque_trio.sim.engines.heap.fault_actions import FaultActions
from disque_trio.sim.engines.heap.hub import Driver, SimHub
from disque_trio.sim.engines.heap.node_hosts import NodeHost
from disque_trio.sim.engines.heap.node_world import NodeWorld
from disque_trio.sim.engines.heap.nodes import MachineFactory
from disque_trio.sim.engines.heap.run import Outcome, Run, run_on_heap, warm_up_of
from disque_trio.sim.engines.live_events import LiveEngine
from disque_trio.sim.engines.task_errors import ungrouped
from disque_trio.sim.engines.trio import virtual_time
from disque_trio.sim.engines.trio.driving import TaskDriver
from disque_trio.sim.model.recorder import Recorder
from disque_trio.sim.scenarios.plan import Micros, Plan
from disque_trio.statemachine.machine import Machine
from disque_trio.tracing.rows import Row

SECOND: Final = 1_000_000


def run_in_tasks(
    plan: Plan,
    observer: Callable[[Row], None] | None,
    machine_factory: MachineFactory,
    nursery: trio.Nursery,
    *,
    messages: bool,
) -> tuple[Run, LiveEngine]:
    """A run in which each node is a task, and what lets its time pass."""
    warm_up = warm_up_of(plan)

    def clock() -> Micros:
        return round(trio.current_time() * SECOND) - warm_up

    def drive(host: NodeHost, hub: SimHub) -> Driver:
        return TaskDriver(host, hub, engine, nursery)

    engine = LiveEngine(clock)
    world = NodeWorld(plan, engine, Recorder(observer, messages=messages), machine_factory, drive)
    return Run(world, FaultActions(world)), engine


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
            run, engine = run_in_tasks(plan, observer, machine_factory, nursery, messages=messages)
            for until in run.parts():
                await engine.live(until)
            nursery.cancel_scope.cancel()
        return run.outcome()

    return _run(plan, main)


def simulate_on_one_task(
    plan: Plan, observer: Callable[[Row], None] | None = None, *, messages: bool = True
) -> Outcome:
    """The heap engine's run, by one task that sleeps from event to event."""

    async def main() -> Outcome:
        run = run_on_heap(plan, observer, messages=messages)
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
