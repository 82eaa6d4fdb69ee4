"""The virtual engine: the nodes that run on sockets, driven by an event heap (docs/engines.md)."""

from collections.abc import Callable

from disque_trio.sim.engines.heap.nodes import MachineFactory
from disque_trio.sim.engines.heap.run import Outcome, Run
from disque_trio.sim.engines.heap.world import World
from disque_trio.sim.engines.trio.world import WholeNodesWorld
from disque_trio.sim.engines.virtual.hosts import VirtualHost
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.statemachine.machine import Machine
from disque_trio.tracing.rows import Row


class VirtualWorld(WholeNodesWorld):
    """The world of one run."""

    host_kind = VirtualHost


class VirtualRun(Run):
    """One plan, played."""

    checks_states = False

    def make_world(self, machine_factory: MachineFactory) -> World:
        """A world of whole nodes."""
        return VirtualWorld(self.plan, self.engine, self.recorder, machine_factory)


def simulate(
    plan: Plan,
    observer: Callable[[Row], None] | None = None,
    *,
    machine_factory: MachineFactory = Machine,
    messages: bool = True,
) -> Outcome:
    """Play a plan. Every row goes to the observer; without `messages` but those of messages."""
    return VirtualRun(plan, observer, machine_factory, messages=messages).play()
