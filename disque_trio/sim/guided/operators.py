"""The operators that derive a new plan from a kept one: those of the shrinker reversed, and others
that keep plans from only growing.

Insertions come from a donor, another plan of the same scenario, so options, kinds of faults and
constants stay within the ranges of the scenario. Numbers of nodes are folded into those of the
plan.
"""

import random
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import attrs

from disque_trio.sim.scenarios import fault_kinds, vocabulary
from disque_trio.sim.scenarios.fault_check import impossible
from disque_trio.sim.scenarios.plan import Add, ClockPlan, Fault, Micros, Plan

_Item = TypeVar("_Item")

MOST_ADDS: Final = 600
MOST_FAULTS: Final = 60
MOST_CONSUMERS: Final = 30
_SHORTEST: Final[Micros] = 8_000_000
"""The shortest duration of the chaos."""
_NEAR: Final[Micros] = 500_000
"""How far from an event of the plan an insertion near it is placed."""
_MOST_CHANGES: Final = 5
_EVENTS: Final = tuple(
    event for event in vocabulary.EVENTS if not event.startswith(("crash", "start"))
)
"""Events that may trigger a fault."""


@attrs.frozen
class Source:
    """The input of an operator."""

    rng: random.Random
    donor: Plan
    """A plan of the same scenario."""
    has_drawn_journals: bool
    """Do seeds draw whether nodes have journals (`expand.fits`)?"""


def changed(plan: Plan, source: Source) -> tuple[Plan, tuple[str, ...]]:
    """Return a plan that differs from this one, and the names of the operators."""
    rng, names = source.rng, list[str]()
    new = plan
    wanted = 1 + min(int(rng.expovariate(0.7)), _MOST_CHANGES - 1)
    for _ in range(20 * wanted):
        operator = rng.choice(OPERATORS)
        tried = _mended(operator(new, source), source)
        if tried != new:
            new = tried
            names.append(operator.__name__.lstrip("_"))
        if len(names) == wanted:
            break
    return new, tuple(names)


def cut(plan: Plan, share: float) -> Plan:
    """Return the first part of a plan, not shorter than the shortest chaos."""
    chaos = min(plan.chaos, max(int(plan.chaos * share), _SHORTEST))
    faults = tuple(
        attrs.evolve(fault, hold=0) if not fault.when and fault.at + fault.hold >= chaos else fault
        for fault in plan.faults
        if fault.at < chaos
    )
    adds = tuple(add for add in plan.adds if add.at < chaos)
    return attrs.evolve(plan, chaos=chaos, faults=faults, adds=adds)


def _mended(plan: Plan, source: Source) -> Plan:
    """Return the plan within its bounds, ordered by time, without impossible faults."""
    adds = sorted((add for add in plan.adds if add.at < plan.chaos), key=lambda add: add.at)
    faults = [fault for fault in plan.faults if fault.at < plan.chaos and _may(fault, plan, source)]
    plan = attrs.evolve(
        plan,
        adds=_thinned(adds, MOST_ADDS, source.rng),
        faults=_thinned(sorted(faults, key=lambda fault: fault.at), MOST_FAULTS, source.rng),
        consumers=_thinned(plan.consumers, MOST_CONSUMERS, source.rng),
    )
    wrong = {number for number, _ in impossible(plan)}
    kept = [fault for number, fault in enumerate(plan.faults) if number not in wrong]
    faults_within = [
        attrs.evolve(fault, hold=0)
        if fault.at + fault.hold >= plan.chaos and not fault.when
        else fault
        for fault in kept
    ]
    return attrs.evolve(plan, faults=tuple(faults_within))


def _may(fault: Fault, plan: Plan, source: Source) -> bool:
    """May the plan have the fault? As in `expand`, no wall clock jumps if seeds draw journals."""
    has_journal = dict(plan.config).get("appendonly") == "yes"
    is_wall = fault_kinds.BY_NAME[fault.kind].part == "wall clock"
    return not (is_wall and has_journal and source.has_drawn_journals)


def _thinned(items: Sequence[_Item], most: int, rng: random.Random) -> tuple[_Item, ...]:
    if len(items) <= most:
        return tuple(items)
    return tuple(items[number] for number in sorted(rng.sample(range(len(items)), most)))


