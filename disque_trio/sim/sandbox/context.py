"""The objects of operations: the simulation, and the operations so far."""

import attrs

from disque_trio.sim.fault_controls import ActiveFault, number_of
from disque_trio.sim.sandbox.manual_client import ManualClient
from disque_trio.sim.scenarios.plan import Add, Fault, Micros
from disque_trio.sim.steering import Simulation


@attrs.define(eq=False)
class Begun:
    """A fault that an operation has started."""

    number: int
    words: str
    fault: Fault
    """The fault as in a plan, except for its duration."""
    active: ActiveFault | None
    """None if the fault has no duration."""
    until: Micros | None = None


@attrs.define(eq=False)
class Context:
    """One simulation and its history."""

    sim: Simulation
    client: ManualClient = attrs.field(init=False)
    begun: list[Begun] = attrs.Factory(list)
    added: list[Add] = attrs.Factory(list)

    def __attrs_post_init__(self) -> None:
        self.client = ManualClient(self.sim)

    @property
    def nodes(self) -> list[str]:
        """The names of all nodes, running or not."""
        return [host.name for host in self.sim.world.hosts.values()]

    def is_up(self, node: str) -> bool:
        """Does the node run, paused or not?"""
        return self.sim.world.hosts[number_of(node)].is_up

    def is_paused(self, node: str) -> bool:
        """Is the node's process stopped?"""
        return self.sim.world.hosts[number_of(node)].is_paused

    def begin(self, words: str, fault: Fault) -> str:
        """Start a fault. Return its description."""
        return self.note(words, fault, self.sim.inject(fault))

    def note(self, words: str, fault: Fault, active: ActiveFault | None = None) -> str:
        """Record a fault that has started. Return its description."""
        now = self.sim.now
        begun = Begun(len(self.begun) + 1, words, attrs.evolve(fault, at=now), active)
        begun.until = now if active is None else None
        self.begun.append(begun)
        return words

    def going_on(self) -> list[Begun]:
        """Return the faults that have not ended."""
        return [each for each in self.begun if each.until is None]

    def of(self, kind: str, node: str) -> list[Begun]:
        """Return the active faults of this kind at the node."""
        number = number_of(node)
        return [
            each
            for each in self.going_on()
            if each.fault.kind == kind and number in each.fault.nodes
        ]

    def end(self, *faults: Begun) -> None:
        """Undo faults, the last one first: a node can receive the order to stay only while it
        runs."""
        for begun in reversed(faults):
            assert begun.active is not None
            begun.until = self.sim.now
            begun.active.undo()
            if begun.fault.kind == "leave":
                # The operator may not have detected yet that its connection ended with a process.
                self.sim.client(begun.fault.nodes[0]).ask("CLUSTER", "LEAVING", "no")
