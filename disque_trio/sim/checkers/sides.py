"""The sides of a cut, if there is no other fault."""

from itertools import combinations
from typing import Final

from disque_trio.sim.checkers.intervals import meets_any
from disque_trio.sim.checkers.world import World
from disque_trio.sim.scenarios.plan import Micros

Side = tuple[str, ...]
WHOLE: Final[Side] = ()
"""All nodes: there is no cut."""


def contains(side: Side, node: str) -> bool:
    """Is the node on this side?"""
    return side == WHOLE or node in side


def settled_at(world: World) -> Micros | None:
    """Return since when the cluster has been calm, or would have been except for a cut that has not
    changed since; None if there is any other fault."""
    hindered = world.down or world.paused or world.slow or world.queue_pauses.begun
    if hindered or not world.obligations.is_stream:
        return None
    if any(kind != "cut" for kind, _ in world.blocked):
        return None
    last = max([world.last_trouble, *(each.start for each in world.blocked.values())])
    return last + world.obligations.calm_after


def is_settled(world: World, since: Micros, until: Micros) -> bool:
    """Was the cluster calm from `since` until `until`, or cut in the same way all the time?"""
    settled = settled_at(world)
    before = since - world.obligations.calm_after
    return settled is not None and settled <= since and not meets_any(world.planned, before, until)


def side_of(world: World, node: str) -> Side | None:
    """Return the nodes on this node's side. Return None if the cut has no sides: some nodes can
    send to others in one direction only, or two that cannot reach each other both reach a third."""
    if not world.blocked:
        return WHOLE
    cut = dict.fromkeys(pair for kind, pair in world.blocked if kind == "cut")
    nodes = [each for each in world.nodes if world.is_up(each)]
    sides = {
        each: tuple(other for other in nodes if other == each or (each, other) not in cut)
        for each in nodes
    }
    if any(sides[each] != sides[other] for each in nodes for other in sides[each]):
        return None
    return sides.get(node)


def apart(world: World, now: Micros) -> int:
    """Return the size of the largest set of nodes of which no two can reach each other, or could
    recently."""
    pairs = [
        pair
        for pair in combinations(sorted(world.nodes), 2)
        if pair in world.link_troubles and world.is_cut(*pair, now, now)
    ]
    names = sorted({name for pair in pairs for name in pair})
    cut = frozenset(pairs)
    return next(
        (
            count
            for count in range(len(names), 1, -1)
            if any(cut.issuperset(combinations(each, 2)) for each in combinations(names, count))
        ),
        1,
    )
