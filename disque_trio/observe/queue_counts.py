"""The queues of all nodes, counted in passes that use only a small part of a node's time."""

import math
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import anyio
import anyio.lowlevel
import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.command import Command
from disque_trio.client.errors import DisqueError
from disque_trio.client.records import QueueLimits, QueueStats
from disque_trio.observe.client import DeadlineClient
from disque_trio.observe.queue_stats import FEW, MANY, NOTHING, SOME, Stats, of_stats, parsed, scan
from disque_trio.observe.top_k import TopK
from disque_trio.observe.values import Json, name_fields, readable
from disque_trio.terminal.counting import counted
from disque_trio.worker.operating.notes import RESERVED
from disque_trio.worker.operating.queues import dead_of, is_most, restored_of

POINTS: Final = 300
"""Points of a series; one per second makes five minutes."""
FIRST_REST: Final = 4
"""The pause after a step of the first pass, as a multiple of the duration of the step."""
REST: Final = 20
"""The same in later passes."""
STEP_S: Final = 0.005
"""Time beyond this is spent waiting for the network, and does not lengthen the pause."""
PAUSE_S: Final = 0.002
"""The pause between two steps of requests for the rows of a page."""
PASS_S: Final = 1.0
"""The shortest time between two passes."""
LATEST_S: Final = 300.0
"""A node that does not respond for this long is left out; until then its last figures count."""
PIECE: Final = 250
"""Queues that are examined before other tasks get a turn: some tenths of a millisecond."""
_RATE_S: Final = 0.5
"""The shortest period over which rates are computed."""
BEHIND_S: Final = 60.0
"""A queue is behind if its oldest job has waited for this long."""
WATCHED: Final = 64
"""The maximum number of queues with a series."""
_FEATURE: Final = "qscan-stat"
_UNQUEUED: Final = "unqueued"
T = TypeVar("T")


@attrs.define
class Part:
    """The figures of one node about a queue."""

    stats: Stats
    since: float
    """When `jobs_in` and `jobs_out` below were reported, by anyio's clock."""
    jobs_in: int
    jobs_out: int
    encoded: bytes = b""
    """The encoded reply from which `stats` were parsed, if any."""
    seen: int = 0
    """The last pass that included it."""
    in_s: float | None = None
    out_s: float | None = None

    def note(self, stats: Stats, encoded: bytes, now: float) -> None:
        """Newer figures."""
        seconds = now - self.since
        self.stats, self.encoded = stats, encoded
        if seconds < _RATE_S:
            return
        self.in_s = max(stats.jobs_in - self.jobs_in, 0) / seconds
        self.out_s = max(stats.jobs_out - self.jobs_out, 0) / seconds
        self.since, self.jobs_in, self.jobs_out = now, stats.jobs_in, stats.jobs_out


Parts = dict[str, Part]
"""By node."""
Point = tuple[float, int, float | None, float | None]
"""Unix seconds, jobs, in and out."""


