"""Sorted lists of all queues for the pages of the console, computed in pieces and cached."""

import heapq
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from fnmatch import translate
from itertools import islice
from typing import Final

import anyio
import anyio.lowlevel
import attrs

from disque_trio.observe.queue_counts import PIECE, Part, QueueCounts, age_of, count_of
from disque_trio.observe.values import readable
from disque_trio.worker.operating.notes import RESERVED
from disque_trio.worker.operating.plans import MistakeError

KEPT: Final = 8
"""The maximum number of cached lists, each of which serves all its pages."""
STUCK: Final = "stuck"
"""The filter for queues that have jobs and no takers."""
REST: Final = 50
"""A list is cached for this multiple of the time of its computation."""

Parts = Mapping[str, Part]
_Run = list[tuple[float, str]]


def _sum(parts: Parts, of: Callable[[Part], float | None]) -> float:
    return sum(of(one) or 0 for one in parts.values())


SORTS: Final[Mapping[str, Callable[[Parts, float], float]]] = {
    "jobs": lambda parts, _now_ms: sum([one.stats.length for one in parts.values()]),
    "age": age_of,
    "in": lambda parts, _now_ms: _sum(parts, lambda one: one.in_s),
    "out": lambda parts, _now_ms: _sum(parts, lambda one: one.out_s),
    "waiting": lambda parts, _now_ms: sum([one.stats.blocked for one in parts.values()]),
    "name": lambda _parts, _now_ms: 0,
}
"""Sort keys: the highest first; names from A on."""
ONLY: Final[Mapping[str, Callable[[Parts], bool]]] = {
    "": lambda _parts: True,
    STUCK: lambda parts: any(one.stats.length for one in parts.values()),
    "paused": lambda parts: any(one.stats.pause != "none" for one in parts.values()),
    "dead": lambda parts: bool(count_of(parts.values(), "dead")),
    "limited": lambda parts: any(one.stats.limits for one in parts.values()),
}


@attrs.frozen
class Query:
    """A selection of queues and their order."""

    by: str
    match: str
    """A part of the name, or a pattern."""
    only: str
    is_reversed: bool

    def check(self) -> None:
        """Raise `MistakeError` for invalid fields."""
        if self.by not in SORTS:
            raise MistakeError(f"queues cannot be sorted by '{self.by}': {', '.join(SORTS)}")
        if self.only not in ONLY:
            raise MistakeError(f"only='{self.only}' is not one of {', '.join(filter(None, ONLY))}")

    def filter(self) -> Callable[[str], object]:
        """Return the predicate on names."""
        match = self.match
        if any(each in match for each in "*?["):
            return re.compile(translate(match)).match
        return lambda name: match in (name if name.isascii() else readable(name))

    @property
    def has_reserved(self) -> bool:
        """Does the list contain the library's own queues?"""
        return self.match.startswith(RESERVED)


@attrs.define(eq=False)
class Order:
    """Sorted names, computed as far as pages have requested them."""

    total: int
    until: float
    """When the list is too old, by anyio's clock."""
    _rest: Iterator[tuple[float, str]]
    _names: list[str] = attrs.Factory(list)

    async def names(self, start: int, end: int) -> list[str]:
        """Return the names of a page."""
        while len(self._names) < min(end, self.total):
            room = min(PIECE, end - len(self._names))
            self._names += [name for _, name in islice(self._rest, room)]
            await anyio.lowlevel.checkpoint()
        return self._names[start:end]


@attrs.define(eq=False)
class QueueLists:
    """The cached lists."""

    counts: QueueCounts
    _kept: dict[Query, Order] = attrs.Factory(dict)

    async def get(self, query: Query) -> Order:
        """Return the list of a query; compute it if the cached one is too old."""
        order = self._kept.pop(query, None)
        if order is None or anyio.current_time() >= order.until:
            order = await self._made(query)
        self._kept[query] = order
        while len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return order

    async def _made(self, query: Query) -> Order:
        began = anyio.current_time()
        runs = [run async for run in self._runs(query)]
        now = anyio.current_time()
        merged = heapq.merge(*runs, reverse=query.is_reversed)
        return Order(sum(map(len, runs)), now + (now - began) * REST, merged)

    async def _runs(self, query: Query) -> AsyncIterator[_Run]:
        known, names = self.counts.parts, list(self.counts.parts)
        fits, key, is_in = query.filter(), SORTS[query.by], ONLY[query.only]
        may_have_takers, now_ms = query.only != STUCK, self.counts.now_ms
        hidden = () if query.has_reserved else (RESERVED,)
        for start in range(0, len(names), PIECE):
            yield sorted(
                [
                    (-key(parts, now_ms), name)
                    for name in names[start : start + PIECE]
                    if fits(name) and (parts := known.get(name)) and is_in(parts)
                    if not name.startswith(hidden)
                    if may_have_takers or not self.counts.has_takers(name)
                ],
                reverse=query.is_reversed,
            )
            await anyio.lowlevel.checkpoint()
