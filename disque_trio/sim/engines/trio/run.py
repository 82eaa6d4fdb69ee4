"""The trio engine: each node is a Trio task, in virtual time, in the world of the heap engine.

The nodes, their world and the plans are those of the heap engine; only the driver differs. There
the next batch is an event; here each node has a task that sleeps until there is work, and the seed
decides how tasks interleave. So a plan has one history here too, but a different one: two events of
the same microsecond may happen in another order. This engine is about five times slower.
"""

from collections.abc import Callable
from typing import Final

import trio

from disque_trio.sim.engines.heap.node_hosts import NodeHost, SimEventLoop
from disque_trio.sim.engines.heap.node_world import NodeWorld
from disque_trio.sim.engines.heap.nodes import MachineFactory
from disque_trio.sim.engines.heap.run import Outcome, Run, warm_up_of
from disque_trio.sim.engines.live_events import LiveEngine
from disque_trio.sim.engines.task_errors import ungrouped
from disque_trio.sim.engines.trio import virtual_time
from disque_trio.sim.engines.trio.driving import TaskDriver
from disque_trio.sim.model.recorder import Recorder
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.statemachine.machine import Machine
from disque_trio.tracing.rows import Row

SECOND: Final = 1_000_000


def simulate(
    plan: Plan,
    observer: Callable[[Row], None] | None = None,
    *,
    machine_factory: MachineFactory = Machine,
    messages: bool = True,
    look: Callable[[Run], None] = lambda _: None,
    prepare: Callable[[Run], None] = lambda _: None,
) -> Outcome:
    """Run a plan. The observer receives every row, or every row except those of messages without
    `messages`. `prepare` is called before the start, `look` before each part."""

    async def main() -> Outcome:
        engine = LiveEngine(lambda: round(trio.current_time() * SECOND), -warm_up_of(plan))
        recorder = Recorder(observer, messages=messages)
        async with trio.open_nursery() as nursery:

            def drive(host: NodeHost, event_loop: SimEventLoop) -> TaskDriver:
                return TaskDriver(host, event_loop, engine, nursery)

            run = Run(NodeWorld(plan, engine, recorder, machine_factory, drive))
            prepare(run)
            for until in run.parts():
                look(run)
                await engine.live(until)
            nursery.cancel_scope.cancel()
        return run.outcome()

    with ungrouped():  # errors of tasks are raised as in the heap engine
        return virtual_time.run(f"{plan.seed}/tasks", main)
