"""The tcp engine: real server processes on the loopback network, in real time.

Each node is a process of `disque-trio server` that writes its own trace. Its links run through our
proxies (`tcp.places`), where the network model of the other engines delays, keeps and cuts them.
Crashes are kill -9, pauses SIGSTOP. The agents are those of the other engines, over sockets. At the
end all traces are merged into one history.

Real time cannot be controlled, so a plan has another history each time. Faults upon an event come a
moment after it. Clocks and the speed of processes cannot be changed, and streams cannot lose single
frames as hostile links do: plans with such faults are refused.
"""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import attrs
import trio

from disque_trio.sim.engines.heap.fault_actions import FaultActions
from disque_trio.sim.engines.heap.nodes import MachineError
from disque_trio.sim.engines.heap.run import (
    FormingError,
    Outcome,
    Run,
    UnplayableError,
    has_journals,
)
from disque_trio.sim.engines.live_events import LiveEngine
from disque_trio.sim.engines.task_errors import ungrouped
from disque_trio.sim.engines.tcp import places, wall_clock
from disque_trio.sim.engines.tcp.control import Poller
from disque_trio.sim.engines.tcp.merge import Sources, merge
from disque_trio.sim.engines.tcp.pairing import NodeTrace
from disque_trio.sim.engines.tcp.world import ProcessWorld
from disque_trio.sim.model.recorder import Recorder
from disque_trio.sim.scenarios.plan import ClockPlan, Micros, Plan
from disque_trio.statemachine.wording import short_name
from disque_trio.tracing.rows import Row

FORMING_TIME: Final[Micros] = 60_000_000
"""How long processes may take to start and to link, on a busy machine."""
LOOK: Final[Micros] = 200_000
_MOST_NODES: Final = 250
_REFUSED: Final = {
    "clock-step": "clocks",
    "clock-rate": "clocks",
    "wall-freeze": "clocks",
    "slow": "the speed of a process",
    "memory": "what a process uses",
    **dict.fromkeys(("disk-full", "disk-error", "disk-stall", "disk-flip"), "disks"),
}


def simulate(
    plan: Plan, observer: Callable[[Row], None] | None = None, *, messages: bool = True
) -> Outcome:
    """Play a plan in real time; then every row goes to the observer, in order."""
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
        if fault.kind in _REFUSED:
            raise _unplayable(f"{fault.kind}: it cannot change {_REFUSED[fault.kind]}")
        if fault.mode == "power":
            raise _unplayable(f"{fault.kind} in mode power: it can only kill processes")
    if has_journals(plan):
        raise _unplayable("journals")
    if plan.link.model != "stream":
        raise _unplayable("hostile links: TCP loses no single message")
    if any(each != ClockPlan() for each in plan.clocks):
        raise _unplayable("clocks that drift or differ")
    if plan.nodes > _MOST_NODES:
        raise _unplayable(f"more than {_MOST_NODES} nodes")


def _unplayable(what: str) -> UnplayableError:
    return UnplayableError(f"the tcp engine cannot play {what}; take the heap or the trio engine")


async def _play(plan: Plan, directory: Path) -> list[Row]:
    async with trio.open_nursery() as nursery:
        run = ProcessRun(attrs.evolve(plan, vector_clocks=False), directory, nursery)
        try:
            nursery.start_soon(run.poller.run)
            for until in run.parts():
                await run.live.live(until)
        finally:
            run.stop()
        nursery.cancel_scope.cancel()
    return run.history()


class ProcessRun(Run):
    """One plan, played with processes."""

    def __init__(self, plan: Plan, directory: Path, nursery: trio.Nursery) -> None:
        self._rows: list[Row] = []
        self._clock = wall_clock.WallClock()
        # Time begins long before the nodes are ready: processes take their time.
        self._clock.set(-FORMING_TIME)
        self.live = LiveEngine(self._clock.now)
        found = places.find(plan.nodes)
        self._process_world = world = ProcessWorld(
            plan,
            self.live,
            Recorder(self._rows.append),
            directory=directory,
            places=found,
            nursery=nursery,
        )
        super().__init__(world, FaultActions(world))
        self.poller = Poller(world, found, self.live, self._see)

    def warm_up(self) -> Iterator[Micros]:
        """Start the processes; once all are linked, it is time 0."""
        self.world.start_all()
        while not self.world.is_formed(list(self.world.hosts)):
            if self.live.now >= -LOOK:
                raise FormingError(f"no cluster within {FORMING_TIME // 1_000_000} s")
            yield self.live.now + LOOK
        self._process_world.proxies.begin(self.live.sync())
        self._clock.set(0)
        self.live.sync()
        self.world.network.use(self.plan.link)

    def _see(self, row: Row) -> None:
        """A node has written a row: pass it to faults that wait for its kind."""
        if row.kind in self.faults.kinds:
            named = self._process_world.with_our_names(row, self._clock.epoch)
            self.faults.see(attrs.astuple(named, recurse=False))

    def stop(self) -> None:
        """End all processes."""
        for host in self._process_world.processes:
            host.process.kill()
            host.tail.read()
            host.tail.close()

    def history(self) -> list[Row]:
        """The merged history. Raises `MachineError` if a node has raised."""
        world = self._process_world
        for host in world.processes:
            if "Traceback" in host.process.log:
                raise MachineError(f"{host.name}: {host.process.log[-2000:]}")
        traces = [
            NodeTrace(
                host.name,
                tuple(short_name(id) for id in host.ids),
                host.tail.rows,
                host.tail.begins,
            )
            for host in world.processes
        ]
        return merge(
            Sources(
                epoch=self._clock.epoch,
                traces=traces,
                ours=self._rows,
                flights=world.proxies.flights,
                agents=world.sockets.agents,
                operations=world.sockets.operations,
            )
        )