@attrs.define(eq=False)
class QueueCounts:
    """All queues, by name and node, as of the last request to their nodes."""

    client: DeadlineClient
    parts: dict[str, Parts] = attrs.Factory(dict)
    series: dict[str, deque[Point]] = attrs.Factory(dict)
    """By name: the series of the queues that were shown last."""
    is_whole: bool = False
    """Has a pass ended?"""
    behind: TopK = attrs.Factory(TopK)
    """Queues whose next job has waited for `BEHIND_S`; if there are many, those with the most
    jobs."""
    behind_names: dict[str, None] = attrs.Factory(dict)
    """All such queues, whose number is reported where `behind` omits some."""
    paused: dict[str, None] = attrs.Factory(dict)
    with_dead: dict[str, None] = attrs.Factory(dict)
    dead_least: dict[str, None] = attrs.Factory(dict)
    """Queues of which more jobs may be dead than any node reports."""
    restored: dict[str, None] = attrs.Factory(dict)
    """Queues with jobs that wait for the end of their RETRY after a node has restarted."""
    limited: dict[str, None] = attrs.Factory(dict)
    """Queues for which clients wait only because of their limits."""
    clock: Callable[[], int] = int
    """How far the clocks of most nodes, which stamp jobs, are ahead of this machine's, in
    milliseconds; 0 as long as that is not known."""
    clock_ms: int = 0
    """The same, as of the last look."""
    served: Collection[str] = frozenset()
    """Queues of workers that take jobs, as readable names. A busy worker does not wait for jobs at
    a node."""
    _sums: Counter[str] = attrs.Factory(Counter)
    """Sums over the queues that are not the library's own: by field, and queued jobs by node."""
    _number: int = 0
    """The number of the current pass."""
    _reported: dict[str, None] = attrs.Factory(dict)
    """Nodes that have reported their queues and are not left out."""
    _counting: anyio.Lock = attrs.Factory(anyio.Lock)

    async def run(self) -> None:
        """Run passes until cancelled."""
        while True:
            await self.once()
            await anyio.sleep(PASS_S)

    async def begin(self) -> None:
        """Wait until the first pass has ended."""
        if not self.is_whole:
            async with self._counting:
                pass
        if not self.is_whole:
            await self.once()

    async def once(self) -> None:
        """Run one pass over the queues of all nodes that answer."""
        async with self._counting:
            self._number += 1
            self.clock_ms = self.clock()
            nodes = self.client.nodes.order(anyio.current_time())
            await self._leave_out({str(each) for each in nodes})
            async with anyio.create_task_group() as tasks:
                for address in nodes:
                    tasks.start_soon(self._pass, address)
            self.is_whole = True

    async def _pass(self, address: Address) -> None:
        """Read the queues of one node, and drop those that it no longer has."""
        count, rest = (SOME, REST) if self.is_whole else (MANY, FIRST_REST)
        cursor, is_over = 0, False
        try:
            if not self.is_whole:
                await self.client.ask(address, [commands.ping()])  # the greeting has its features
            while not is_over:
                began = anyio.current_time()
                known = self.client.nodes.features(address)
                has_figures, has_unqueued = _FEATURE in known, _UNQUEUED in known
                asked = scan(cursor, count, has_figures=has_figures, has_unqueued=has_unqueued)
                [page] = await self.client.ask(address, [asked])
                if isinstance(page, DisqueError):
                    return
                await self._take(address, page.names, page.figures)
                cursor, is_over = page.cursor, not page.cursor
                took = min(anyio.current_time() - began, STEP_S)
                await anyio.sleep(0 if is_over else took * rest)
        except DisqueError:
            return
        await self._forget(str(address))

    async def _leave_out(self, known: set[str]) -> None:
        """Nodes that the client no longer knows, because they have left the cluster or changed
        their address, and nodes that have not responded for long."""
        latest = anyio.current_time() - LATEST_S
        for where in list(self._reported):
            silence = self.client.silent.get(where)
            if where not in known or (silence is not None and silence.since < latest):
                del self._reported[where]
                await self._forget(where)
                if not self._sums[where]:  # no request for the rows of a page has updated it since
                    del self._sums[where]

    async def _take(self, address: Address, names: list[str], figures: list[bytes]) -> None:
        where, now = str(address), anyio.current_time()
        self._reported[where] = None
        if not figures:
            await self._ask(address, names)
            return
        for name, encoded in zip(names, figures, strict=True):
            part = self.parts.get(name, {}).get(where)
            stats = part.stats if part and part.encoded == encoded else parsed(encoded)
            self._note(name, where, stats, now, encoded)

    async def renew(self, names: Sequence[str]) -> None:
        """Request these queues now, a few at a time. All nodes are asked in parallel, and a slow
        node does not delay the requests to others."""
        nodes = self.client.nodes.order(anyio.current_time())
        async with anyio.create_task_group() as tasks:
            for start in range(0, len(names), FEW):
                await anyio.sleep(PAUSE_S if start else 0)
                for address in nodes:
                    tasks.start_soon(self._renew, address, names[start : start + FEW])

    async def _renew(self, address: Address, names: Sequence[str]) -> None:
        try:
            await self._ask(address, names)
        except DisqueError:  # the survey reports it
            return

    async def _ask(self, address: Address, names: Sequence[str]) -> None:
        where = str(address)
        for start in range(0, len(names), FEW):
            some = names[start : start + FEW]
            asked: list[Command[Any]] = [commands.qstat(name) for name in some]
            replies = await self.client.ask(address, asked)
            now = anyio.current_time()
            self._reported[where] = None
            for name, stats in zip(some, replies, strict=True):
                if isinstance(stats, QueueStats):
                    self._note(name, where, of_stats(stats, self.now_ms), now)
                elif stats is None:
                    self._drop(name, where)

    def _note(self, name: str, where: str, stats: Stats, now: float, encoded: bytes = b"") -> None:
        parts = self.parts.setdefault(name, {})
        if part := parts.get(where):
            before = part.stats
            part.note(stats, encoded, now)
        else:
            before = NOTHING
            part = parts[where] = Part(stats, now, stats.jobs_in, stats.jobs_out, encoded)
        part.seen = self._number
        if before != stats:
            self._count(name, where, before, stats)
        self._judge(name, parts, before, stats)

    def _count(self, name: str, where: str, before: Stats, after: Stats) -> None:
        """Update the sums by the changes at a node."""
        if name.startswith(RESERVED):
            return
        sums, more = self._sums, after.length - before.length
        sums[where] += more
        sums["queued"] += more
        sums["leased"] += (after.leased or 0) - (before.leased or 0)
        sums["delayed"] += (after.delayed or 0) - (before.delayed or 0)
        if before.dead or after.dead:  # all holders count a dead job, so the maximum counts
            others = [
                part.stats.dead or 0 for w, part in self.parts.get(name, {}).items() if w != where
            ]
            now, is_least = dead_of([after.dead or 0, *others])
            sums["dead"] += (now or 0) - max(before.dead or 0, *others, 0)
            _mark(self.with_dead, name, is_so=bool(now))
            _mark(self.dead_least, name, is_so=is_least)

    def _judge(self, name: str, parts: Parts, before: Stats, stats: Stats) -> None:
        """Update the sets of queues that have findings. Queues of the library are in none of
        them."""
        if name.startswith(RESERVED):
            return
        if stats.pause != before.pause:
            is_paused = any(one.stats.pause != "none" for one in parts.values())
            _mark(self.paused, name, is_so=is_paused)
        if stats.restored != before.restored:
            is_so = any(one.stats.restored for one in parts.values())
            _mark(self.restored, name, is_so=is_so)
        if stats.is_limited != before.is_limited:
            is_so = any(one.stats.is_limited for one in parts.values())
            _mark(self.limited, name, is_so=is_so)
        is_behind = age_of(parts, self.now_ms) >= BEHIND_S
        _mark(self.behind_names, name, is_so=is_behind)
        if is_behind:
            self.behind.offer(name, sum([one.stats.length for one in parts.values()]))
        else:
            self.behind.discard(name)

    async def _forget(self, where: str) -> None:
        """Drop the queues that the node did not report in this pass."""
        number = self._number
        async for name in in_pieces(list(self.parts)):
            part = self.parts.get(name, {}).get(where)
            if part is not None and part.seen < number:
                self._drop(name, where)

    def _drop(self, name: str, where: str) -> None:
        parts = self.parts.get(name)
        if parts is None or (part := parts.pop(where, None)) is None:
            return
        self._count(name, where, part.stats, NOTHING)
        self._judge(name, parts, part.stats, NOTHING)
        if not parts:
            del self.parts[name]

    def followed(self, name: str, at: float) -> deque[Point]:
        """The series of a queue, including its present state."""
        points = self.series.pop(name, None) or deque(maxlen=POINTS)
        self.series[name] = points
        if len(self.series) > WATCHED:
            del self.series[next(iter(self.series))]
        if not points or at - points[-1][0] >= _RATE_S:
            parts = self.parts.get(name, {}).values()
            in_s, out_s = _sum(each.in_s for each in parts), _sum(each.out_s for each in parts)
            points.append((at, sum(each.stats.length for each in parts), in_s, out_s))
        return points

    def has_takers(self, name: str) -> bool:
        """Do clients wait for jobs of the queue, take some or hold leases, or does a worker serve
        it?"""
        each = self.parts.get(name, {}).values()
        takes = any(one.stats.blocked or one.out_s or one.stats.leased for one in each)
        return takes or (name if name.isascii() else readable(name)) in self.served

    @property
    def now_ms(self) -> float:
        """Unix milliseconds by the clocks of the nodes."""
        return time.time() * 1000 + self.clock_ms

    @property
    def has_any(self) -> bool:
        """Has a node reported its queues?"""
        return bool(self._reported)

    @property
    def uncounted(self) -> list[str]:
        """Nodes that have not reported their queues, which all lists and sums omit."""
        return [where for where in self._known() if where not in self._reported]

    def answering(self) -> str:
        """How many of the nodes report their queues now; empty if all of them do."""
        known = self._known()
        silent = {*self.uncounted, *self.client.silent}
        number = sum(where not in silent for where in known)
        return f"{number} of {counted(len(known), 'node')}" if number < len(known) else ""

    def _known(self) -> list[str]:
        return list(map(str, self.client.nodes.order(math.inf)))

    def totals(self) -> dict[str, int]:
        """Over all queues: `queued`, `leased`, `delayed` and `dead` jobs."""
        return {field: self._sums[field] for field in ("queued", "leased", "delayed", "dead")}

    def queued_at(self, where: str) -> int | None:
        """Jobs that are queued at a node, if known."""
        return self._sums[where] if where in self._reported else None


