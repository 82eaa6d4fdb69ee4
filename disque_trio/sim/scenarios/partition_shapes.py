"""The shapes of partitions: which links a fault affects (Jepsen's shapes, and one-way ones).

Links are directed pairs of node numbers. Each shape is drawn from the given stream.
"""

import random
from collections.abc import Callable, Sequence
from typing import Final

Link = tuple[int, int]
Group = tuple[int, ...]


def between(ours: Sequence[int], theirs: Sequence[int]) -> tuple[Link, ...]:
    """Return every link from one side to the other, in this direction only."""
    return tuple((source, target) for source in ours for target in theirs if source != target)


def both_ways(links: Sequence[Link]) -> tuple[Link, ...]:
    """Return the links and their reverse links, in order."""
    return tuple(sorted({*links, *((target, source) for source, target in links)}))


def apart(groups: Sequence[Group]) -> tuple[Link, ...]:
    """Return every link from one group to another."""
    return tuple(
        sorted(
            link
            for ours in groups
            for theirs in groups
            if ours is not theirs
            for link in between(ours, theirs)
        )
    )


def halves(nodes: int, _victims: int, rng: random.Random) -> tuple[Group, ...]:
    """Two sides; one has at most half of the nodes."""
    order = shuffled(nodes, rng)
    middle = max(1, nodes // 2)
    return _groups(order[:middle], order[middle:])


def isolate(nodes: int, victims: int, rng: random.Random) -> tuple[Group, ...]:
    """Each victim alone, the others together."""
    order = shuffled(nodes, rng)
    return _groups(*([each] for each in order[:victims]), order[victims:])


def scattered(nodes: int, _victims: int, rng: random.Random) -> tuple[Group, ...]:
    """Two to four groups of any sizes."""
    sides: list[list[int]] = [[] for _ in range(rng.randint(2, 4))]
    for node in range(1, nodes + 1):
        rng.choice(sides).append(node)
    return _groups(*sides)


def all_alone(nodes: int, _victims: int, _rng: random.Random) -> tuple[Group, ...]:
    """Each node is isolated."""
    return _groups(*([node] for node in range(1, nodes + 1)))


def ring(nodes: int, _victims: int, rng: random.Random) -> tuple[Link, ...]:
    """Every node is linked to a majority, its nearest neighbours on a circle, and no two nodes to
    the same majority."""
    order = shuffled(nodes, rng)
    reach = max(1, (nodes // 2 + 1) // 2)
    return both_ways(
        [
            (order[first], order[second])
            for first in range(nodes)
            for second in range(first + 1, nodes)
            if min(second - first, nodes - second + first) > reach
        ]
    )


def bridge(nodes: int, _victims: int, rng: random.Random) -> tuple[Link, ...]:
    """Two halves that share one node."""
    order = shuffled(nodes, rng)
    middle = nodes // 2
    return both_ways(between(order[:middle], order[middle + 1 :]))


def one_way(nodes: int, victims: int, rng: random.Random) -> tuple[Link, ...]:
    """The victims receive nothing from the other nodes, or the others nothing from them."""
    order = shuffled(nodes, rng)
    ours, theirs = order[:victims], order[victims:]
    return between(ours, theirs) if rng.random() < 0.5 else between(theirs, ours)


def pair(nodes: int, _victims: int, rng: random.Random) -> tuple[Link, ...]:
    """One link, in one direction."""
    if nodes < 2:
        return ()
    source, target = shuffled(nodes, rng)[:2]
    return ((source, target),)


def shuffled(nodes: int, rng: random.Random) -> list[int]:
    """Return the nodes in a random order."""
    order = list(range(1, nodes + 1))
    rng.shuffle(order)
    return order


def _groups(*sides: Sequence[int]) -> tuple[Group, ...]:
    return tuple(sorted(tuple(sorted(side)) for side in sides if side))


GROUPS: Final[dict[str, Callable[[int, int, random.Random], tuple[Group, ...]]]] = {
    "halves": halves,
    "isolate": isolate,
    "random": scattered,
    "all": all_alone,
}
"""Shapes of groups of nodes, without links between groups."""

LINKS: Final[dict[str, Callable[[int, int, random.Random], tuple[Link, ...]]]] = {
    "one-way": one_way,
    "ring": ring,
    "bridge": bridge,
    "pair": pair,
}
"""Shapes that are sets of links."""
