"""Shrinks a failing plan to a minimal one that still fails (delta debugging).

A smaller plan is accepted only if it fails in the same way (`still_fails`). First whole families of
faults are removed, and random link behaviour is made constant; then single faults, adds, consumers
and nodes are removed; then times are shortened and rounded.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import attrs

from disque_trio.sim.scenarios.fault_check import impossible
from disque_trio.sim.scenarios.plan import Add, Consumer, Fault, Latency, LinkPlan, Micros, Plan
from disque_trio.statemachine.joboptions import CARRIED

_Item = TypeVar("_Item")

_ROUND: Final[tuple[Micros, ...]] = (1_000_000, 100_000, 10_000)


def operations(plan: Plan) -> int:
    """Return the size of a plan: the number of its adds, consumers, observers and faults."""
    return len(plan.adds) + len(plan.consumers) + len(plan.observers) + len(plan.faults)


class Shrinker:
    """One search. It stops after `budget` runs with the smallest plan so far."""

    def __init__(
        self,
        still_fails: Callable[[Plan], bool],
        budget: int = 2_000,
        progress: Callable[[Plan, int], None] | None = None,
    ) -> None:
        self._still_fails = still_fails
        self.budget = budget
        self.progress = progress
        self.runs = 0
        self.tries = 1
        """The number of seeds with which each smaller plan is tried: a removed item shifts all
        draws, and a failure that needs a coincidence seldom survives that."""

    def shrink(self, plan: Plan) -> Plan:
        """Return a minimal plan: no item can be removed, unless the budget was spent."""
        while True:
            before = plan
            for step in (
                self._fault_families,
                self._times_end,
                self._plainer_links,
                self._items,
                self._fewer_nodes,
                self._plainer_items,
                self._earlier,
                self._rounder_times,
            ):
                plan = step(plan)
            if plan == before or self.is_spent:
                return plan

    @property
    def is_spent(self) -> bool:
        """Is the budget spent?"""
        return self.runs >= self.budget

    def _accept(self, plan: Plan, smaller: Plan) -> Plan:
        """Return the smaller plan if it fails in the same way, otherwise the plan."""
        if smaller == plan or any(impossible(smaller)):
            return plan
        for seed in range(smaller.seed, smaller.seed + self.tries):
            if self.is_spent:
                break
            self.runs += 1
            tried = attrs.evolve(smaller, seed=seed)
            if self._still_fails(tried):
                if self.progress is not None:
                    self.progress(tried, self.runs)
                return tried
        return plan

    def _fault_families(self, plan: Plan) -> Plan:
        plan = self._accept(plan, attrs.evolve(plan, faults=()))
        for kind in dict.fromkeys(fault.kind for fault in plan.faults):
            others = tuple(fault for fault in plan.faults if fault.kind != kind)
            plan = self._accept(plan, attrs.evolve(plan, faults=others))
        return plan

    def _items(self, plan: Plan) -> Plan:
        plan = self._ddmin(plan, "faults", plan.faults)
        plan = self._ddmin(plan, "adds", plan.adds)
        plan = self._ddmin(plan, "consumers", plan.consumers)
        plan = self._ddmin(plan, "observers", plan.observers)
        plan = self._ddmin(plan, "limits", plan.limits)
        return self._ddmin(plan, "administrators", plan.administrators)

    def _ddmin(self, plan: Plan, field: str, items: Sequence[_Item]) -> Plan:
        """Remove smaller and smaller parts of `items` (Zeller's ddmin, complements only)."""
        if not items:
            return plan
        empty: dict[str, Any] = {field: ()}
        if (bare := self._accept(plan, attrs.evolve(plan, **empty))) is not plan:
            return bare
        pieces = 2
        while len(items) >= 2 and not self.is_spent:
            for kept in _complements(items, pieces):
                change: dict[str, Any] = {field: tuple(kept)}
                smaller = self._accept(plan, attrs.evolve(plan, **change))
                if smaller is not plan:
                    plan, items, pieces = smaller, kept, max(pieces - 1, 2)
                    break
            else:
                if pieces >= len(items):
                    break
                pieces = min(len(items), pieces * 2)
        return plan

    def _times_end(self, plan: Plan) -> Plan:
        """End the chaos earlier, without the later events."""
        for chaos in _shorter(plan.chaos):
            adds = tuple(add for add in plan.adds if add.at < chaos)
            faults = tuple(_within(fault, chaos) for fault in plan.faults if fault.at < chaos)
            smaller = attrs.evolve(plan, chaos=chaos, adds=adds, faults=faults)
            if (accepted := self._accept(plan, smaller)) is not plan:
                return accepted
        return plan

    def _earlier(self, plan: Plan) -> Plan:
        """Remove the idle time at the start."""
        times = [*(add.at for add in plan.adds), *(fault.at for fault in plan.faults)]
        idle = min(times, default=0) // _ROUND[0] * _ROUND[0]
        if not 0 < idle < plan.chaos:
            return plan
        adds = tuple(attrs.evolve(add, at=add.at - idle) for add in plan.adds)
        faults = tuple(attrs.evolve(fault, at=fault.at - idle) for fault in plan.faults)
        shifted = attrs.evolve(plan, adds=adds, faults=faults, chaos=plan.chaos - idle)
        return self._accept(plan, shifted)

    def _fewer_nodes(self, plan: Plan) -> Plan:
        """Remove the last node while the plan still fails."""
        while plan.nodes > 1:
            smaller = _without_last_node(plan)
            if (accepted := self._accept(plan, smaller)) is plan:
                return plan
            plan = accepted
        return plan

    def _plainer_links(self, plan: Plan) -> Plan:
        low = plan.link.latency.fast[0]
        for link in (
            LinkPlan(latency=Latency(fast=(low, low))),
            attrs.evolve(plan.link, latency=Latency(fast=(low, low))),
            attrs.evolve(plan.link, drop=0.0, duplicate=0.0, reorder=0.0),
            attrs.evolve(plan.link, bytes_per_second=0),
            attrs.evolve(plan.link, batches=False),
        ):
            plan = self._accept(plan, attrs.evolve(plan, link=link))
        plan = self._accept(plan, attrs.evolve(plan, clocks=()))
        plan = self._accept(plan, attrs.evolve(plan, config=()))
        plan = self._accept(plan, attrs.evolve(plan, versions=()))
        plan = self._accept(plan, attrs.evolve(plan, knobs=()))
        for each in plan.knobs:
            rest = tuple(knob for knob in plan.knobs if knob is not each)
            plan = self._accept(plan, attrs.evolve(plan, knobs=rest))
        return plan

    def _plainer_items(self, plan: Plan) -> Plan:
        """Simplify items: remove options, use a single way, one job at a time."""
        for field, ways in _SIMPLER.items():
            for number in range(len(getattr(plan, field))):
                for way in ways:
                    for item in way(getattr(plan, field)[number]):
                        smaller = _replaced(plan, field, number, item)
                        if (accepted := self._accept(plan, smaller)) is not plan:
                            plan = accepted
                            break
        return plan

    def _rounder_times(self, plan: Plan) -> Plan:
        for field in ("adds", "faults"):
            for number in range(len(getattr(plan, field))):
                for unit in _ROUND:
                    item = getattr(plan, field)[number]
                    rounded = attrs.evolve(item, at=item.at // unit * unit)
                    smaller = _replaced(plan, field, number, rounded)
                    accepted = self._accept(plan, smaller)
                    if smaller == plan or accepted is not plan:
                        plan = accepted
                        break
        return plan


def _complements(items: Sequence[_Item], pieces: int) -> Iterator[Sequence[_Item]]:
    """Yield `items` without one of this many parts; without the last part first, because late items
    matter least."""
    size = -(-len(items) // pieces)
    for start in reversed(range(0, len(items), size)):
        yield [*items[:start], *items[start + size :]]


def _shorter(chaos: Micros) -> Iterator[Micros]:
    for divisor in (16, 8, 4, 2):
        if chaos // divisor >= _ROUND[0]:
            yield chaos // divisor
    yield chaos * 3 // 4 if chaos > _ROUND[0] else chaos


def _within(fault: Fault, chaos: Micros) -> Fault:
    return attrs.evolve(fault, hold=0) if fault.at + fault.hold >= chaos else fault


def _without_last_node(plan: Plan) -> Plan:
    last = plan.nodes
    faults = (_without(fault, last) for fault in plan.faults)
    return attrs.evolve(
        plan,
        nodes=last - 1,
        clocks=plan.clocks[: last - 1],
        adds=tuple(_fewer_copies(add, last - 1) for add in plan.adds if add.node != last),
        consumers=tuple(each for each in plan.consumers if each.node != last),
        faults=tuple(fault for fault in faults if fault is not None),
    )


def _fewer_copies(add: Add, nodes: int) -> Add:
    return attrs.evolve(
        add,
        replicate=None if add.replicate is None else min(add.replicate, nodes),
        sync=None if add.sync is None else min(add.sync, nodes),
    )


def _without(fault: Fault, node: int) -> Fault | None:
    """Return the fault without this node; None if no node is left."""
    nodes = tuple(each for each in fault.nodes if each != node)
    links = tuple(link for link in fault.links if node not in link)
    groups = tuple(group for each in fault.groups if (group := tuple(n for n in each if n != node)))
    is_gone = (
        (fault.nodes and not nodes)
        or (fault.links and not links)
        or (len(fault.groups) > 1 and len(groups) < 2)
    )
    return None if is_gone else attrs.evolve(fault, nodes=nodes, links=links, groups=groups)


def _no_option(add: Add) -> Iterator[Add]:
    yield attrs.evolve(
        add, maxlen=None, delay_s=None, ttl_s=None, size=0, body=add.body.rstrip(".")
    )
    yield attrs.evolve(add, unique=None, keep_s=None, if_exists=None, again=0)
    yield attrs.evolve(add, keep_s=None, if_exists=None)
    yield attrs.evolve(add, group=None)
    for option in CARRIED:
        if option.is_number and not option.needs:
            both = [each for each in CARRIED if option.word in (each.word, each.needs)]
            nothing: dict[str, Any] = {each.planned: None for each in both}
            yield attrs.evolve(add, **nothing)
    yield attrs.evolve(add, again=0)
    yield attrs.evolve(add, maxlen=None)
    yield attrs.evolve(add, sync=None)
    yield attrs.evolve(add, delay_s=None)
    yield attrs.evolve(add, ttl_s=None)


def _one_way(consumer: Consumer) -> Iterator[Consumer]:
    if len(consumer.mix) > 1:
        for way in (("ackjob", 1.0), *consumer.mix):
            yield attrs.evolve(consumer, mix=((way[0], 1.0),))


def _one_job_at_a_time(consumer: Consumer) -> Iterator[Consumer]:
    yield attrs.evolve(consumer, count=1)


def _even_work(consumer: Consumer) -> Iterator[Consumer]:
    low = consumer.work[0]
    yield attrs.evolve(consumer, work=(low, low))


def _one_node_less(fault: Fault) -> Iterator[Fault]:
    for node in fault.nodes:
        if len(fault.nodes) > 1:
            yield attrs.evolve(fault, nodes=tuple(each for each in fault.nodes if each != node))


def _fewer_links(fault: Fault) -> Iterator[Fault]:
    if len(fault.links) > 1:
        middle = len(fault.links) // 2
        yield attrs.evolve(fault, links=fault.links[:middle])
        yield attrs.evolve(fault, links=fault.links[middle:])


def _rounder_hold(fault: Fault) -> Iterator[Fault]:
    for unit in _ROUND:
        if fault.hold >= unit:
            yield attrs.evolve(fault, hold=fault.hold // unit * unit)


_SIMPLER: Final[dict[str, tuple[Callable[[Any], Iterator[Any]], ...]]] = {
    "adds": (_no_option,),
    "consumers": (_one_way, _one_job_at_a_time, _even_work),
    "faults": (_one_node_less, _fewer_links, _rounder_hold),
}
"""By field of the plan: functions that yield simpler items; the first that still fails is
accepted."""


def _replaced(plan: Plan, field: str, number: int, item: Any) -> Plan:
    items = list(getattr(plan, field))
    items[number] = item
    change: dict[str, Any] = {field: tuple(items)}
    return attrs.evolve(plan, **change)
