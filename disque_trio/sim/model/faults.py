"""Applies the faults of a plan to a world, and undoes them.

Engines put their worlds behind the `World` protocol, apply each timed fault when it is due, pass
rows to `see`, and let `Faults` heal everything at the end of the chaos. An occurrence of a fault
changes only what is not so already (a node that is down cannot crash), and undoes only what it did.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import attrs

from disque_trio.sim.model.network import Rule
from disque_trio.sim.model.recorder import Fields
from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios.plan import Fault, Micros

Link = tuple[int, int]
"""Source and target."""


class World(Protocol):
    """What faults can do to nodes and links; each method returns whether it had an effect."""

    def numbers(self) -> Sequence[int]:
        """All nodes but those removed for ever."""

    def later(self, delay: Micros, act: Callable[[], None]) -> None:
        """Call back after a while."""

    # Links.

    def cut(self, link: Link) -> bool:
        """Cut the link."""

    def mend(self, link: Link) -> bool:
        """Undo a cut."""

    def clog(self, link: Link) -> bool:
        """Keep all packets back."""

    def release(self, link: Link) -> bool:
        """Undo a clog."""

    def add_rule(self, link: Link, rule: Rule) -> bool:
        """Lose some messages."""

    def remove_rule(self, link: Link, rule: Rule) -> bool:
        """Undo a rule."""

    def add_delay(self, link: Link, delay: Micros) -> bool:
        """Add to the latency; a negative delay takes away."""

    def half_open(self, link: Link) -> bool:
        """End the connections at the target only, without telling the source."""

    # Processes.

    def crash(self, node: int, cause: str) -> bool:
        """End it."""

    def start(self, node: int) -> bool:
        """Start it again, with what is on its disk."""

    def remove(self, node: int) -> bool:
        """End it for ever."""

    def wipe(self, node: int) -> bool:
        """Kill it; it starts with a new id and no data, and the others meet it."""

    def pause(self, node: int) -> bool:
        """Stop it."""

    def resume(self, node: int) -> bool:
        """Let it go on."""

    def slow(self, node: int, busy: Micros) -> bool:
        """Make each batch take so long."""

    # Disks.

    def fill_disk(self, node: int, *, is_full: bool) -> bool:
        """Make the disk full, or not full again."""

    def break_disk(self, node: int, *, is_broken: bool) -> bool:
        """Make writes and syncs fail, or succeed again."""

    def stall_disk(self, node: int, *, is_stalled: bool) -> bool:
        """Make writes and syncs hang, or go on."""

    def flip_bit(self, node: int) -> bool:
        """Change one bit of the journal."""

    # Clocks.

    def step_clock(self, node: int, ms: int) -> bool:
        """Make the wall clock jump."""

    def set_rate(self, node: int, ppm: int | None) -> bool:
        """Set how much faster than true time the clocks run; None is as planned."""

    def freeze(self, node: int) -> bool:
        """Stop the wall clock."""

    def thaw(self, node: int) -> bool:
        """Let it go on."""

    # What operators do.

    def leave(self, node: int, *, leaving: bool) -> bool:
        """CLUSTER LEAVING."""

    def join(self, node: int) -> bool:
        """Add a new node, which all others meet. `node` is not used."""

    def forget(self, node: int) -> bool:
        """All others forget the node."""

    def meet(self, node: int) -> bool:
        """All others meet the node, if they do not know it."""

    def bury(self, node: int) -> bool:
        """All others forget the former ids of the node."""

    def squeeze(self, node: int, share: int, mode: str) -> bool:
        """CONFIG SET maxmemory, or a large resident size."""

    def pause_queue(self, node: int, queue: str, mode: str) -> bool:
        """PAUSE; with the mode `bcast` of all queues of this name, ordered at this node."""


@attrs.define(eq=False)
class Active:
    """An occurrence that has not been undone."""

    fault: Fault
    nodes: list[int]
    """Those that it has changed."""
    links: list[Link]
    rule: Rule


@attrs.define(eq=False)
class _Armed:
    """A fault that waits for an event."""

    fault: Fault
    cause: str
    seen: int = 0
    occurrences: int = 0


class Faults:
    """The faults of one run."""

    def __init__(self, faults: Sequence[Fault], world: World) -> None:
        self._world = world
        self.timed = [fault for fault in faults if not fault.when]
        self._armed: dict[str, list[_Armed]] = {}
        self._active: dict[Active, None] = {}
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
        """A row of such a kind: apply the faults that wait for it as soon as the event is over."""
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
                self._world.later(0, self._triggered(armed, node, peer))

    def _triggered(self, armed: _Armed, node: str, peer: str) -> Callable[[], None]:
        target = {"event.node": node, "event.peer": peer}.get(armed.fault.target)

        def apply() -> None:
            if armed.occurrences < armed.fault.count and not self._is_over:
                armed.occurrences += self.apply(armed.fault, _number(target))

        return apply

    def apply(self, fault: Fault, victim: int | None = None) -> bool:
        """Apply it, to `victim` instead of the nodes that it names. Had it any effect?"""
        if self._is_over:
            return False
        nodes = fault.nodes if victim is None else (victim,)
        active = Active(fault, [], [], Rule())
        if fault.kind in _LINK_ACTIONS:
            do, _ = _LINK_ACTIONS[fault.kind]
            links = _links(fault, nodes, self._world.numbers())
            active.rule = Rule(fault.amount / 1_000_000 if fault.amount else 1.0, fault.mode)
            active.links = [link for link in links if do(self._world, link, active)]
        else:
            do_node, _ = _NODE_ACTIONS[fault.kind]
            active.nodes = [node for node in nodes if do_node(self._world, node, active)]
        if not (active.nodes or active.links):
            return False
        self._active[active] = None
        if fault.hold:
            self._world.later(fault.hold, lambda: self._undo(active, None))
        return True

    # Undoing.

    def _undo(self, active: Active, core: Sequence[int] | None) -> None:
        """Undo what it did, as far as it was done within the core."""
        if active not in self._active:
            return
        del self._active[active]
        if active.fault.kind in _LINK_ACTIONS:
            _, undo = _LINK_ACTIONS[active.fault.kind]
            for link in active.links:
                if core is None or (link[0] in core and link[1] in core):
                    undo(self._world, link, active)
        else:
            _, undo_node = _NODE_ACTIONS[active.fault.kind]
            for node in active.nodes:
                if core is None or node in core:
                    undo_node(self._world, node, active)

    def heal(self, core: Sequence[int] | None = None) -> None:
        """Undo everything, or everything within the core, and apply no more faults."""
        self._is_over = True
        for active in list(self._active):
            self._undo(active, core)


def draw_core(numbers: Sequence[int], seed: int) -> list[int]:
    """A majority of the nodes."""
    rng = stream(seed, "core")
    return sorted(rng.sample(list(numbers), len(numbers) // 2 + 1))


def _split(when: str) -> tuple[str, str]:
    """``send.gotjob`` is a kind and a cause, ``add.ok`` a kind alone."""
    kind, dot, cause = when.partition(".")
    return (kind, cause) if dot and kind in _KINDS_WITH_CAUSES else (when, "")


def _number(name: str | None) -> int | None:
    return int(name[1:]) if name else None


def _links(fault: Fault, nodes: Sequence[int], numbers: Sequence[int]) -> list[Link]:
    """The links that a fault of links affects."""
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
        if source != target and (source in nodes or target in nodes)
    ]


_KINDS_WITH_CAUSES: Final = (
    "send", "recv", "lost", "hold", "drop", "queue", "unqueue", "acked", "crash", "start",
)  # fmt: skip

LinkAction = Callable[[World, Link, Active], bool]
NodeAction = Callable[[World, int, Active], bool]


def _nothing(_world: World, _node: int, _active: Active) -> bool:
    """For faults that cannot or need not be undone."""
    return False


def _resume_queue(world: World, node: int, active: Active) -> bool:
    """At each node, because a broadcast does not reach those that are cut off."""
    for each in world.numbers() if active.fault.mode == "bcast" else (node,):
        world.pause_queue(each, active.fault.queue, "none")
    return True


_LINK_ACTIONS: Final[dict[str, tuple[LinkAction, LinkAction]]] = {
    "partition": (lambda world, link, _: world.cut(link), lambda world, link, _: world.mend(link)),
    "cut": (lambda world, link, _: world.cut(link), lambda world, link, _: world.mend(link)),
    "clog": (lambda world, link, _: world.clog(link), lambda world, link, _: world.release(link)),
    "drop": (
        lambda world, link, active: world.add_rule(link, active.rule),
        lambda world, link, active: world.remove_rule(link, active.rule),
    ),
    "delay": (
        lambda world, link, active: world.add_delay(link, active.fault.amount * 1000),
        lambda world, link, active: world.add_delay(link, -active.fault.amount * 1000),
    ),
    # A source that has noticed connects anew, so nothing is left to undo.
    "half-open": (lambda world, link, _: world.half_open(link), lambda *_: False),
}
_NODE_ACTIONS: Final[dict[str, tuple[NodeAction, NodeAction]]] = {
    "crash": (
        lambda world, node, active: world.crash(node, active.fault.mode or "kill"),
        lambda world, node, _: world.start(node),
    ),
    "restart": (
        lambda world, node, active: (
            world.crash(node, active.fault.mode or "kill") and world.start(node)
        ),
        _nothing,
    ),
    "remove": (
        lambda world, node, _: world.remove(node),
        lambda world, node, _: world.bury(node),
    ),
    "wipe": (lambda world, node, _: world.wipe(node), lambda world, node, _: world.bury(node)),
    "pause": (lambda world, node, _: world.pause(node), lambda world, node, _: world.resume(node)),
    "slow": (
        lambda world, node, active: world.slow(node, active.fault.amount * 1000),
        lambda world, node, _: world.slow(node, 0),
    ),
    "disk-full": (
        lambda world, node, _: world.fill_disk(node, is_full=True),
        lambda world, node, _: world.fill_disk(node, is_full=False),
    ),
    "disk-error": (
        lambda world, node, _: world.break_disk(node, is_broken=True),
        lambda world, node, _: world.break_disk(node, is_broken=False),
    ),
    "disk-stall": (
        lambda world, node, _: world.stall_disk(node, is_stalled=True),
        lambda world, node, _: world.stall_disk(node, is_stalled=False),
    ),
    "disk-flip": (lambda world, node, _: world.flip_bit(node), _nothing),
    "clock-step": (
        lambda world, node, active: world.step_clock(node, active.fault.amount),
        _nothing,
    ),
    "clock-rate": (
        lambda world, node, active: world.set_rate(node, active.fault.amount),
        lambda world, node, _: world.set_rate(node, None),
    ),
    "wall-freeze": (
        lambda world, node, _: world.freeze(node),
        lambda world, node, _: world.thaw(node),
    ),
    "leave": (
        lambda world, node, _: world.leave(node, leaving=True),
        lambda world, node, _: world.leave(node, leaving=False),
    ),
    "join": (lambda world, node, _: world.join(node), _nothing),
    "forget": (lambda world, node, _: world.forget(node), lambda world, node, _: world.meet(node)),
    "memory": (
        lambda world, node, active: world.squeeze(node, active.fault.amount, active.fault.mode),
        lambda world, node, active: world.squeeze(node, 0, active.fault.mode),
    ),
    "pause-queue": (
        lambda world, node, active: world.pause_queue(
            node, active.fault.queue, active.fault.mode or "all"
        ),
        _resume_queue,
    ),
}
