"""Reads the state of the queues of a cluster (`Admin.queues`)."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final

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
    """The number of enqueued jobs."""
    delayed: int | None
    """The number of delayed jobs. After a fault several nodes may count the same job
    (`is_delayed_most`)."""
    leased: int | None
    """The number of jobs that are leased."""
    dead: int | None
    """The number of dead jobs. `delayed`, `leased` and `dead` are None if only original nodes have
    the queue."""
    restored: int | None
    """The number of jobs that wait for the end of their RETRY after a restart of a node
    (`restored_of`)."""
    restored_due_s: float | None
    """Seconds until the first of those is enqueued; None without any."""
    delayed_due_s: float | None
    """Seconds until the first delayed job is enqueued; None without any, or if no node reports
    it."""
    next_age_s: float
    """The waiting time of the job that waits longest, in seconds."""
    blocked: int
    """The number of clients that wait for its jobs."""
    jobs_in: int
    jobs_out: int
    paused: dict[str, str]
    """By each node that has paused it: `in`, `out` or `all`."""
    is_dead_least: bool = False
    """May more jobs be dead (`dead_of`)?"""
    is_restored_least: bool = False
    """May more jobs wait after a restart?"""
    is_delayed_most: bool = False
    """May fewer jobs be delayed?"""
    limits: QueueLimits | None = None
    """The limits of QUEUE LIMIT; None without any."""
    is_limited: bool = False
    """Do clients at some node wait only because of the limits?"""


@attrs.frozen(eq=False)
class Queues(Operable):
    """Manages the queues of a cluster. Each method raises `NoNodeError` if no node answers."""

    FAMILY: ClassVar = "queues"
    client: Client

    async def all(self) -> Found[QueueTotals]:
        """All queues on the nodes, by name. A node forgets a queue without jobs and limits after
        five minutes."""
        found = await at_each(self.client, self._of_node)
        by_name: dict[str, list[tuple[str, QueueStats]]] = {}
        for node, stats in found.items:
            by_name.setdefault(stats.name, []).append((node, stats))
        totals = [_totals(name, of_nodes) for name, of_nodes in sorted(by_name.items())]
        return Found(totals, found.unreached)

    async def find(self, name: str) -> Found[QueueTotals]:
        """The queue with this name; no item if no node has it."""

        async def ask(node: Address) -> list[tuple[str, QueueStats]]:
            stats = unwrap(*await self.client.ask(node, [commands.qstat(name)]))
            return [] if stats is None else [(str(node), stats)]

        found = await at_each(self.client, ask)
        return Found([_totals(name, found.items)] if found.items else [], found.unreached)

    async def limits(self, name: str) -> Found[tuple[Address, QueueInfo | None]]:
        """The limits of a queue as each node reports them; None for a node without support for
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


_COPIES: Final = 3
"""The usual number of replicas of a job."""


def dead_of(counts: Iterable[int | None]) -> tuple[int | None, bool]:
    """The number of dead jobs of a queue, from the counts of the nodes, and whether there may be
    more. Each holder counts a job, so the largest count is the number, unless different nodes hold
    different jobs. Equal counts of a few nodes are regarded as the same jobs."""
    known = [each for each in counts if each is not None]
    holding = [each for each in known if each]
    is_exact = len(holding) <= 1 or (len(holding) <= _COPIES and len(set(holding)) == 1)
    return max(known, default=None), not is_exact


def restored_of(nodes: Sequence[QueueStats | Any]) -> tuple[int | None, bool]:
    """The number of jobs of a queue that wait for the end of their RETRY after a restart, from the
    counts of the nodes, and whether there may be more. A node counts each replica that it has read,
    even if the job is enqueued, delayed or leased at another node."""
    there = [each.length + (each.leased or 0) + (each.delayed or 0) for each in nodes]
    counts = [
        (each.restored, sum(there) - own)
        for each, own in zip(nodes, there, strict=True)
        if each.restored is not None
    ]
    least = [max(count - elsewhere, 0) for count, elsewhere in counts]
    holding = [elsewhere for count, elsewhere in counts if count]
    return max(least, default=None), len(holding) > 1 or any(holding)


def is_most(counts: Iterable[int | None]) -> bool:
    """Do several nodes count such jobs, so that one job may be counted twice?"""
    return sum(bool(each) for each in counts) > 1


def _totals(name: str, of_nodes: list[tuple[str, QueueStats]]) -> QueueTotals:
    each = [stats for _, stats in of_nodes]
    dead, is_dead_least = dead_of([one.dead for one in each])
    restored, is_restored_least = restored_of(each)
    return QueueTotals(
        name=name,
        length=sum(one.length for one in each),
        delayed=_sum([one.delayed for one in each]),
        leased=_sum([one.leased for one in each]),
        dead=dead,
        is_dead_least=is_dead_least,
        restored=restored,
        is_restored_least=is_restored_least,
        is_delayed_most=is_most([one.delayed for one in each]),
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
