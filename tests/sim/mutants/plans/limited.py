"""Plans of queues with limits."""

from collections.abc import Sequence
from typing import Any

import attrs

from disque_trio.sim.scenarios.plan import Add, Consumer, Expect, Fault, Limit, Micros, Plan
from tests.sim.mutants.plans.conditions import SECOND, TROUBLED, jobs, plan, workers

_EVERYWHERE = (1, 2, 3)


def _limited(name: str, seed: int, seconds: int, limit: Limit, **rest: Any) -> Plan:
    """Three nodes with more jobs and workers than the limits allow."""
    base: dict[str, Any] = {"nodes": 3, "adds": _jobs(seconds), "limits": (limit,)}
    return plan(name, seed, seconds, **(base | rest))


def _jobs(seconds: int) -> tuple[Add, ...]:
    """Ten a second."""
    return jobs(10 * seconds, every=SECOND // 10, nodes=_EVERYWHERE, replicate=2, retry_s=8)


def _workers(nodes: tuple[int, ...], *work: Micros, start: Micros = 0) -> tuple[Consumer, ...]:
    """Three at each node."""
    return tuple(
        attrs.evolve(each, name=f"{each.name}-{number}")
        for number in range(3)
        for each in workers(nodes, mix=(("ackjob", 1.0),), work=work, start=start)
    )


def rated(seed: int) -> Plan:
    """At most five deliveries a second, and four at once after a pause."""
    limit = Limit(at=0, node=1, queue="q", rate=5, burst=4)
    return _limited(
        "rated", seed, 14, limit, consumers=_workers(_EVERYWHERE, SECOND // 200, SECOND // 20)
    )


def rested(seed: int) -> Plan:
    """The same queue, that is empty for a while and then has many jobs."""
    busy = rated(seed)
    adds = [each for each in busy.adds if each.at < SECOND]
    adds += [attrs.evolve(each, at=11 * SECOND) for each in busy.adds[len(adds) :]]
    return attrs.evolve(busy, scenario="rested", adds=tuple(adds))


def leased(seed: int) -> Plan:
    """At most three leases."""
    limit = Limit(at=0, node=1, queue="q", concurrency=3)
    return _limited("leased", seed, 14, limit, consumers=_workers(_EVERYWHERE, SECOND // 3, SECOND))


def _of_groups(base: Plan, scenario: str, **limits: Any) -> Plan:
    """The same with jobs of two groups, which have limits, and some without."""
    limit = Limit(at=0, node=1, queue="q", **limits)
    return attrs.evolve(base, scenario=scenario, adds=_with_groups(base.adds), limits=(limit,))


def _with_groups(adds: Sequence[Add]) -> tuple[Add, ...]:
    groups = "x", "y", "x", None
    return tuple(
        attrs.evolve(each, group=groups[at // 3 % len(groups)]) for at, each in enumerate(adds)
    )


def rated_by_groups(seed: int) -> Plan:
    """At most two deliveries of each group a second, and three at once after a pause."""
    return _of_groups(rated(seed), "rated-by-groups", group_rate=2, group_burst=3)


def leased_by_groups(seed: int) -> Plan:
    """At most two leases of each group."""
    return _of_groups(leased(seed), "leased-by-groups", group_concurrency=2)


def keeper_parted(seed: int) -> Plan:
    """A node that has all leases, and maybe is the keeper, is cut off from nodes with workers."""
    alone = 1 + seed % 3
    others = tuple(each for each in _EVERYWHERE if each != alone)
    work = 3 * SECOND, 6 * SECOND
    return _limited(
        "keeper-parted",
        seed,
        20,
        Limit(at=0, node=1, queue="q", concurrency=3),
        consumers=_workers((alone,), *work) + _workers(others, *work, start=10 * SECOND),
        faults=(
            Fault(kind="partition", at=9 * SECOND, hold=8 * SECOND, groups=((alone,), others)),
        ),
        expect=Expect(duplicates=TROUBLED),
    )


def _loose(name: str, seed: int, rest: dict[str, Any], **limits: Any) -> Plan:
    """A node is cut off for long, with workers on both sides. Each side may use the whole."""
    alone = 1 + seed % 3
    others = tuple(each for each in _EVERYWHERE if each != alone)
    groups = (alone,), others
    return _limited(
        name,
        seed,
        50,
        Limit(at=0, node=1, queue="q", is_loose=True, **limits),
        faults=(Fault(kind="partition", at=9 * SECOND, hold=40 * SECOND, groups=groups),),
        expect=Expect(duplicates=TROUBLED),
        **rest,
    )


def loosely_rated(seed: int) -> Plan:
    """At most five deliveries a second on each side."""
    adds = jobs(750, every=SECOND // 15, nodes=_EVERYWHERE, replicate=1, retry_s=8)
    consumers = _workers(_EVERYWHERE, SECOND // 200, SECOND // 20)
    return _loose("loosely-rated", seed, {"adds": adds, "consumers": consumers}, rate=5)


def loosely_leased(seed: int) -> Plan:
    """At most two leases on each side, of which one is the part of a side."""
    adds = jobs(54, every=SECOND * 9 // 10, nodes=_EVERYWHERE, replicate=1, retry_s=8)
    consumers = _workers(_EVERYWHERE, 4 * SECOND, 5 * SECOND)
    return _loose("loosely-leased", seed, {"adds": adds, "consumers": consumers}, concurrency=2)
