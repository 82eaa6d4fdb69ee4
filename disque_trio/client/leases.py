"""The leases of jobs that are held: which node has each, and when WORKING is due.

Without a WORKING a node queues a job again when its RETRY is over, and another client may get it
while this one still works on it. WORKING starts the period anew; the reply is its length. Pure:
time and answers are arguments, so tests need neither threads nor nodes.
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
"""Ids by the name of the node that delivered them."""
_SHARE: Final = 3
"""WORKINGs in a period: two may be late or lost."""
_FINAL: Final = (TooLateError, AlreadyAckedError, DeadJobError, LeaseLostError)
"""After these no WORKING will do."""


@attrs.define(eq=False)
class Lease:
    """One job."""

    node: str
    due: float
    """When WORKING is to be sent, in seconds; infinity is never."""
    asked: set[str] = attrs.field(factory=set)
    """Nodes that did not know the job, since the last one that did."""
    is_given_up: bool = False
    """It counts in `given_up`."""


@attrs.define(eq=False)
class Leases:
    """All jobs that are held, by id."""

    shortest_s: float
    """No job's RETRY is shorter."""
    given_up: int = 0
    """Jobs of which no more time is to be had though they are held: half of their TTL is over, they
    are dead, somebody else was given them, or no node knows them."""
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
        """These were delivered just now. What is left of their leases is known for some; 0 is for
        ever."""
        for node, ids in jobs.items():
            for job in ids:
                left = left_s.get(job, self.shortest_s)
                self._leases[job] = Lease(node, now + left / _SHARE if left else math.inf)

    def adopt(self, jobs: Jobs, now: float) -> None:
        """These were delivered to an earlier process, at an unknown time."""
        for node, ids in jobs.items():
            for job in ids:
                self._leases.setdefault(job, Lease(node, now))

    def drop(self, jobs: Iterable[str]) -> None:
        """They are acknowledged."""
        for job in jobs:
            self._leases.pop(job, None)

    def next_due(self) -> float:
        """When the next WORKING is due; infinity is never."""
        return min((lease.due for lease in self._leases.values()), default=math.inf)

    def due(self, now: float) -> Jobs:
        """The jobs of which WORKING is due, by node."""
        found: Jobs = {}
        for job, lease in self._leases.items():
            if lease.due <= now:
                found.setdefault(lease.node, []).append(job)
        return found

    def answered(
        self, job: str, node: str, answer: int | RefusedError, live: Sequence[str], now: float
    ) -> None:
        """The node's answer to a WORKING."""
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
        else:  # the node loads its journal, or is short of memory
            lease.due = now + max(self.shortest_s, 1.0) / _SHARE

    def gone(self, job: str, node: str, live: Sequence[str], now: float) -> None:
        """The node does not know the job, or does not answer: ask another."""
        lease = self._leases.get(job)
        if lease is None:
            return
        lease.asked.add(node)
        others = [name for name in live if name not in lease.asked]
        if others:
            lease.node, lease.due = others[0], now
        else:
            # Its holder may come back, with the job, before the period is over.
            lease.asked.clear()
            lease.due = now + max(self.shortest_s, 1.0) / _SHARE
            self._give_up(lease)

    def _give_up(self, lease: Lease) -> None:
        if not lease.is_given_up:
            lease.is_given_up = True
            self.given_up += 1
