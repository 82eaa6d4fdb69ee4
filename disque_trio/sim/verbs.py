"""What a caller may do to a simulated cluster: faults that go on until they are undone.

Nodes are given by name or number; times are microseconds unless a name says ms.
"""

from collections.abc import Callable, Sequence
from types import TracebackType

import attrs

from disque_trio.sim.engines.heap.fault_actions import FaultActions
from disque_trio.sim.engines.heap.world import World
from disque_trio.sim.model.faults import Link, Occurrence
from disque_trio.sim.model.network import Rule
from disque_trio.sim.scenarios.plan import Micros

Name = str | int
"""``n1``, or 1."""


@attrs.define(eq=False)
class Trouble:
    """A fault that goes on until it is undone, or until its ``with`` block ends."""

    _owner: "Verbs"
    _undo: Callable[[], object]

    def undo(self) -> None:
        """End it. A second call does nothing."""
        if self in self._owner.troubles:
            del self._owner.troubles[self]
            self._undo()

    release = undo

    def __enter__(self) -> "Trouble":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.undo()


class Verbs:
    """The verbs, over a world. What goes on is in `troubles`."""

    world: World
    troubles: dict[Trouble, None]
    _fault_actions: FaultActions

    def _begin(self, *occurrences: Occurrence) -> Trouble:
        begun = [each for each in occurrences if next(each, self) is None]
        return self._keep(lambda: self._fault_actions.end(begun))

    def _keep(self, undo: Callable[[], object]) -> Trouble:
        trouble = Trouble(self, undo)
        self.troubles[trouble] = None
        return trouble

    # Links.

    def partition(self, *groups: Sequence[Name]) -> Trouble:
        """Cut all links between groups."""
        actions = self._fault_actions
        numbers = [[number_of(node) for node in group] for group in groups]
        return self._begin(
            *[
                actions.cut((source, target))
                for group in numbers
                for other in numbers
                if other is not group
                for source in group
                for target in other
            ]
        )

    def isolate(self, node: Name) -> Trouble:
        """Cut all links of the node."""
        others = [number for number in self.world.hosts if number != number_of(node)]
        return self.partition([node], others)

    def cut(self, source: Name, target: Name) -> Trouble:
        """Cut the link in this direction."""
        return self._begin(self._fault_actions.cut(_link(source, target)))

    def hold(self, source: Name, target: Name) -> Trouble:
        """Keep back everything in this direction until it is released."""
        return self._begin(self._fault_actions.clog(_link(source, target)))

    def delay(self, source: Name, target: Name, delay: Micros) -> Trouble:
        """Add a delay in this direction."""
        return self._begin(self._fault_actions.delay(_link(source, target), delay))

    def drop(
        self, source: Name, target: Name, share: float = 1.0, *, only: str = "", count: int = 0
    ) -> Trouble:
        """Lose a share of the messages, of those named `only`, at most `count`."""
        rule = Rule(share, only, count)
        return self._begin(self._fault_actions.drop(_link(source, target), rule))

    # Processes.

    def crash(self, node: Name, cause: str = "kill") -> Trouble:
        """Kill the process; undone, it starts again, without its jobs."""
        number = number_of(node)
        next(self._fault_actions.crash(number, cause), None)
        return self._keep(lambda: self._fault_actions.start(number))

    def restart(self, node: Name) -> None:
        """Start the process, after ending it if it runs."""
        self.crash(node).undo()

    def wipe(self, node: Name) -> None:
        """Kill the process; it starts again with a new id and no data."""
        next(self._fault_actions.wipe(number_of(node)), None)

    def remove(self, node: Name) -> None:
        """Kill the process for ever."""
        next(self._fault_actions.remove(number_of(node)), None)

    def pause(self, node: Name) -> Trouble:
        """Stop the process."""
        return self._begin(self._fault_actions.pause(number_of(node)))

    def slow(self, node: Name, busy: Micros) -> Trouble:
        """Make each batch of inputs take so long."""
        return self._begin(self._fault_actions.slow(number_of(node), busy))

    # Clocks.

    def drift(self, node: Name, ppm: int) -> Trouble:
        """Make the clocks run so much faster than true time."""
        return self._begin(self._fault_actions.drift(number_of(node), ppm))

    def step_clock(self, node: Name, ms: int) -> None:
        """Make the wall clock jump."""
        next(self._fault_actions.step_clock(number_of(node), ms))

    def freeze(self, node: Name) -> Trouble:
        """Stop the wall clock."""
        return self._begin(self._fault_actions.freeze(number_of(node)))

    # Membership.

    def join(self) -> str:
        """Add a new node, which all others meet. Returns its name."""
        next(self._fault_actions.join())
        return f"n{len(self.world.hosts)}"

    def leave(self, node: Name) -> Trouble:
        """Make the node announce that it leaves."""
        return self._begin(self._fault_actions.leave(number_of(node)))

    def forget(self, node: Name) -> Trouble:
        """Make all others forget the node; undone, they meet it again."""
        return self._begin(self._fault_actions.forget(number_of(node)))

    def heal(self) -> None:
        """Undo every fault."""
        for trouble in list(self.troubles):
            trouble.undo()


def number_of(node: Name) -> int:
    """The number of a node."""
    return node if isinstance(node, int) else int(node[1:])


def _link(source: Name, target: Name) -> Link:
    return number_of(source), number_of(target)
