"""The leases of held jobs: the node of each, and when WORKING is due.

Without WORKING a node enqueues a job again after its RETRY, and another client may receive it while
this one still works on it. WORKING restarts the period; the reply is its length. Pure: time and
replies are arguments, so tests need neither threads nor nodes.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import attrs

from disque_trio.client.refusals import (
    AlreadyAckedError,
    DeadJobError,
    LeaseLostError,
    RefusedError,
    TooLateError,
    UnknownJobError,
)

Jobs = dict[str, list[str]]
"""Ids, by the name of the node that delivered them."""
_SHARE: Final = 3
"""The number of WORKINGs in a period: two may be late or lost."""
_FINAL: Final = (TooLateError, AlreadyAckedError, DeadJobError, LeaseLostError)
"""After these errors WORKING cannot succeed."""


@attrs.define(eq=False)
class Lease:
    """The lease of one job."""

    node: str
    due: float
    """When WORKING is due, in seconds; infinity is never."""
    asked: set[str] = attrs.field(factory=set)
    """Nodes that did not have the job, since the last one that did."""
    is_given_up: bool = False
    """Is it counted in `given_up`?"""


@attrs.define(eq=False)
class Leases:
    """The leases of all held jobs, by id."""

    shortest_s: float
    """The shortest RETRY of a job, in seconds."""
    given_up: int = 0
    """The number of held jobs whose lease cannot be renewed: half of their TTL is over, they are
    dead, another client has received them, or no node has them."""
    _leases: dict[str, Lease] = attrs.field(init=False, factory=dict)

    def __contains__(self, job: str) -> bool:
        return job in self._leases

    def __len__(self) -> int:
        return len(self._leases)

    def __bool__(self) -> bool:
        return bool(self._leases)

    def add(
        self, jobs: Jobs, now: float, left_s: Mapping[str, float] = MappingProxyType({})
    ) -> None:
        """Add jobs that were just delivered. `left_s` has the rest of the lease of some in seconds;
        0 is no limit."""
        for node, ids in jobs.items():
            for job in ids:
                left = left_s.get(job, self.shortest_s)
                self._leases[job] = Lease(node, now + left / _SHARE if left else math.inf)

    def adopt(self, jobs: Jobs, now: float) -> None:
        """Add jobs that were delivered to an earlier process, at an unknown time."""
        for node, ids in jobs.items():
            for job in ids:
                self._leases.setdefault(job, Lease(node, now))

    def drop(self, jobs: Iterable[str]) -> None:
        """Remove jobs that were acknowledged."""
        for job in jobs:
            self._leases.pop(job, None)

    def next_due(self) -> float:
        """When the next WORKING is due; infinity is never."""
        return min((lease.due for lease in self._leases.values()), default=math.inf)

    def due(self, now: float) -> Jobs:
        """The jobs whose WORKING is due, by node."""
        found: Jobs = {}
        for job, lease in self._leases.items():
            if lease.due <= now:
                found.setdefault(lease.node, []).append(job)
        return found

    def answered(
        self, job: str, node: str, answer: int | RefusedError, live: Sequence[str], now: float
    ) -> None:
        """Process a node's reply to WORKING."""
        lease = self._leases.get(job)
        if lease is None:
            return
        if isinstance(answer, int):
            lease.asked.clear()
            lease.is_given_up = False
            lease.due = now + answer / _SHARE if answer else math.inf
        elif isinstance(answer, UnknownJobError):
            self.gone(job, node, live, now)
        elif isinstance(answer, _FINAL):
            lease.due = math.inf
            if not isinstance(answer, AlreadyAckedError):
                self._give_up(lease)
        else:  # the node is loading, or is short of memory
            lease.due = now + max(self.shortest_s, 1.0) / _SHARE

    def gone(self, job: str, node: str, live: Sequence[str], now: float) -> None:
        """The node does not have the job, or does not answer: ask another one."""
        lease = self._leases.get(job)
        if lease is None:
            return
        lease.asked.add(node)
        others = [name for name in live if name not in lease.asked]
        if others:
            lease.node, lease.due = others[0], now
        else:
            # Its holder may return with the job before the period ends.
            lease.asked.clear()
            lease.due = now + max(self.shortest_s, 1.0) / _SHARE
            self._give_up(lease)

    def _give_up(self, lease: Lease) -> None:
        if not lease.is_given_up:
            lease.is_given_up = True
            self.given_up += 1
