"""Looks after the queues of a cluster (`Admin.queues`)."""

from typing import ClassVar, Final

import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.client import Client
from disque_trio.client.errors import DisqueError
from disque_trio.client.records import QueueInfo, QueueLimits, QueueStats
from disque_trio.worker.operating.asking import Found, at_each, unwrap
from disque_trio.worker.operating.plans import Operable

_FEATURE: Final = "queue-limits"


@attrs.frozen(kw_only=True)
class QueueTotals:
    """A queue of the whole cluster."""

    name: str
    length: int
    """How many jobs are queued."""
    delayed: int | None
    leased: int | None
    """How many jobs workers have."""
    dead: int | None
    """These three are None if only original nodes know the queue."""
    restored: int | None
    """Copies of jobs that wait for the end of their RETRY after a restart of a node. Each node
    counts its own."""
    restored_due_s: float | None
    """Until the first of those is queued; None without any."""
    delayed_due_s: float | None
    """Until the first of the delayed ones is queued; None without any, and if no node tells."""
    next_age_s: float
    """Of the job that waits longest."""
    blocked: int
    """Clients that wait for its jobs."""
    jobs_in: int
    jobs_out: int
    paused: dict[str, str]
    """By node that has paused it: `in`, `out` or `all`."""
    limits: QueueLimits | None = None
    """Those of QUEUE LIMIT; None without any."""
    is_limited: bool = False
    """Do clients wait, at a node, only because of the limits?"""


@attrs.frozen(eq=False)
class Queues(Operable):
    """Looks after the queues of a cluster. Each method raises `NoNodeError` if no node answers."""

    FAMILY: ClassVar = "queues"
    client: Client

    async def all(self) -> Found[QueueTotals]:
        """The queues that nodes know, by name. Those that have no job and no limits are forgotten
        after five minutes."""
        found = await at_each(self.client, self._of_node)
        by_name: dict[str, list[tuple[str, QueueStats]]] = {}
        for node, stats in found.items:
            by_name.setdefault(stats.name, []).append((node, stats))
        totals = [_totals(name, of_nodes) for name, of_nodes in sorted(by_name.items())]
        return Found(totals, found.unreached)

    async def find(self, name: str) -> Found[QueueTotals]:
        """The queue of this name; no item if no node knows it."""

        async def ask(node: Address) -> list[tuple[str, QueueStats]]:
            stats = unwrap(*await self.client.ask(node, [commands.qstat(name)]))
            return [] if stats is None else [(str(node), stats)]

        found = await at_each(self.client, ask)
        return Found([_totals(name, found.items)] if found.items else [], found.unreached)

    async def limits(self, name: str) -> Found[tuple[Address, QueueInfo | None]]:
        """What each node tells of the limits of a queue; None from one that does not know
        limits."""

        async def ask(node: Address) -> list[tuple[Address, QueueInfo | None]]:
            [reply] = await self.client.ask(node, [commands.queue_info(name)])
            knows = _FEATURE in self.client.nodes.features(node)
            return [(node, None if isinstance(reply, DisqueError) and not knows else unwrap(reply))]

        return await at_each(self.client, ask)

    async def _of_node(self, node: Address) -> list[tuple[str, QueueStats]]:
        names: dict[str, None] = {}
        cursor = 0
        while True:
            page = unwrap(*await self.client.ask(node, [commands.qscan(cursor, has_unqueued=True)]))
            names |= dict.fromkeys(page.items)
            cursor = page.cursor
            if not cursor:
                break
        replies = await self.client.ask(node, [commands.qstat(name) for name in names])
        return [(str(node), each) for each in replies if isinstance(each, QueueStats)]


def _totals(name: str, of_nodes: list[tuple[str, QueueStats]]) -> QueueTotals:
    each = [stats for _, stats in of_nodes]
    return QueueTotals(
        name=name,
        length=sum(one.length for one in each),
        delayed=_sum([one.delayed for one in each]),
        leased=_sum([one.leased for one in each]),
        dead=max((one.dead for one in each if one.dead is not None), default=None),
        restored=_sum([one.restored for one in each]),
        restored_due_s=_first([one.restored_due for one in each]),
        delayed_due_s=_first([one.delayed_due for one in each]),
        next_age_s=max(one.next_age or 0.0 for one in each),
        blocked=sum(one.blocked for one in each),
        jobs_in=sum(one.jobs_in for one in each),
        jobs_out=sum(one.jobs_out for one in each),
        paused={node: one.pause for node, one in of_nodes if one.pause != "none"},
        limits=next((one.limits for one in each if one.limits), None),
        is_limited=any(one.is_limited for one in each),
    )


def _sum(figures: list[int | None]) -> int | None:
    known = [each for each in figures if each is not None]
    return sum(known) if known else None


def _first(due: list[float | None]) -> float | None:
    return min((each for each in due if each is not None), default=None)