# Faults.


def _fault_of_donor(plan: Plan, source: Source) -> Plan:
    if not source.donor.faults:
        return plan
    fault = _folded(source.rng.choice(source.donor.faults), plan.nodes)
    at = _time(plan, source.rng)
    return attrs.evolve(plan, faults=(*plan.faults, attrs.evolve(fault, at=at)))


def _fault_upon_event(plan: Plan, source: Source) -> Plan:
    """Add a fault that waits for a message or a step; a timed fault would meet it only by
    chance."""
    rng = source.rng
    faults = [fault for fault in (*plan.faults, *source.donor.faults) if fault.kind != "join"]
    if not faults:
        return plan
    fault = _folded(rng.choice(faults), plan.nodes)
    is_of_node = not fault_kinds.BY_NAME[fault.kind].is_of_links and fault.kind not in _OF_FEW
    upon = attrs.evolve(
        fault,
        at=rng.randrange(plan.chaos) if rng.random() < 0.5 else 0,
        when=rng.choice(_EVENTS),
        nth=int(200 ** rng.random()),
        nodes=() if is_of_node else fault.nodes,
        target=rng.choice(("event.node", "event.peer")) if is_of_node else "",
        hold=fault.hold or rng.randint(10_000, 10_000_000),
        count=rng.randint(1, 3),
    )
    if upon.target == "event.peer" and not upon.when.startswith(("send", "recv")):
        upon = attrs.evolve(upon, target="event.node")
    return attrs.evolve(plan, faults=(*plan.faults, upon))


_OF_FEW: Final = ("join", "leave", "forget", "remove", "wipe", "memory")
"""Faults whose nodes stay those that the scenario has drawn."""


def _fault_again(plan: Plan, source: Source) -> Plan:
    return _with_fault(plan, source, lambda fault: _moved(fault, plan, source.rng), is_added=True)


def _fault_moved(plan: Plan, source: Source) -> Plan:
    return _with_fault(plan, source, lambda fault: _moved(fault, plan, source.rng))


def _fault_longer(plan: Plan, source: Source) -> Plan:
    factor = 2 ** source.rng.uniform(-2, 2.5)
    return _with_fault(plan, source, lambda each: attrs.evolve(each, hold=int(each.hold * factor)))


def _fault_elsewhere(plan: Plan, source: Source) -> Plan:
    """Shift all node numbers of a fault."""
    shift = source.rng.randrange(plan.nodes)
    return _with_fault(plan, source, lambda fault: _folded(fault, plan.nodes, shift))


def _fault_gone(plan: Plan, source: Source) -> Plan:
    return attrs.evolve(plan, faults=_without_some(plan.faults, source.rng))


def _with_fault(
    plan: Plan, source: Source, change: Callable[[Fault], Fault], *, is_added: bool = False
) -> Plan:
    if not plan.faults:
        return plan
    number = source.rng.randrange(len(plan.faults))
    new = change(plan.faults[number])
    rest = plan.faults if is_added else (*plan.faults[:number], *plan.faults[number + 1 :])
    return attrs.evolve(plan, faults=(*rest, new))


def _moved(fault: Fault, plan: Plan, rng: random.Random) -> Fault:
    if fault.when:
        return attrs.evolve(fault, nth=max(1, int(fault.nth * 2 ** rng.uniform(-2, 2))))
    return attrs.evolve(fault, at=_time(plan, rng))


def _time(plan: Plan, rng: random.Random) -> Micros:
    """Return a random time, or one near an event of the plan."""
    events = [add.at for add in plan.adds] + [fault.at for fault in plan.faults]
    if not events or rng.random() < 0.4:
        return rng.randrange(plan.chaos)
    return min(max(0, rng.choice(events) + rng.randint(-_NEAR, _NEAR)), plan.chaos - 1)


