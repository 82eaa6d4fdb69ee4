"""Controls of a caller over a simulated cluster: faults that last until they are undone.

Nodes are given by name or number; times are in microseconds unless a name contains ms.
"""

from collections.abc import Callable, Sequence
from types import TracebackType

import attrs

from disque_trio.sim.engines.heap.fault_actions import FaultActions
from disque_trio.sim.engines.heap.world import World
from disque_trio.sim.model.faults import Occurrence, begin
from disque_trio.sim.model.network import Rule
from disque_trio.sim.scenarios.plan import Fault, Micros

Name = str | int
"""``n1``, or 1."""


@attrs.define(eq=False)
class ActiveFault:
    """A fault that lasts until it is undone, or until its ``with`` block ends."""

    _owner: "FaultControls"
    _undo: Callable[[], object]

    def undo(self) -> None:
        """End the fault. A second call does nothing."""
        if self in self._owner.active_faults:
            del self._owner.active_faults[self]
            self._undo()

    release = undo

    def __enter__(self) -> "ActiveFault":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.undo()


Trouble = ActiveFault
"""Its name in 0.1.0."""


class FaultControls:
    """Faults in a world. Those in force are in `active_faults`."""

    world: World
    active_faults: dict[ActiveFault, None]
    _fault_actions: FaultActions

    def inject(self, fault: Fault) -> ActiveFault:
        """Start any fault of a plan (`fault_kinds`) now, ignoring its `at`, `when` and `hold`."""
        begun = self._begin(fault)
        return self._keep(lambda: self._fault_actions.end(begun))

    def _begin(self, fault: Fault) -> list[Occurrence]:
        return [occurrence for _, occurrence in begin(fault, self._fault_actions)]

    def _keep(self, undo: Callable[[], object]) -> ActiveFault:
        active = ActiveFault(self, undo)
        self.active_faults[active] = None
        return active

    # Links.

    def partition(self, *groups: Sequence[Name]) -> ActiveFault:
        """Cut all links between groups."""
        numbers = tuple(tuple(number_of(node) for node in group) for group in groups)
        return self.inject(Fault(kind="partition", groups=numbers))

    def isolate(self, node: Name) -> ActiveFault:
        """Cut all links of the node."""
        others = [number for number in self.world.hosts if number != number_of(node)]
        return self.partition([node], others)

    def cut(self, source: Name, target: Name) -> ActiveFault:
        """Cut the link in this direction."""
        return self.inject(_on_link("cut", source, target))

    def hold(self, source: Name, target: Name) -> ActiveFault:
        """Delay all messages in this direction until the fault is undone."""
        return self.inject(_on_link("clog", source, target))

    def delay(self, source: Name, target: Name, delay: Micros) -> ActiveFault:
        """Add a delay in this direction, in whole milliseconds (rounded up)."""
        return self.inject(_on_link("delay", source, target, _ms(delay)))

    def drop(
        self, source: Name, target: Name, share: float = 1.0, *, only: str = "", count: int = 0
    ) -> ActiveFault:
        """Lose a share of the messages, if given only those named `only`, and at most `count`."""
        link = number_of(source), number_of(target)
        loss = self._fault_actions.lose(link, Rule(share, only, count))
        next(loss)
        return self._keep(lambda: self._fault_actions.end([loss]))

    # Processes.

    def crash(self, node: Name, cause: str = "kill") -> ActiveFault:
        """Kill the process. When the fault is undone, it starts again with the content of its
        journal, if it has one."""
        self._begin(attrs.evolve(fault_at(node, "crash"), mode=cause))
        return self._keep(lambda: self._fault_actions.start(number_of(node)))

    def restart(self, node: Name) -> None:
        """Start the process, after killing it if it runs."""
        self.crash(node).undo()

    def wipe(self, node: Name) -> None:
        """Kill the process and start it with a new id and no data."""
        self._begin(fault_at(node, "wipe"))

    def remove(self, node: Name) -> None:
        """Kill the process for good."""
        self._begin(fault_at(node, "remove"))

    def pause(self, node: Name) -> ActiveFault:
        """Stop the process, as SIGSTOP does."""
        return self.inject(fault_at(node, "pause"))

    def slow(self, node: Name, busy: Micros) -> ActiveFault:
        """Make each batch of inputs take this long, in whole milliseconds (rounded up)."""
        return self.inject(fault_at(node, "slow", _ms(busy)))

    # Clocks.

    def drift(self, node: Name, ppm: int) -> ActiveFault:
        """Make the clocks run faster than true time, by this rate."""
        return self.inject(fault_at(node, "clock-rate", ppm))

    def step_clock(self, node: Name, ms: int) -> None:
        """Make the wall clock jump."""
        self._begin(fault_at(node, "clock-step", ms))

    def freeze(self, node: Name) -> ActiveFault:
        """Stop the wall clock."""
        return self.inject(fault_at(node, "wall-freeze"))

    # Membership.

    def join(self) -> str:
        """Add a new node, which all others meet. Return its name."""
        self._begin(fault_at(len(self.world.hosts) + 1, "join"))
        return f"n{len(self.world.hosts)}"

    def leave(self, node: Name) -> ActiveFault:
        """Make the node announce that it leaves."""
        return self.inject(fault_at(node, "leave"))

    def forget(self, node: Name) -> ActiveFault:
        """Make all other nodes forget the node; when the fault is undone, they meet it again."""
        return self.inject(fault_at(node, "forget"))

    def heal(self) -> None:
        """Undo every fault."""
        for active in list(self.active_faults):
            active.undo()


def number_of(node: Name) -> int:
    """Return the number of a node."""
    return node if isinstance(node, int) else int(node[1:])


def fault_at(node: Name, kind: str, amount: int = 0) -> Fault:
    """Return a fault of a node."""
    return Fault(kind=kind, nodes=(number_of(node),), amount=amount)


def _on_link(kind: str, source: Name, target: Name, amount: int = 0) -> Fault:
    return Fault(kind=kind, links=((number_of(source), number_of(target)),), amount=amount)


def _ms(duration: Micros) -> int:
    return -(-duration // 1000)
