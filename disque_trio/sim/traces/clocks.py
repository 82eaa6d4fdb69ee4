"""Corrects the clocks of live nodes, so that their rows can be merged.

The offset of each clock was measured with an error of half a round trip. Messages add constraints:
none arrives before it was sent. All of these bound the differences between clocks, and the closest
bounds are shortest paths (difference constraints; Floyd and Warshall).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from disque_trio.tracing.rows import Row

_BY_NONE: Final = ""
"""Stands for the clock that measured the others."""
_ENDLESS: Final = 1 << 62
Bounds = dict[tuple[str, str], int]
"""For two nodes: how far the clock of the second may be ahead of the first at most."""


@attrs.frozen
class Clock:
    """How far the clock of a node is ahead, plus or minus `error`. Microseconds."""

    ahead: int
    error: int


def narrowed(rows: Mapping[str, Sequence[Row]], measured: Mapping[str, Clock]) -> dict[str, Clock]:
    """Return clocks with which no message of these rows arrives before it was sent. `rows` and
    `measured` are by node, named as in the rows.

    If the two contradict each other, for example because a clock was set meanwhile, the measured
    clocks are returned.
    """
    nodes = sorted(measured)
    bounds = _measured(measured)
    bounds.update(_of_messages(rows, measured))
    closest = _closest([_BY_NONE, *nodes], bounds)
    if any(closest[node, node] < 0 for node in (_BY_NONE, *nodes)):
        return dict(measured)
    return _chosen(nodes, closest, measured)


def shifted(rows: Sequence[Row], clock: Clock) -> list[Row]:
    """Return the rows of one node with corrected times, in the same order."""
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


def _of_messages(rows: Mapping[str, Sequence[Row]], measured: Mapping[str, Clock]) -> Bounds:
    """Return the bounds from messages: none arrives before it was sent."""
    sent, received = _times(rows, "send"), _times(rows, "recv")
    bounds: Bounds = {}
    for message, times in sent.items():
        sender, receiver = message[:2]
        if sender in measured and receiver in measured:
            least = _least(measured[sender], measured[receiver])
            for begin, end in _pairs(times, received[message], least):
                # A message takes at least a microsecond.
                most = min(bounds.get((sender, receiver), _ENDLESS), end - begin - 1)
                bounds[sender, receiver] = most
    return bounds


def _times(rows: Mapping[str, Sequence[Row]], kind: str) -> dict[tuple[str, ...], list[int]]:
    """Return the times of equal messages, by sender, receiver and content. Nothing else
    distinguishes them: rows of live nodes have no numbers of messages."""
    found: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for of_node in rows.values():
        for row in of_node:
            if row.kind == kind:
                ends = (row.node, row.peer) if kind == "send" else (row.peer, row.node)
                found[(*ends, row.job, row.cause, row.detail)].append(row.time)
    return found


def _least(sender: Clock, receiver: Clock) -> int:
    """Return how far the receiver's clock is ahead at least."""
    return receiver.ahead - sender.ahead - receiver.error - sender.error


def _pairs(sent: Sequence[int], received: Sequence[int], least: int) -> list[tuple[int, int]]:
    """Return, for each received message, a time at or before its sending, and the time of its
    receipt. Equal messages arrive in the order in which they were sent.

    A lost message makes each later one seem to have taken longer, which does no harm. One that was
    received before any equal one was sent belongs to a missing row. If there are more such
    messages, they cannot be identified, so none counts.
    """
    received = [time for time in received if time - sent[0] > least]
    return list(zip(sent, received, strict=False)) if len(received) <= len(sent) else []


def _closest(nodes: Sequence[str], bounds: Bounds) -> Bounds:
    """Return the bounds, and those that follow from them."""
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
    """Return the measured clocks, each moved as little as possible to fit the clocks chosen so
    far."""
    ahead = {_BY_NONE: 0}
    clocks = {}
    for node in nodes:
        most = min(at + closest[other, node] for other, at in ahead.items())
        least = max(at - closest[node, other] for other, at in ahead.items())
        ahead[node] = min(max(measured[node].ahead, least), most)
        width = closest[_BY_NONE, node] + closest[node, _BY_NONE]
        clocks[node] = Clock(ahead[node], (width + 1) // 2)
    return clocks