def _folded(fault: Fault, nodes: int, shift: int = 0) -> Fault:
    """Return the fault with node numbers that a cluster of this size has."""

    def fold(number: int) -> int:
        return (number - 1 + shift) % nodes + 1

    groups: dict[int, int] = {}
    for place, group in enumerate(fault.groups):
        for node in group:
            groups.setdefault(fold(node), place)
    places = dict.fromkeys(groups.values())
    links = {(fold(one), fold(other)): None for one, other in fault.links}
    return attrs.evolve(
        fault,
        nodes=tuple(dict.fromkeys(map(fold, fault.nodes))) if fault.kind != "join" else fault.nodes,
        groups=tuple(
            tuple(sorted(node for node, its in groups.items() if its == place)) for place in places
        ),
        links=tuple(link for link in links if link[0] != link[1]),
    )


# Jobs.


def _adds_of_donor(plan: Plan, source: Source) -> Plan:
    """Add a part of the donor's jobs, at their times or moved together."""
    some = _part(source.donor.adds, source.rng)
    if not some:
        return plan
    shift = source.rng.randrange(plan.chaos) - some[0].at if source.rng.random() < 0.5 else 0
    return attrs.evolve(plan, adds=(*plan.adds, *_renamed(some, plan, source.rng, shift)))


def _adds_again(plan: Plan, source: Source) -> Plan:
    """Repeat some jobs at another time and at other nodes."""
    some = _part(plan.adds, source.rng)
    if not some:
        return plan
    shift = _time(plan, source.rng) - some[0].at
    return attrs.evolve(plan, adds=(*plan.adds, *_renamed(some, plan, source.rng, shift)))


def _add_options(plan: Plan, source: Source) -> Plan:
    """Give some jobs all options of one of the donor's jobs."""
    if not plan.adds or not source.donor.adds:
        return plan
    model = source.rng.choice(source.donor.adds)
    chosen = {add.body for add in _part(plan.adds, source.rng)}
    adds = (_like(add, model, plan.nodes) if add.body in chosen else add for add in plan.adds)
    return attrs.evolve(plan, adds=tuple(adds))


def _adds_gone(plan: Plan, source: Source) -> Plan:
    return attrs.evolve(plan, adds=_without_some(plan.adds, source.rng))


def _like(add: Add, model: Add, nodes: int) -> Add:
    kept = {name: getattr(add, name) for name in ("at", "node", "producer", "body")}
    return _fitting(attrs.evolve(model, **kept), nodes)


def _fitting(add: Add, nodes: int) -> Add:
    """Return the job for a cluster of this size."""
    most = nodes if add.replicate is None else min(add.replicate, nodes)
    return attrs.evolve(
        add,
        node=(add.node - 1) % nodes + 1,
        replicate=None if add.replicate is None else most,
        sync=None if add.sync is None else min(add.sync, most),
    )


def _renamed(adds: Sequence[Add], plan: Plan, rng: random.Random, shift: Micros) -> list[Add]:
    """Return the jobs with producers and bodies that are new in the plan."""
    mark = f"g{rng.randrange(1 << 30):x}"
    turn = rng.randrange(plan.nodes)
    return [
        _fitting(
            attrs.evolve(
                add,
                at=max(0, add.at + shift),
                node=add.node + turn,
                producer=f"{mark}-{add.producer}",
                body=f"{mark}-{number}",
            ),
            plan.nodes,
        )
        for number, add in enumerate(adds)
    ]


def _part(items: Sequence[_Item], rng: random.Random) -> Sequence[_Item]:
    """Return a run of consecutive items, more often a short one than a long one."""
    if not items:
        return items
    size = max(1, int(len(items) ** rng.random()))
    start = rng.randrange(len(items) - size + 1)
    return items[start : start + size]


def _without_some(items: Sequence[_Item], rng: random.Random) -> tuple[_Item, ...]:
    gone = _part(items, rng)
    start = next((number for number, each in enumerate(items) if gone and each is gone[0]), 0)
    return (*items[:start], *items[start + len(gone) :])


# Clients.


def _consumers_of_donor(plan: Plan, source: Source) -> Plan:
    some = _part(source.donor.consumers, source.rng)
    taken = {consumer.name for consumer in plan.consumers}
    free = (name for number in range(1, 10_000) if (name := f"c{number}") not in taken)
    new = [
        attrs.evolve(each, name=next(free), node=(each.node - 1) % plan.nodes + 1) for each in some
    ]
    return attrs.evolve(plan, consumers=(*plan.consumers, *new))


