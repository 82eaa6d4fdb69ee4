"""Queues that operators have paused (`PAUSE`), by node.

The row of an order is written when the operator sends it. The node may receive it a little later; a
stopped process receives it when it resumes. If a node refuses the order, a row with the code of the
error ends the pause again.
"""

from typing import Final

import attrs

from disque_trio.sim.checkers.obligations import MILLI, SECOND
from disque_trio.sim.checkers.records import NEVER
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.tracing.rows import Row

ORDER_DELAY: Final[Micros] = 10 * MILLI
"""The longest transit of an operator's order."""


@attrs.define(eq=False)
class QueuePauses:
    """The queues that are paused or were paused, by node."""

    begun: dict[tuple[str, str], tuple[str, Micros]] = attrs.Factory(dict)
    """By node and queue that is paused: the mode, and since when."""
    ended: dict[tuple[str, str], Micros] = attrs.Factory(dict)
    """By node and queue: when the pause last ended."""

    def on_order(self, row: Row, *, is_calm: bool) -> None:
        """A queue is paused or resumed. If a broadcast may not have arrived, the pause is possible
        but not certain."""
        queue, _, mode = row.detail.rpartition(" ")
        if row.cause == "bcast" and not (is_calm or self._is_broadcast_at(row.time)):
            mode = ""
        if mode == "none":
            self.begun.pop((row.node, queue), None)
            self.ended[row.node, queue] = row.time
        else:
            self.begun[row.node, queue] = (mode, row.time)

    def _is_broadcast_at(self, now: Micros) -> bool:
        """Do all pauses come from this broadcast, which was sent in calm?"""
        return bool(self.begun) and all(each == ("all", now) for each in self.begun.values())

    def on_resume(self, node: str, stopped: Micros, now: Micros) -> None:
        """A stopped process resumes: it receives the orders that were sent meanwhile."""
        for (host, queue), (mode, since) in self.begun.items():
            if host == node and since >= stopped:
                self.begun[host, queue] = (mode, now)
        for (host, queue), since in self.ended.items():
            if host == node and since >= stopped:
                self.ended[host, queue] = now

    def is_certain(self, node: str, queue: str, way: str, now: Micros) -> bool:
        """Is the queue certainly paused in this direction, `in` or `out`, unless the node has
        restarted?"""
        mode, since = self.begun.get((node, queue), ("", now))
        return mode in {way, "all"} and now - since > SECOND

    def is_possible(self, node: str, queue: str, since: Micros = NEVER) -> bool:
        """May the queue be paused now, or have been paused at any time since `since`?"""
        ended = self.ended.get((node, queue))
        return (node, queue) in self.begun or (ended is not None and ended + ORDER_DELAY >= since)
