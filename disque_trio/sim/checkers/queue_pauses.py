"""Queues that operators have paused (`PAUSE`), node by node.

The row of an order is written when the operator sends it. The node may get it a little later, and
one whose process is stopped gets it when the process goes on. If a node refuses it, a row with the
code of the error ends the pause again.
"""

from typing import Final

import attrs

from disque_trio.sim.checkers.obligations import MILLI, SECOND
from disque_trio.sim.checkers.records import NEVER
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.tracing.rows import Row

ORDER_DELAY: Final[Micros] = 10 * MILLI
"""For so long an operator's order may be under way."""


@attrs.define(eq=False)
class QueuePauses:
    """Which queues of which nodes are paused, or were."""

    begun: dict[tuple[str, str], tuple[str, Micros]] = attrs.Factory(dict)
    """Queues that are paused, by node and queue: how, and since when."""
    ended: dict[tuple[str, str], Micros] = attrs.Factory(dict)
    """By node and queue: when the pause last ended."""

    def on_order(self, row: Row, *, is_calm: bool) -> None:
        """A queue is paused or resumed. It may be paused only if a broadcast may not have come."""
        queue, _, mode = row.detail.rpartition(" ")
        if row.cause == "bcast" and not (is_calm or self._is_broadcast_at(row.time)):
            mode = ""
        if mode == "none":
            self.begun.pop((row.node, queue), None)
            self.ended[row.node, queue] = row.time
        else:
            self.begun[row.node, queue] = (mode, row.time)

    def _is_broadcast_at(self, now: Micros) -> bool:
        """Are the pauses that there are of this broadcast, which found all calm?"""
        return bool(self.begun) and all(each == ("all", now) for each in self.begun.values())

    def on_resume(self, node: str, stopped: Micros, now: Micros) -> None:
        """A process that was stopped goes on: it gets the orders that were sent meanwhile."""
        for (host, queue), (mode, since) in self.begun.items():
            if host == node and since >= stopped:
                self.begun[host, queue] = (mode, now)
        for (host, queue), since in self.ended.items():
            if host == node and since >= stopped:
                self.ended[host, queue] = now

    def is_certain(self, node: str, queue: str, way: str, now: Micros) -> bool:
        """Is it certainly paused in that way, `in` or `out`, if the node has not restarted?"""
        mode, since = self.begun.get((node, queue), ("", now))
        return mode in {way, "all"} and now - since > SECOND

    def is_possible(self, node: str, queue: str, since: Micros = NEVER) -> bool:
        """May it be paused, or have been at any time since then?"""
        ended = self.ended.get((node, queue))
        return (node, queue) in self.begun or (ended is not None and ended + ORDER_DELAY >= since)