def _consumers_gone(plan: Plan, source: Source) -> Plan:
    """Remove some consumers, unless a queue would have none: its jobs would only make runs long."""
    left = _without_some(plan.consumers, source.rng)
    read = {queue for consumer in left for queue in consumer.queues}
    wanted = {queue for consumer in plan.consumers for queue in consumer.queues}
    return attrs.evolve(plan, consumers=left) if read == wanted else plan


def _askers(plan: Plan, source: Source) -> Plan:
    """Take the observers and administrators of the donor."""
    donor = source.donor
    return attrs.evolve(plan, observers=donor.observers, administrators=donor.administrators)


# The whole plan.


def _links(plan: Plan, source: Source) -> Plan:
    return attrs.evolve(plan, link=source.donor.link)


def _clocks(plan: Plan, source: Source) -> Plan:
    clocks = [*source.donor.clocks, *[ClockPlan()] * plan.nodes][: plan.nodes]
    return attrs.evolve(plan, clocks=tuple(clocks) if source.donor.clocks else ())


def _config(plan: Plan, source: Source) -> Plan:
    """Take the directives of the donor, except those of the journal, which depend on the faults."""
    journal = ("appendonly", "appendfsync")
    own = [each for each in plan.config if each[0] in journal]
    rest = [each for each in source.donor.config if each[0] not in journal]
    return attrs.evolve(plan, config=(*rest, *own))


def _knob(plan: Plan, source: Source) -> Plan:
    """Take one constant of the donor."""
    own, other = dict(plan.knobs), dict(source.donor.knobs)
    names = list(dict.fromkeys((*own, *other)))
    if not names:
        return plan
    name = source.rng.choice(names)
    own.pop(name, None)
    return attrs.evolve(
        plan, knobs=(*own.items(), *([(name, other[name])] if name in other else []))
    )


def _seed(plan: Plan, source: Source) -> Plan:
    """Take the seed of the donor."""
    return attrs.evolve(plan, seed=source.donor.seed)


def _shorter(plan: Plan, source: Source) -> Plan:
    """Keep only the first part, which saves time for other runs."""
    chaos = int(plan.chaos * source.rng.uniform(0.3, 0.8))
    return attrs.evolve(plan, chaos=chaos) if chaos >= _SHORTEST else plan


def _spliced(plan: Plan, source: Source) -> Plan:
    """Combine the first part of this plan with the later part of the donor."""
    at = source.rng.randrange(plan.chaos)
    donor = source.donor
    later = [add for add in donor.adds if add.at >= at]
    faults = [_folded(fault, plan.nodes) for fault in donor.faults if fault.at >= at]
    return attrs.evolve(
        plan,
        adds=(
            *(add for add in plan.adds if add.at < at),
            *_renamed(later, plan, source.rng, 0),
        ),
        faults=(*(fault for fault in plan.faults if fault.at < at), *faults),
    )


def overlaid(plan: Plan, source: Source) -> Plan:
    """Return a plan with the events of both plans, and maybe with the links and directives of the
    donor."""
    for operator in (_config, _links, _askers, _clocks):
        if source.rng.random() < 0.5:
            plan = operator(plan, source)
    at = plan.chaos
    both = attrs.evolve(
        plan,
        seed=source.donor.seed,
        chaos=max(_SHORTEST, int(at * source.rng.uniform(0.4, 1))),
        adds=(*plan.adds, *_renamed(source.donor.adds, plan, source.rng, 0)),
        faults=(*plan.faults, *(_folded(each, plan.nodes) for each in source.donor.faults)),
        knobs=source.donor.knobs if source.rng.random() < 0.5 else plan.knobs,
    )
    return _mended(_consumers_of_donor(both, source), source)


OPERATORS: Final[tuple[Callable[[Plan, Source], Plan], ...]] = (
    _fault_of_donor, _fault_of_donor, _fault_upon_event, _fault_upon_event, _fault_again,
    _fault_moved, _fault_longer, _fault_elsewhere, _fault_gone,
    _adds_of_donor, _adds_again, _add_options, _adds_gone,
    _consumers_of_donor, _consumers_gone, _askers,
    _links, _clocks, _config, _knob, _seed, _shorter, _spliced,
)  # fmt: skip
"""An operator that is listed twice is drawn twice as often."""
