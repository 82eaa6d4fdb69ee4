"""Counters (S14): NACKs and additional deliveries in replies of GETJOB WITHCOUNTERS.

A node counts at least its own events since it has its copy, at most those of the whole cluster, and
never fewer than before.
"""

import bisect
import itertools
from collections.abc import Iterator
from typing import Final

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.records import Job, Lease
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.terminal.counting import counted
from disque_trio.tracing.details import number
from disque_trio.tracing.rows import Row

MOST: Final = 0xFFFF
"""A larger count wraps to 0."""

_Count = tuple[Micros, int, int]


def check(case: Case, row: Row, job: Job, serve: Lease) -> None:
    """S14: the counters of a node never decrease from one serve to the next, and are exact. Replies
    may arrive in another order than the serves."""
    if "additional=" not in row.detail or not case.obligations.is_stream:
        return
    case.check("S14")
    nacks, more = number(row.detail, "nacks"), number(row.detail, "additional")
    for before, after in _neighbours(job, serve, (serve.time, nacks, more)):
        if after[1] < before[1] or after[2] < before[2]:
            detail = f"{_counts(before[1], before[2])} became {after[1]} and {after[2]}"
            case.violate("S14", detail, job.id, row.node)
    least = serve.counted_here
    if max(least) <= MOST and (nacks < least[0] or more < least[1]):
        counts = _counts(nacks, more)
        detail = f"{counts}, though {row.node} itself has counted {least[0]} and {least[1]}"
        case.violate("S14", detail, job.id, row.node)
    most = serve.counted
    if most is None or not case.has_node_rows or case.is_live:
        return
    if nacks > most[0] or more > most[1]:
        detail = f"{_counts(nacks, more)}, of {most[0]} and {most[1]}"
        case.violate("S14", detail, job.id, row.node)


def _counts(nacks: int, more: int) -> str:
    additional = counted(more, "additional delivery", "additional deliveries")
    return f"{counted(nacks, 'NACK')} and {additional}"


def _neighbours(job: Job, serve: Lease, now: _Count) -> Iterator[tuple[_Count, _Count]]:
    """Return pairs of neighbouring counters of this copy: the previous serve and this one, this one
    and the next serve."""
    copy = job.copies.get(serve.node)
    if copy is not None and serve.time < copy.since:
        return iter(())
    counters = job.counters.setdefault(serve.node, [])
    place = bisect.bisect_right(counters, (now[0], sum(now[1:])), key=lambda n: (n[0], sum(n[1:])))
    counters.insert(place, now)
    return itertools.pairwise(counters[max(place - 1, 0) : place + 2])
