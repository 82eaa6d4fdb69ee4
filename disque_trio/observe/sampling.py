"""Looks at a cluster again and again, and works out rates from two looks."""

from collections.abc import Collection, Mapping
from typing import Final

import anyio
import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.client import Client
from disque_trio.observe.cluster import node_name
from disque_trio.terminal.escapes import printable
from disque_trio.worker.operating.asking import at_each, given
from disque_trio.worker.operating.notes import RESERVED
from disque_trio.worker.operating.queues import Queues, QueueTotals

RATES: Final = ("jobs_added", "jobs_delivered", "jobs_acked", "total_commands_processed")
"""The totals of a node of which rates are shown. Original nodes have the last one alone."""
_TOLD_BY_OTHERS: Final = ("setack",)
"""An acknowledgement is counted at each holder, by this cause but at one."""


@attrs.frozen
class NodeView:
    """One node. Numbers that it does not tell are None."""

    node: str
    name: str
    jobs: int | None
    memory: int | None
    maxmemory: int | None
    clients: int | None
    blocked: int | None
    under_replicated: int | None
    totals: dict[str, int]
    """Those of `RATES` that it tells."""
    rates: dict[str, float]
    """A second; empty at the first look."""


@attrs.frozen
class QueueView:
    """One queue of the cluster."""

    totals: QueueTotals
    in_rate: float | None
    """Jobs that entered it, a second. Those that move between nodes count twice. None at the first
    look."""
    out_rate: float | None


@attrs.frozen
class View:
    """The cluster at one moment."""

    seconds: float
    """Since the look before; 0 at the first one."""
    nodes: list[NodeView]
    queues: list[QueueView]
    unreached: dict[str, str]
    """Nodes that have not answered, and why."""


@attrs.define
class Sampler:
    """Remembers the last look."""

    client: Client
    _at: float | None = None
    _totals: dict[str, dict[str, int]] = attrs.Factory(dict)
    _queues: dict[str, QueueTotals] = attrs.Factory(dict)

    async def look(self) -> View:
        """Ask all nodes. Raises `NoNodeError` if none answers."""
        infos = await at_each(self.client, self._info)
        queues = await Queues(self.client).all()
        now = anyio.current_time()
        seconds = now - self._at if self._at is not None else 0.0
        view = View(
            seconds,
            [
                view_of(node, info, self._totals.get(node, {}), seconds)
                for node, info in infos.items
            ],
            [self._queue(each, seconds) for each in queues.items if not _is_hidden(each)],
            infos.unreached | queues.unreached,
        )
        self._at = now
        self._totals = {each.node: each.totals for each in view.nodes}
        self._queues = {each.name: each for each in queues.items}
        return view

    async def _info(self, node: Address) -> list[tuple[str, dict[str, str]]]:
        (info,) = await self.client.ask(node, [commands.info()])
        return [(str(node), given(info))]

    def _queue(self, queue: QueueTotals, seconds: float) -> QueueView:
        before = self._queues.get(queue.name)
        if before is None or not seconds:
            return QueueView(queue, None, None)
        return QueueView(
            queue,
            _rate(before.jobs_in, queue.jobs_in, seconds),
            _rate(before.jobs_out, queue.jobs_out, seconds),
        )


def _is_hidden(queue: QueueTotals) -> bool:
    """Is it the library's own, as in `queues list` and in the console?"""
    return queue.name.startswith(RESERVED)


def view_of(
    node: str, info: Mapping[str, str], before: Mapping[str, int], seconds: float
) -> NodeView:
    """A node by its INFO. `before` are the totals of so many `seconds` ago; 0 is of no look."""
    counts = {name: counted_total(info, name, _TOLD_BY_OTHERS) for name in RATES}
    totals = {name: count for name, count in counts.items() if count is not None}
    return NodeView(
        node,
        node_name(info.get("node_id", ""), printable(info.get("node_name", "")), node),
        _number(info, "registered_jobs"),
        _number(info, "used_memory"),
        _number(info, "maxmemory"),
        _number(info, "connected_clients"),
        _number(info, "blocked_clients"),
        _number(info, "under_replicated_jobs"),
        totals,
        {
            name: _rate(before[name], count, seconds)
            for name, count in totals.items()
            if name in before and seconds
        },
    )


def _rate(before: int, after: int, seconds: float) -> float:
    """None is negative: a node that was started again counts from 0."""
    return max(after - before, 0) / seconds


def _number(info: Mapping[str, str], field: str) -> int | None:
    value = info.get(field, "")
    return int(value) if value.isdecimal() else None


def counted_total(info: Mapping[str, str], field: str, without: Collection[str] = ()) -> int | None:
    """A number, or the sum of `ackjob=3,setack=1` `without` some of these."""
    value = info.get(field)
    if value is None or value.isdecimal():
        return _number(info, field)
    parts = [part.rpartition("=") for part in value.split(",")]
    return sum(int(count) for name, _, count in parts if count.isdecimal() and name not in without)
