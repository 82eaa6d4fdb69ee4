"""Sets the clocks of live nodes right, so that their rows can be merged.

How far each clock is ahead was measured, within an error: half of what a question took. Messages
say more: none arrives before it was sent. All of this bounds the differences between clocks, so the
closest bounds are shortest paths (difference constraints; Floyd and Warshall).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from disque_trio.tracing.rows import Row

_BY_NONE: Final = ""
"""Stands for the clock with which the others were measured."""
_ENDLESS: Final = 1 << 62
Bounds = dict[tuple[str, str], int]
"""For two nodes, by how much the clock of the second may be ahead of the first at most."""


@attrs.frozen
class Clock:
    """How far the clock of a node is ahead, give or take `error`. Microseconds."""

    ahead: int
    error: int


def narrowed(rows: Mapping[str, Sequence[Row]], measured: Mapping[str, Clock]) -> dict[str, Clock]:
    """The clocks, so that no message of these rows arrives before it was sent. `rows` and
    `measured` are by node, named as in the rows.

    If both cannot be true, as after a clock was set meanwhile, what was measured stays.
    """
    nodes = sorted(measured)
    bounds = _measured(measured)
    for pair, most in _of_messages(rows).items():
        if pair[0] in measured and pair[1] in measured:
            bounds[pair] = min(bounds.get(pair, _ENDLESS), most)
    closest = _closest([_BY_NONE, *nodes], bounds)
    if any(closest[node, node] < 0 for node in (_BY_NONE, *nodes)):
        return dict(measured)
    return _chosen(nodes, closest, measured)


def shifted(rows: Sequence[Row], clock: Clock) -> list[Row]:
    """The rows of one node by the right clock, in the same order."""
    found = []
    time = -_ENDLESS
    for row in rows:
        time = max(time, row.time - clock.ahead)
        found.append(attrs.evolve(row, time=time))
    return found


def _measured(measured: Mapping[str, Clock]) -> Bounds:
    bounds: Bounds = {}
    for node, clock in measured.items():
        bounds[_BY_NONE, node] = clock.ahead + clock.error
        bounds[node, _BY_NONE] = clock.error - clock.ahead
    return bounds


def _of_messages(rows: Mapping[str, Sequence[Row]]) -> Bounds:
    """The messages of one kind between two nodes arrive in the order in which they were sent."""
    sent: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    heard: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for of_node in rows.values():
        for row in of_node:
            if row.kind == "send":
                sent[row.node, row.peer, row.cause].append(row.time)
            elif row.kind == "recv":
                heard[row.peer, row.node, row.cause].append(row.time)
    bounds: Bounds = {}
    for (sender, receiver, cause), times in sent.items():
        for begin, end in zip(times, heard[sender, receiver, cause], strict=False):
            # A microsecond is the least that a message takes.
            most = min(bounds.get((sender, receiver), _ENDLESS), end - begin - 1)
            bounds[sender, receiver] = most
    return bounds


def _closest(nodes: Sequence[str], bounds: Bounds) -> Bounds:
    """The same bounds, and those that follow from them."""
    found = {(a, b): 0 if a == b else bounds.get((a, b), _ENDLESS) for a in nodes for b in nodes}
    for middle in nodes:
        for a in nodes:
            for b in nodes:
                over = found[a, middle] + found[middle, b]
                found[a, b] = min(found[a, b], over)
    return found


def _chosen(
    nodes: Sequence[str], closest: Bounds, measured: Mapping[str, Clock]
) -> dict[str, Clock]:
    """What was measured, or what is closest to it and fits the clocks chosen so far."""
    ahead = {_BY_NONE: 0}
    clocks = {}
    for node in nodes:
        most = min(at + closest[other, node] for other, at in ahead.items())
        least = max(at - closest[node, other] for other, at in ahead.items())
        ahead[node] = min(max(measured[node].ahead, least), most)
        width = closest[_BY_NONE, node] + closest[node, _BY_NONE]
        clocks[node] = Clock(ahead[node], (width + 1) // 2)
    return clocks