def _mark(names: dict[str, None], name: str, *, is_so: bool) -> None:
    if is_so:
        names[name] = None
    else:
        names.pop(name, None)


async def in_pieces(items: Sequence[T]) -> AsyncIterator[T]:
    """Iterate over all of them; other tasks get a turn between pieces."""
    for start in range(0, len(items), PIECE):
        for item in items[start : start + PIECE]:
            yield item
        await anyio.lowlevel.checkpoint()


def count_of(parts: Iterable[Part], field: str) -> int | None:
    """Return the number of `leased`, `delayed`, `restored` or `dead` jobs; None if no node reports
    it. All holders count a dead job, so the maximum is used for `dead`."""
    known: list[int] = [
        count for part in parts if (count := getattr(part.stats, field)) is not None
    ]
    if not known:
        return None
    return max(known) if field == "dead" else sum(known)


def until_restored(parts: Iterable[Part], now_ms: float) -> float | None:
    """The time until the first job that has waited since a restart is enqueued; None without
    any."""
    return _until([part.stats.due for part in parts if part.stats.restored], now_ms)


def until_delayed(parts: Iterable[Part], now_ms: float) -> float | None:
    """The time until the first delayed job is enqueued; None if there is none, or if no node
    reports it."""
    return _until([part.stats.delayed_due for part in parts if part.stats.delayed_due], now_ms)


