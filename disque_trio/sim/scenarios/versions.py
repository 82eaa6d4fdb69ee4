"""The versions of nodes in a plan: the original, earlier formats, and the current one.

The current version plays an earlier one with the capabilities of that version: the node announces
no others, and does not use those of other nodes, so all nodes treat each other as in a rolling
upgrade. With the capabilities of the original it also accepts no jobs with extensions.
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
"""The most lives with versions of their own."""


def draw(share: Range, seed: int, nodes: int, *, has_journal: bool) -> tuple[tuple[str, ...], ...]:
    """Return the versions of each node's lives in this seed; empty if the seed has no earlier ones.

    The original cannot read this journal format, so a seed with journals does not use it.
    """
    rng = stream(seed, "versions")
    if rng.random() >= share.draw(rng):
        return ()
    names = [name for name in VERSIONS if not (has_journal and name == ORIGINAL)]
    some = rng.sample(names, 2)
    return tuple(_lives(some, rng) for _ in range(nodes))


def _lives(names: list[str], rng: random.Random) -> tuple[str, ...]:
    return tuple(rng.choice(names) for _ in range(rng.randint(1, _LIVES)))
