"""One fault of a scenario: what, where, when and how often; and which keys depend on each other."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from disque_trio.sim.scenarios import fault_kinds, vocabulary
from disque_trio.sim.scenarios.ranges import Range
from disque_trio.sim.scenarios.schema import Spot, key, table
from disque_trio.sim.scenarios.value_types import (
    AMOUNT,
    DURATION,
    LABEL,
    NODES_OR_ZONE,
    POSITIVE_DURATION,
    SHARE,
    count,
    one_of,
    whole,
    words_of,
)


@attrs.frozen(kw_only=True)
class Trigger:
    """The event that triggers a fault, in place of a time."""

    event: str = key(
        one_of(*vocabulary.EVENTS, description="an event"),
        "a row's kind; for messages `send.` or `recv.` and its name",
    )
    nth: Range = key(
        whole(1), "the number of the event that triggers the fault, counted from `at`", default=1
    )


@attrs.frozen(kw_only=True)
class FaultSpec:
    """One `[[fault]]`. `plan.Fault` describes the kinds."""

    kind: str = key(
        one_of(*(kind.name for kind in fault_kinds.IN_SCENARIOS), description="a kind of fault"),
        "what happens",
    )
    family: str | None = key(
        LABEL, "its name in `swarm.families`; by default its kind", default=None
    )
    p: Range = key(SHARE, "chance that a run has this fault at all", default=1)
    at: Range | None = key(DURATION, "when it happens; with `every`, the first time", default=None)
    every: Range | None = key(
        POSITIVE_DURATION, "the time from one occurrence to the next", default=None
    )
    hold: Range | None = key(
        POSITIVE_DURATION,
        "how long it lasts; by default until the end of the chaos",
        default=None,
    )
    shape: tuple[str, ...] | None = key(
        words_of(one_of(*vocabulary.SHAPES, description="a shape")),
        "which links, for faults of links; one is drawn from an array each time",
        default=None,
    )
    nodes: tuple[int, ...] | str = key(
        NODES_OR_ZONE, "which nodes, for faults of nodes", default="random"
    )
    victims: Range = key(whole(1), "how many nodes, if they are drawn", default=1)
    amount: tuple[str, Range] | None = key(
        AMOUNT,
        "a time for clock-step, slow and delay; parts per million for clock-rate; a share of the "
        "messages for drop, of the memory for memory",
        default=None,
    )
    mode: tuple[str, ...] | None = key(
        words_of(one_of(*fault_kinds.MODES)),
        "crash and restart: `kill`, `power` or `stop` (SIGTERM: the node rewrites its journal, "
        "with the queues); pause-queue: `in`, `out`, `all`, or `bcast` (`all`, ordered at one node "
        "for all); memory: what is short of the limit, `account` or `resident-size`; one is drawn "
        "from an array",
        default=None,
    )
    message: str | None = key(
        one_of(*vocabulary.MESSAGES, description="a message, such as `setack`"),
        "drop: only messages of this name",
        default=None,
    )
    queue: str | None = key(LABEL, "pause-queue: which queue", default=None)
    stagger: Range = key(
        DURATION, "swizzle: the time from one clog to the next", default="200ms..2s"
    )
    when: Trigger | None = key(table(Trigger), "happens upon an event, not at a time", default=None)
    target: str | None = key(
        one_of("event.node", "event.peer"),
        "the node or the peer that the event names, instead of `nodes`",
        default=None,
    )
    count: int | None = key(
        count(1),
        "how often at most; by default once with `when`, without limit with `every`",
        default=None,
    )

    @property
    def swarm_family(self) -> str:
        """The fault's family in `swarm.families`."""
        return self.family or self.kind


_TAKES: Final[Mapping[str, Callable[[fault_kinds.FaultKind], object]]] = {
    "shape": lambda kind: kind.is_of_links,
    "amount": lambda kind: kind.amount,
    "mode": lambda kind: kind.modes,
    "message": lambda kind: kind.takes_message,
    "queue": lambda kind: kind.takes_queue,
}
"""The keys that only some kinds take."""
_UNITS: Final = {"time": "a duration", "ppm": "parts per million (200ppm)", "share": "a share (5%)"}


def check_fault(fault: FaultSpec, spot: Spot) -> None:
    """Report keys that contradict each other."""
    kind = fault_kinds.BY_NAME[fault.kind]
    for name, takes in _TAKES.items():
        if getattr(fault, name) is not None and not takes(kind):
            takers = [each.name for each in fault_kinds.IN_SCENARIOS if takes(each)]
            spot.inside(name).wrong(f"{name} says nothing of {fault.kind}, only of {_all(takers)}")
    _check_amount(fault, kind.amount, spot)
    _check_times(fault, spot)
    for mode in fault.mode or ():
        if kind.modes and mode not in kind.modes:
            spot.inside("mode").wrong(f"mode of {fault.kind} is {_all(kind.modes)}")
    if kind.takes_queue and fault.queue is None:
        spot.wrong("queue is missing: which queue to pause")


def _check_amount(fault: FaultSpec, wanted: str, spot: Spot) -> None:
    if not wanted:
        return
    if fault.amount is None:
        spot.wrong(f"amount is missing: {fault.kind} takes {_UNITS[wanted]}")
    elif fault.amount[0] != wanted:
        spot.inside("amount").wrong(f"amount of {fault.kind} is {_UNITS[wanted]}")


def _check_times(fault: FaultSpec, spot: Spot) -> None:
    if fault.target is not None and fault.when is None:
        spot.inside("target").wrong("target needs an event: say 'when'")
    if fault.when is not None:
        if fault.every is not None:
            spot.inside("every").wrong("a fault happens upon an event or every so often, not both")
        if fault.kind == "swizzle":
            spot.inside("when").wrong("swizzle cannot wait for an event")
        return
    if fault.at is None and fault.every is None:
        spot.wrong(f"nothing says when {fault.kind} happens: say 'at', 'every' or 'when'")


def _all(names: Any) -> str:
    return ", ".join(names[:-1]) + f" or {names[-1]}" if len(names) > 1 else str(names[0])
