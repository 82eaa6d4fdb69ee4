"""The versions of nodes in a plan: the original, earlier formats of ours, and this one.

A node of an earlier version is played by ours with the capabilities of that version: it announces
no others, and makes no use of those of others, so all nodes treat each other as in a cluster that
is upgraded node by node. With those of the original it takes no jobs with extensions either.
"""

import random
from typing import Final

from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios.ranges import Range
from disque_trio.statemachine.base import CAPABILITIES

NEWEST: Final = CAPABILITIES
ORIGINAL: Final = "original"
VERSIONS: Final = {ORIGINAL: 0, "0": 255, "1": 511, "2": 2047, "3": 4095, "4": NEWEST}
"""Capabilities by the number of the first format that has them (docs/versions.md)."""
_LIVES: Final = 3
"""So many may be of different versions."""


def draw(share: Range, seed: int, nodes: int, *, has_journal: bool) -> tuple[tuple[str, ...], ...]:
    """The versions of each node's lives in this seed; empty in one without earlier ones.

    The original reads no journal of ours, so it has none.
    """
    rng = stream(seed, "versions")
    if rng.random() >= share.draw(rng):
        return ()
    names = [name for name in VERSIONS if not (has_journal and name == ORIGINAL)]
    some = rng.sample(names, 2)
    return tuple(_lives(some, rng) for _ in range(nodes))


def _lives(names: list[str], rng: random.Random) -> tuple[str, ...]:
    return tuple(rng.choice(names) for _ in range(rng.randint(1, _LIVES)))
