"""What a caller may do to a simulated cluster: faults that go on until they are undone.

Nodes are given by name or number; times are microseconds unless a name says ms.
"""

from collections.abc import Callable, Sequence
from types import TracebackType

import attrs

from disque_trio.sim.engines.heap.fault_actions import FaultActions
from disque_trio.sim.engines.heap.world import World
from disque_trio.sim.model.faults import Link
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

    # Links.

    def _trouble(
        self, links: Sequence[Link], do: Callable[[Link], bool], undo: Callable[[Link], bool]
    ) -> Trouble:
        for link in links:
            do(link)
        return self._keep(lambda: [undo(link) for link in links])

    def _keep(self, undo: Callable[[], object]) -> Trouble:
        trouble = Trouble(self, undo)
        self.troubles[trouble] = None
        return trouble

    def partition(self, *groups: Sequence[Name]) -> Trouble:
        """Cut all links between groups."""
        numbers = [[number_of(node) for node in group] for group in groups]
        links = [
            (source, target)
            for group in numbers
            for other in numbers
            if other is not group
            for source in group
            for target in other
        ]
        return self._trouble(links, self._fault_actions.cut, self._fault_actions.mend)

    def isolate(self, node: Name) -> Trouble:
        """Cut all links of the node."""
        others = [number for number in self.world.hosts if number != number_of(node)]
        return self.partition([node], others)

    def cut(self, source: Name, target: Name) -> Trouble:
        """Cut the link in this direction."""
        return self._trouble(
            _link(source, target), self._fault_actions.cut, self._fault_actions.mend
        )

    def hold(self, source: Name, target: Name) -> Trouble:
        """Keep back everything in this direction until it is released."""
        return self._trouble(
            _link(source, target), self._fault_actions.clog, self._fault_actions.release
        )

    def delay(self, source: Name, target: Name, delay: Micros) -> Trouble:
        """Add a delay in this direction."""
        fault_actions = self._fault_actions
        return self._trouble(
            _link(source, target),
            lambda link: fault_actions.add_delay(link, delay),
            lambda link: fault_actions.add_delay(link, -delay),
        )

    def drop(
        self, source: Name, target: Name, share: float = 1.0, *, only: str = "", count: int = 0
    ) -> Trouble:
        """Lose a share of the messages, of those named `only`, at most `count`."""
        rule, fault_actions = Rule(share, only, count), self._fault_actions
        return self._trouble(
            _link(source, target),
            lambda link: fault_actions.add_rule(link, rule),
            lambda link: fault_actions.remove_rule(link, rule),
        )

    # Processes.

    def crash(self, node: Name, cause: str = "kill") -> Trouble:
        """Kill the process; undone, it starts again, without its jobs."""
        number = number_of(node)
        self._fault_actions.crash(number, cause)
        return self._keep(lambda: self._fault_actions.start(number))

    def restart(self, node: Name) -> None:
        """Start the process, after ending it if it runs."""
        self._fault_actions.crash(number_of(node), "kill")
        self._fault_actions.start(number_of(node))

    def wipe(self, node: Name) -> None:
        """Kill the process; it starts again with a new id and no data."""
        self._fault_actions.wipe(number_of(node))

    def remove(self, node: Name) -> None:
        """Kill the process for ever."""
        self._fault_actions.remove(number_of(node))

    def pause(self, node: Name) -> Trouble:
        """Stop the process."""
        number = number_of(node)
        self._fault_actions.pause(number)
        return self._keep(lambda: self._fault_actions.resume(number))

    def slow(self, node: Name, busy: Micros) -> Trouble:
        """Make each batch of inputs take so long."""
        number = number_of(node)
        self._fault_actions.slow(number, busy)
        return self._keep(lambda: self._fault_actions.slow(number, 0))

    # Clocks.

    def drift(self, node: Name, ppm: int) -> Trouble:
        """Make the clocks run so much faster than true time."""
        number = number_of(node)
        self._fault_actions.set_rate(number, ppm)
        return self._keep(lambda: self._fault_actions.set_rate(number, None))

    def step_clock(self, node: Name, ms: int) -> None:
        """Make the wall clock jump."""
        self._fault_actions.step_clock(number_of(node), ms)

    def freeze(self, node: Name) -> Trouble:
        """Stop the wall clock."""
        number = number_of(node)
        self._fault_actions.freeze(number)
        return self._keep(lambda: self._fault_actions.thaw(number))

    # Membership.

    def join(self) -> str:
        """Add a new node, which all others meet. Returns its name."""
        self._fault_actions.join(0)
        return f"n{len(self.world.hosts)}"

    def leave(self, node: Name) -> Trouble:
        """Make the node announce that it leaves."""
        number = number_of(node)
        self._fault_actions.leave(number, leaving=True)
        return self._keep(lambda: self._fault_actions.leave(number, leaving=False))

    def forget(self, node: Name) -> Trouble:
        """Make all others forget the node; undone, they meet it again."""
        number = number_of(node)
        self._fault_actions.forget(number)
        return self._keep(lambda: self._fault_actions.meet(number))

    def heal(self) -> None:
        """Undo every fault."""
        for trouble in list(self.troubles):
            trouble.undo()


def number_of(node: Name) -> int:
    """The number of a node."""
    return node if isinstance(node, int) else int(node[1:])


def _link(source: Name, target: Name) -> list[Link]:
    return [(number_of(source), number_of(target))]
