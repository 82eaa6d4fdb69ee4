"""The queues of all nodes: counted in passes that leave most of a node's time to its clients."""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import anyio
import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.command import Command
from disque_trio.client.errors import DisqueError
from disque_trio.client.records import QueueStats
from disque_trio.observe.values import Json, name_fields
from disque_trio.observe.watching import Watcher
from disque_trio.worker.operating.notes import RESERVED

POINTS: Final = 300
"""Of a series: a look a second makes five minutes."""
PAGE: Final = 20
"""Queues that are asked for at once: no turn of a node gets long."""
REST: Final = 4
"""After a step of a pass, so many times as long as it took: a pass takes a fifth of the time."""
PASS_S: Final = 1.0
"""Between two passes at least."""
_RATE_S: Final = 0.5
"""Rates are worked out over at least so long."""
BEHIND_S: Final = 60.0
"""A queue is behind if its oldest job has waited for so long."""
WATCHED: Final = 64
"""So many queues have a series."""


@attrs.define
class Part:
    """What one node has of a queue."""

    stats: QueueStats
    since: float
    """When `jobs_in` and `jobs_out` below were told, by anyio's clock."""
    jobs_in: int
    jobs_out: int
    in_s: float | None = None
    out_s: float | None = None

    def note(self, stats: QueueStats, now: float) -> None:
        """Newer figures."""
        seconds = now - self.since
        self.stats = stats
        if seconds < _RATE_S:
            return
        self.in_s = max(stats.jobs_in - self.jobs_in, 0) / seconds
        self.out_s = max(stats.jobs_out - self.jobs_out, 0) / seconds
        self.since, self.jobs_in, self.jobs_out = now, stats.jobs_in, stats.jobs_out


Point = tuple[float, int, float | None, float | None]
"""Unix seconds, jobs, in and out."""


