"""Expands the faults of a scenario to those of a plan: each occurrence has its time and nodes."""

import random
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from disque_trio.sim.scenarios import fault_kinds, partition_shapes
from disque_trio.sim.scenarios.fault_spec import FaultSpec
from disque_trio.sim.scenarios.plan import Fault, Micros

_MOST_OCCURRENCES: Final = 100_000
"""The most occurrences of one fault, so that a wrong unit does not fill the memory."""


def occurrences(
    specs: Sequence[FaultSpec],
    nodes: int,
    zones: Sequence[str],
    chaos: Micros,
    rng: random.Random,
) -> tuple[Fault, ...]:
    """Return the faults of one run, ordered by time. `zones` has the zone of each node, if any."""
    found: list[Fault] = []
    for spec in specs:
        if spec.p.low < 1 and rng.random() >= spec.p.draw(rng):
            continue
        found += _of_spec(_Draw(spec, nodes, zones, chaos, rng))
    return tuple(sorted(found, key=lambda fault: fault.at))


@attrs.frozen
class _Draw:
    """One fault of the scenario, and the values from which it is drawn."""

    spec: FaultSpec
    nodes: int
    zones: Sequence[str]
    chaos: Micros
    rng: random.Random

    def hold(self, at: Micros) -> Micros:
        """Return the duration; 0 is until the end of the chaos."""
        hold = 0 if self.spec.hold is None else self.spec.hold.draw_int(self.rng)
        return 0 if at + hold >= self.chaos else hold

    def victims(self) -> int:
        return min(self.spec.victims.draw_int(self.rng), self.nodes)

    def whom(self) -> tuple[int, ...]:
        """Return the affected nodes."""
        if isinstance(self.spec.nodes, tuple):
            return self.spec.nodes
        if self.spec.nodes == "all":
            return tuple(range(1, self.nodes + 1))
        if self.spec.nodes == "zone" and self.zones:
            hit = self.rng.choice(self.zones)
            return tuple(number for number, zone in enumerate(self.zones, 1) if zone == hit)
        return tuple(sorted(partition_shapes.shuffled(self.nodes, self.rng)[: self.victims()]))

    def one_of(self, options: tuple[str, ...] | None, default: str) -> str:
        if options is None:
            return default
        return options[0] if len(options) == 1 else self.rng.choice(options)

    def amount(self) -> int:
        """Return milliseconds, or parts per million."""
        if self.spec.amount is None:
            return 0
        unit, span = self.spec.amount
        if unit == "share":
            return round(span.draw(self.rng) * 1_000_000)
        return span.draw_int(self.rng)


def _of_spec(draw: _Draw) -> Iterator[Fault]:
    spec = draw.spec
    if spec.when is not None:
        fault = next(_occurrence(draw, 0 if spec.at is None else spec.at.draw_int(draw.rng)), None)
        if fault is not None:
            yield attrs.evolve(
                fault,
                hold=0 if spec.hold is None else spec.hold.draw_int(draw.rng),
                nodes=() if spec.target else fault.nodes,
                when=spec.when.event,
                nth=spec.when.nth.draw_int(draw.rng),
                target=spec.target or "",
                count=spec.count or 1,
            )
        return
    for at in _times(draw):
        yield from _occurrence(draw, at)


def _times(draw: _Draw) -> Iterator[Micros]:
    spec = draw.spec
    first = spec.at or spec.every
    assert first is not None, spec
    at = first.draw_int(draw.rng)
    for _ in range(spec.count or _MOST_OCCURRENCES):
        if at >= draw.chaos:
            return
        yield at
        if spec.every is None:
            return
        at += max(1, spec.every.draw_int(draw.rng))


def _occurrence(draw: _Draw, at: Micros) -> Iterator[Fault]:
    kind = draw.spec.kind
    if kind == "swizzle":
        yield from _swizzle(draw, at)
    elif kind == "partition":
        yield from _partition(draw, at)
    elif fault_kinds.BY_NAME[kind].is_of_links:
        yield from _on_links(draw, at)
    else:
        yield _on_nodes(draw, at)


def _on_nodes(draw: _Draw, at: Micros) -> Fault:
    mode = draw.one_of(draw.spec.mode, fault_kinds.BY_NAME[draw.spec.kind].default_mode)
    return Fault(
        kind=draw.spec.kind,
        at=at,
        hold=draw.hold(at),
        nodes=draw.whom(),
        mode=mode,
        amount=draw.amount(),
        queue=draw.spec.queue or "",
    )


def _partition(draw: _Draw, at: Micros) -> Iterator[Fault]:
    shape = draw.one_of(draw.spec.shape, "halves")
    if shape in partition_shapes.GROUPS:
        groups = partition_shapes.GROUPS[shape](draw.nodes, draw.victims(), draw.rng)
        if len(groups) > 1:
            yield Fault(kind="partition", at=at, hold=draw.hold(at), groups=groups)
        return
    links = partition_shapes.LINKS[shape](draw.nodes, draw.victims(), draw.rng)
    if links:
        yield Fault(kind="cut", at=at, hold=draw.hold(at), links=links)


def _links(draw: _Draw, default: str) -> tuple[partition_shapes.Link, ...]:
    shape = draw.one_of(draw.spec.shape, default)
    if shape in partition_shapes.GROUPS:
        return partition_shapes.apart(
            partition_shapes.GROUPS[shape](draw.nodes, draw.victims(), draw.rng)
        )
    return partition_shapes.LINKS[shape](draw.nodes, draw.victims(), draw.rng)


def _on_links(draw: _Draw, at: Micros) -> Iterator[Fault]:
    links = _links(draw, "isolate")
    if links:
        yield Fault(
            kind=draw.spec.kind,
            at=at,
            hold=draw.hold(at),
            links=links,
            mode=draw.spec.message or "",
            amount=draw.amount(),
        )


def _swizzle(draw: _Draw, at: Micros) -> Iterator[Fault]:
    """Yield clogs of half of the nodes one by one, released in another order (FoundationDB)."""
    victims = partition_shapes.shuffled(draw.nodes, draw.rng)[: max(1, draw.nodes // 2)]
    begins = {}
    for node in victims:
        begins[node] = at
        at += draw.spec.stagger.draw_int(draw.rng)
    end = at + draw.hold(at)
    for node in draw.rng.sample(victims, len(victims)):
        others = [each for each in range(1, draw.nodes + 1) if each != node]
        links = partition_shapes.both_ways(partition_shapes.between([node], others))
        begin = begins[node]
        if begin < draw.chaos and links:
            hold = end - begin if end < draw.chaos else 0
            yield Fault(kind="clog", at=begin, hold=hold, links=links)
        end += max(1, draw.spec.stagger.draw_int(draw.rng))
