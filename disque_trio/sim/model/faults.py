"""Applies the faults of a plan to a world, and undoes them.

An engine implements each fault (`Actions`), applies each timed fault when it is due, passes rows to
`see`, and calls `heal` at the end of the chaos. An occurrence of a fault changes only what is not
yet so (a node that is down cannot crash), and undoes only its own changes.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

import attrs

from disque_trio.sim.model.recorder import Fields
from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios import fault_kinds
from disque_trio.sim.scenarios.plan import Fault, Micros

Link = tuple[int, int]
"""Source and target."""
Occurrence = Iterator[None]
"""A generator that starts a fault at one node or link, yields, and ends it; without an effect it
does not yield."""


class Actions(Protocol):
    """The effects of faults."""

    def numbers(self) -> Sequence[int]:
        """Return all nodes except removed ones."""

    def later(self, delay: Micros, act: Callable[[], None]) -> None:
        """Call `act` after a delay."""

    def of(self, fault: Fault, target: int | Link) -> Occurrence:
        """Return an occurrence of the fault at a node or link."""


@attrs.define(eq=False)
class _Armed:
    """A fault that waits for an event."""

    fault: Fault
    cause: str
    seen: int = 0
    occurrences: int = 0


class Faults:
    """The faults of one run."""

    def __init__(self, faults: Sequence[Fault], actions: Actions) -> None:
        self._actions = actions
        self.timed = [fault for fault in faults if not fault.when]
        self._armed: dict[str, list[_Armed]] = {}
        self._active: dict[int, list[tuple[int | Link, Occurrence]]] = {}
        """By number of a fault in force: the places where it had an effect, and the occurrences
        that end it."""
        self._count = 0
        self._is_over = False
        for fault in faults:
            if fault.when:
                kind, cause = _split(fault.when)
                self._armed.setdefault(kind, []).append(_Armed(fault, cause))

    @property
    def kinds(self) -> list[str]:
        """The kinds of rows that must be passed to `see`."""
        return list(self._armed)

    # Applying.

    def see(self, row: Fields) -> None:
        """Take a row of such a kind: apply the faults that wait for it as soon as the event is
        over."""
        time, kind, node, _, _, _, peer, cause, *_ = row
        for armed in self._armed[kind]:
            fault = armed.fault
            if self._is_over or time < fault.at or armed.occurrences >= fault.count:
                continue
            if armed.cause not in {"", cause}:
                continue
            armed.seen += 1
            if armed.seen == fault.nth:
                armed.seen = 0
                self._actions.later(0, self._triggered(armed, node, peer))

    def _triggered(self, armed: _Armed, node: str, peer: str) -> Callable[[], None]:
        target = {"event.node": node, "event.peer": peer}.get(armed.fault.target)

        def apply() -> None:
            if armed.occurrences < armed.fault.count and not self._is_over:
                armed.occurrences += self.apply(armed.fault, _number(target))

        return apply

    def apply(self, fault: Fault, victim: int | None = None) -> bool:
        """Apply a fault, to `victim` instead of its nodes if given. Return whether it had any
        effect."""
        if self._is_over:
            return False
        if victim is not None:
            fault = attrs.evolve(fault, nodes=(victim,))
        if begun := begin(fault, self._actions):
            self._count += 1
            number, self._active[self._count] = self._count, begun
            if fault.hold:
                self._actions.later(fault.hold, lambda: self._undo(number, None))
        return bool(begun)

    # Undoing.

    def _undo(self, number: int, core: Sequence[int] | None) -> None:
        """Undo the changes of a fault; with a core, only those within the core."""
        for target, occurrence in self._active.pop(number, []):
            nodes = (target,) if isinstance(target, int) else target
            if core is None or all(node in core for node in nodes):
                next(occurrence, None)

    def heal(self, core: Sequence[int] | None = None) -> None:
        """Undo all faults, or all within the core, and apply none from now on."""
        self._is_over = True
        for number in list(self._active):
            self._undo(number, core)


def begin(fault: Fault, actions: Actions) -> list[tuple[int | Link, Occurrence]]:
    """Start a fault at its places in the plan. Return the nodes or links where it had an effect."""
    is_of_links = fault_kinds.BY_NAME[fault.kind].is_of_links
    targets: Sequence[int | Link] = _links(fault, actions.numbers()) if is_of_links else fault.nodes
    return [
        (target, occurrence)
        for target in targets
        for occurrence in [actions.of(fault, target)]
        if next(occurrence, actions) is None
    ]


def draw_core(numbers: Sequence[int], seed: int) -> list[int]:
    """Return a majority of the nodes; none if all are removed."""
    rng = stream(seed, "core")
    return sorted(rng.sample(list(numbers), min(len(numbers), len(numbers) // 2 + 1)))


def _split(when: str) -> tuple[str, str]:
    """Return the kind and the cause: ``send.gotjob`` has both, ``add.ok`` is a kind alone."""
    kind, dot, cause = when.partition(".")
    return (kind, cause) if dot and kind in _KINDS_WITH_CAUSES else (when, "")


def _number(name: str | None) -> int | None:
    return int(name[1:]) if name else None


def _links(fault: Fault, numbers: Sequence[int]) -> list[Link]:
    """Return the links that a fault of links affects."""
    if fault.groups:
        return [
            (source, target)
            for group in fault.groups
            for other in fault.groups
            if group is not other
            for source in group
            for target in other
        ]
    if fault.links:
        return list(fault.links)
    return [
        (source, target)
        for source in numbers
        for target in numbers
        if source != target and (source in fault.nodes or target in fault.nodes)
    ]


_KINDS_WITH_CAUSES: Final = (
    "send", "recv", "lost", "hold", "drop", "queue", "unqueue", "acked", "crash", "start",
)  # fmt: skip