def _until(moments: list[int], now_ms: float) -> float | None:
    return max(min(moments) - now_ms / 1000, 0.0) if moments else None


def age_of(parts: Mapping[str, Part], now_ms: float) -> float:
    """The longest wait among the next jobs of all nodes; 0 without any."""
    return max([one.stats.age_s(now_ms) for one in parts.values()], default=0.0)


def limits_of(parts: Iterable[Part]) -> QueueLimits | None:
    """The limits of the queue; while a change spreads, those that most nodes know."""
    known = Counter([one.stats.limits for one in parts if one.stats.limits])
    return known.most_common(1)[0][0] if known else None


def waits_for(parts: Parts) -> QueueLimits | None:
    """Return the limits for which the jobs of the queue wait: clients wait only because of them, or
    the number of leases has reached them. Else None."""
    limits = limits_of(parts.values())
    if limits is None or any(one.stats.is_limited for one in parts.values()):
        return limits
    leased = count_of(parts.values(), "leased") or 0
    return limits if 0 < limits.concurrency <= leased else None


def queue_row(counts: QueueCounts, name: str) -> Json:
    """Return the row of a queue: its figures over all nodes."""
    parts, now_ms = counts.parts[name], counts.now_ms
    each = list(parts.values())
    length = sum(one.stats.length for one in each)
    restored, restored_is_least = restored_of([one.stats for one in each])
    return {
        **name_fields(name),
        "jobs": length,
        "where": {where: one.stats.length for where, one in parts.items() if one.stats.length},
        "age_s": round(age_of(parts, now_ms), 1) if length else None,
        "in_s": _sum(one.in_s for one in each),
        "out_s": _sum(one.out_s for one in each),
        "again_s": None,
        "delayed": count_of(each, "delayed"),
        "delayed_due_s": until_delayed(each, now_ms),
        "leased": count_of(each, "leased"),
        "dead": count_of(each, "dead"),
        "dead_is_least": dead_of([one.stats.dead for one in each])[1],
        "delayed_is_most": is_most([one.stats.delayed for one in each]),
        "restored": restored,
        "restored_is_least": restored_is_least,
        "restored_due_s": until_restored(each, now_ms),
        "takers": sum(one.stats.blocked for one in each),
        "served": counts.has_takers(name),
        "paused": {w: one.stats.pause for w, one in parts.items() if one.stats.pause != "none"},
        "limits": _limits(limits_of(each)),
        "limited": any(one.stats.is_limited for one in each),
    }


def _limits(limits: QueueLimits | None) -> Json | None:
    """Return limits with their text for display; a limit of 0 means none."""
    return None if limits is None else {"text": str(limits), **attrs.asdict(limits)}


def _sum(rates: Iterable[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return round(sum(known), 2) if known else None
