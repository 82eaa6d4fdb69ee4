"""The tcp engine: real server processes on the loopback network, in real time.

Each node is a process of `disque-trio server` that writes its own trace. Its links run through
proxies (`tcp.addresses`), where the network model of the other engines delays, blocks and cuts
them. A crash is SIGKILL, a pause SIGSTOP. The agents are those of the other engines, on sockets. At
the end all traces are merged into one history.

Real time cannot be controlled, so a plan has another history each time. A fault upon an event
starts a moment after the event. The engine cannot change clocks or the speed of processes, and
streams cannot lose single frames as hostile links do: plans with such faults are refused.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import attrs
import trio

from disque_trio.sim.engines.heap.run import Outcome, Run, UnplayableError, has_journals
from disque_trio.sim.engines.live_events import LiveEngine
from disque_trio.sim.engines.task_errors import ungrouped
from disque_trio.sim.engines.tcp import addresses
from disque_trio.sim.engines.tcp.control import Poller
from disque_trio.sim.engines.tcp.merge import merge
from disque_trio.sim.engines.tcp.world import FORMING_TIME, ProcessWorld
from disque_trio.sim.model.recorder import Recorder
from disque_trio.sim.scenarios import fault_kinds
from disque_trio.sim.scenarios.plan import ClockPlan, Micros, Plan
from disque_trio.tracing.rows import Row

_MOST_NODES: Final = 250


def simulate(
    plan: Plan, observer: Callable[[Row], None] | None = None, *, messages: bool = True
) -> Outcome:
    """Run a plan in real time; afterwards the observer receives every row, in order."""
    check(plan)
    with tempfile.TemporaryDirectory(prefix="disque-trio-") as directory, ungrouped():
        rows = trio.run(_play, plan, Path(directory))
    recorder = Recorder(observer, messages=messages)
    for row in rows:
        recorder.add(attrs.astuple(row, recurse=False))
    return Outcome(recorder.digest(), len(rows), rows[-1].time)


def check(plan: Plan) -> None:
    """Raise `UnplayableError` if the plan has faults that processes cannot have."""
    for fault in plan.faults:
        if beyond := fault_kinds.BY_NAME[fault.kind].beyond_processes:
            raise _unplayable(f"{fault.kind}: it cannot change {beyond}")
        if fault.mode == "power":
            raise _unplayable(f"{fault.kind} in mode power: it can only kill processes")
    if has_journals(plan):
        raise _unplayable("journals")
    if plan.versions:
        raise _unplayable("nodes of earlier versions")
    if plan.link.model != "stream":
        raise _unplayable("hostile links: TCP loses no single message")
    if any(each != ClockPlan() for each in plan.clocks):
        raise _unplayable("clocks that drift or differ")
    if plan.nodes > _MOST_NODES:
        raise _unplayable(f"more than {_MOST_NODES} nodes")


def _unplayable(what: str) -> UnplayableError:
    return UnplayableError(f"the tcp engine cannot play {what}; take the heap or the trio engine")


async def _play(plan: Plan, directory: Path) -> list[Row]:
    rows: list[Row] = []
    async with trio.open_nursery() as nursery:
        # Time starts long before the nodes are ready: processes take time to start.
        live = LiveEngine(_wall, -FORMING_TIME)
        world = ProcessWorld(
            attrs.evolve(plan, vector_clocks=False),
            live,
            Recorder(rows.append),
            directory=directory,
            addresses=addresses.find(plan.nodes),
            nursery=nursery,
        )
        run = Run(world)

        def see(row: Row) -> None:
            """Pass a row of a node to the faults that wait for its kind."""
            if row.kind in run.faults.kinds:
                run.faults.see(attrs.astuple(world.with_our_names(row), recurse=False))

        try:
            nursery.start_soon(Poller(world, see).run)
            for until in run.parts():
                await live.live(until)
        finally:
            world.stop()
        nursery.cancel_scope.cancel()
    return merge(world.sources(rows))


def _wall() -> Micros:
    """Return the time of the wall clock, which the nodes' traces use."""
    return time.time_ns() // 1000