@attrs.define(eq=False)
class Census:
    """All queues, by name and node, as they were when their nodes were asked last."""

    client: Watcher
    parts: dict[str, dict[str, Part]] = attrs.Factory(dict)
    series: dict[str, deque[Point]] = attrs.Factory(dict)
    """Of the queues that were looked at last."""
    is_whole: bool = False
    """Has a pass ended?"""
    troubled: dict[str, None] = attrs.Factory(dict)
    """Queues that findings are about: paused ones, those with dead jobs, and those that are
    behind."""
    _sums: Counter[str] = attrs.Factory(Counter)
    """Of the queues that are not the library's: by field, and queued jobs by node."""

    async def run(self) -> None:
        """Pass after pass, until it is cancelled."""
        while True:
            await self.once()
            await anyio.sleep(PASS_S)

    async def once(self) -> None:
        """One pass over the queues of all nodes that answer."""
        nodes = self.client.nodes.order(anyio.current_time())
        async with anyio.create_task_group() as tasks:
            for address in nodes:
                tasks.start_soon(self._pass, address)
        self.is_whole = True

    async def _pass(self, address: Address) -> None:
        """The queues of one node. Those that it has no more are left out then."""
        where, cursor = str(address), 0
        told: set[str] = set()
        try:
            while True:
                began = anyio.current_time()
                asked = commands.qscan(cursor, count=PAGE)
                [page] = await self.client.ask(address, [asked])
                if isinstance(page, DisqueError):
                    return
                told.update(page.items)
                await self._ask(address, page.items)
                cursor = page.cursor
                if not cursor:
                    break
                await anyio.sleep((anyio.current_time() - began) * REST)
        except DisqueError:
            return
        self._forget(where, told)

    async def renew(self, names: Sequence[str]) -> None:
        """Ask for these queues now."""
        async with anyio.create_task_group() as tasks:
            for address in self.client.nodes.order(anyio.current_time()):
                tasks.start_soon(self._renew, address, names)

    async def _renew(self, address: Address, names: Sequence[str]) -> None:
        try:
            await self._ask(address, names)
        except DisqueError:  # the survey tells of it
            return

    async def _ask(self, address: Address, names: Sequence[str]) -> None:
        asked: list[Command[Any]] = [commands.qstat(name) for name in names]
        where = str(address)
        told = await self.client.ask(address, asked, window=PAGE)
        for name, stats in zip(names, told, strict=True):
            if isinstance(stats, QueueStats):
                self._note(where, stats)
            elif stats is None:
                self._drop(name, where)

    def _note(self, where: str, stats: QueueStats) -> None:
        now, parts = anyio.current_time(), self.parts.setdefault(stats.name, {})
        self._count(stats.name, -1)
        if part := parts.get(where):
            part.note(stats, now)
        else:
            parts[where] = Part(stats, now, stats.jobs_in, stats.jobs_out)
        self._count(stats.name, 1)

    def _count(self, name: str, sign: int) -> None:
        """Add a queue to the sums, or take it away before it changes."""
        if name.startswith(RESERVED):
            return
        parts = self.parts.get(name, {})
        for where, part in parts.items():
            self._sums[where] += sign * part.stats.length
            self._sums["queued"] += sign * part.stats.length
        for field in ("leased", "delayed", "dead"):
            self._sums[field] += sign * (count_of(parts.values(), field) or 0)
        self.troubled.pop(name, None)
        if sign > 0 and is_troubled(parts):
            self.troubled[name] = None

    def _forget(self, where: str, told: set[str]) -> None:
        for name in [name for name, parts in self.parts.items() if where in parts]:
            if name not in told:
                self._drop(name, where)

    def _drop(self, name: str, where: str) -> None:
        if parts := self.parts.get(name):
            self._count(name, -1)
            parts.pop(where, None)
            self._count(name, 1)
            if not parts:
                del self.parts[name]

    def followed(self, name: str, at: float) -> deque[Point]:
        """The series of a queue, with what it is now."""
        points = self.series.pop(name, None) or deque(maxlen=POINTS)
        self.series[name] = points
        if len(self.series) > WATCHED:
            del self.series[next(iter(self.series))]
        if not points or at - points[-1][0] >= _RATE_S:
            parts = self.parts.get(name, {}).values()
            in_s, out_s = _sum(each.in_s for each in parts), _sum(each.out_s for each in parts)
            points.append((at, sum(each.stats.length for each in parts), in_s, out_s))
        return points

    def totals(self) -> dict[str, int]:
        """Over all queues: `queued`, `leased`, `delayed` and `dead` jobs."""
        return {field: self._sums[field] for field in ("queued", "leased", "delayed", "dead")}

    def queued_at(self, where: str) -> int:
        """Jobs that are queued at a node."""
        return self._sums[where]


def is_troubled(parts: Mapping[str, Part]) -> bool:
    """Is there a finding about it?"""
    return any(
        one.stats.pause != "none" or one.stats.dead or (one.stats.next_age or 0.0) >= BEHIND_S
        for one in parts.values()
    )


def count_of(parts: Iterable[Part], field: str) -> int | None:
    """Of `leased`, `delayed` and `dead`. All holders count a dead job, so the most counts."""
    known: list[int] = [
        count for part in parts if (count := getattr(part.stats, field)) is not None
    ]
    if not known:
        return None
    return max(known) if field == "dead" else sum(known)


def queue_row(name: str, parts: dict[str, Part]) -> Json:
    """A queue of the whole cluster."""
    each = list(parts.values())
    length = sum(one.stats.length for one in each)
    age = max((one.stats.next_age or 0.0 for one in each), default=0.0)
    return {
        **name_fields(name),
        "jobs": length,
        "where": {where: one.stats.length for where, one in parts.items() if one.stats.length},
        "age_s": round(age, 1) if length else None,
        "in_s": _sum(one.in_s for one in each),
        "out_s": _sum(one.out_s for one in each),
        "again_s": None,
        "delayed": count_of(each, "delayed"),
        "leased": count_of(each, "leased"),
        "dead": count_of(each, "dead"),
        "takers": sum(one.stats.blocked for one in each),
        "paused": {w: one.stats.pause for w, one in parts.items() if one.stats.pause != "none"},
    }


def _sum(rates: Iterable[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return round(sum(known), 2) if known else None
