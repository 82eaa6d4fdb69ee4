"""A queue: its jobs in order, its waiting clients, its counters (original 2.7, 4.3).

The order of two jobs never changes: by priority (the higher one first), creation stamp and id. So
most jobs arrive in order and are kept in a deque; the others (requeued after younger ones,
imported, with a priority other than 0) are in `SortedEntries`. A job that leaves the middle of the
queue leaves a stale entry, which is skipped unless the job is queued again; stale entries are swept
when they outnumber the jobs. Jobs with a GROUP are in `Groups`, and served in turn with the others.

Owns `Job.in_line`, with `groups`. The counters are written by `lifecycle` and `counts`, `waiting`
by `waiters`, the import and broadcast fields, `seen_taken` and `unattended` by `federation`,
`paused` by `pausing`, `limit` by `limiting`.
"""

import heapq
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice

import attrs

from disque_trio.statemachine.base import FOREVER, QUEUED, ClientId, Millis, NodeId
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.groups import Groups
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.knobs import DEFAULTS
from disque_trio.statemachine.limit import Limit
from disque_trio.statemachine.sorted_entries import Key, SortedEntries
from disque_trio.statemachine.timers import Timed


@attrs.define(eq=False, weakref_slot=False)
class Supply:
    """The other nodes of ours with jobs of a queue. `federation` writes it."""

    known: dict[NodeId, int] = attrs.Factory(dict)
    """The number of jobs of each node, by its last HAVEJOBS."""
    asked: dict[NodeId, int] = attrs.Factory(dict)
    """Nodes with an unanswered NEEDJOBS, and the number of requested jobs; 0 if no client
    waited."""
    asked_at: Millis = 0
    """When the last NEEDJOBS was sent."""


@attrs.define(eq=False, weakref_slot=False)
class Queue(Timed):
    """One queue of this node. Its length is the number of jobs in state queued."""

    name: bytes
    created: Millis
    accessed: Millis
    """Time of the last enqueue or fetch."""
    paused: int = 0
    limit: Limit | None = None
    """None for a queue that never had limits."""
    waiting: dict[ClientId, Client] = attrs.Factory(dict)
    jobs_in: int = 0
    jobs_out: int = 0
    transferred: int = 0
    """How many of `jobs_out` were sent to other nodes."""
    acks: int = 0
    """How many of its jobs clients have acknowledged here."""
    # Federation (original 6.7).
    responders: dict[NodeId, Millis] = attrs.Factory(dict)
    import_started: Millis = 0
    import_count: int = 0
    import_previous_started: Millis = 0
    import_previous_count: int = 0
    broadcast_at: Millis = -FOREVER
    """When WAITING was last broadcast."""
    broadcast_attempt: int = 0
    adhoc_at: Millis = -FOREVER
    """When NEEDJOBS was last sent to the responders."""
    adhoc_attempt: int = 0
    polled_until: Millis = -FOREVER
    """Until when a job is fetched for a client that did not wait."""
    supply: Supply | None = None
    """None until another node has sent HAVEJOBS."""
    seen_taken: int = 0
    """How many jobs clients had taken here at the last check (`federation`)."""
    unattended: int = 0
    """At how many consecutive checks there were jobs of which clients had taken none."""
    # The jobs.
    length: int = 0
    """The number of queued jobs: the same as `len`, without a call."""
    _in_order: deque[Job] = attrs.Factory(deque)
    _late: SortedEntries | None = None
    """None until there is an entry, to save memory: few of 100,000 queues have any."""
    _late_adds: int = 0
    _groups: Groups | None = None
    """None while no job has a group."""

    def __len__(self) -> int:
        return self.length

    def __bool__(self) -> bool:
        return True

    def add(self, job: Job) -> None:
        """Add a job whose state has just become queued."""
        self.length += 1
        if job.in_line:
            return
        job.in_line = True
        in_order = self._in_order
        more = job.extensions
        if more is not None and (more.priority or more.group is not None):
            self._add_late(job)
            return
        if not in_order:
            in_order.append(job)
            return
        last = in_order[-1]
        if last.made < job.made or (
            last.made == job.made and (last.number < job.number or _key(last) < _key(job))
        ):
            in_order.append(job)
        else:
            self._add_late(job)

    def _add_late(self, job: Job) -> None:
        self._late_adds += 1
        entry = (*_key(job), self._late_adds, job)
        if (group := job.group) is not None:
            if self._groups is None:
                self._groups = Groups()
            self._groups.add(group, entry)
            return
        if self._late is None:
            self._late = SortedEntries()
        self._late.add(entry)

    def comes_late(self, job: Job, ahead: int) -> bool:
        """Are there more than `ahead` jobs before this one, which was just added? For a job with a
        group or a priority above 0, this is an estimate."""
        if self._groups is not None and (group := job.group) is not None:
            return self.length > ahead and self._groups.has_before(job, group, ahead)
        if job.priority > 0:
            return len(self._late or ()) > ahead
        return self.length > ahead

    def discard(self, spare: int = DEFAULTS.stale_entries) -> None:
        """A job of the queue is no longer queued. Its entry remains until a sweep: when stale
        entries outnumber the jobs by more than `spare`."""
        self.length -= 1
        entries = len(self._in_order) + len(self._late or ()) + len(self._groups or ())
        if entries > 2 * self.length + spare:
            self.sweep()

    def oldest(self) -> Job | None:
        """The next job to deliver; None if there is none, or all groups are parked."""
        job = self._oldest_plain()
        if self._groups is not None:
            job = self._groups.next(job)
            if not self._groups.levels:
                self._groups = None
        return job

    def park(self, group: bytes) -> None:
        """Park a group: its jobs are not delivered for now."""
        if self._groups is not None:
            self._groups.park(group)

    def unpark(self, group: bytes) -> bool:
        """Unpark a group. Returns whether it was parked."""
        if not self.is_parked(group) or self._groups is None:
            return False
        self._groups.unpark(group)
        return True

    def unpark_all(self) -> None:
        """Unpark all groups."""
        if self._groups is not None and self._groups.parked:
            self._groups.unpark_all()

    def is_parked(self, group: bytes) -> bool:
        """Is the group parked?"""
        return self._groups is not None and group in self._groups.parked

    def parked_groups(self) -> int:
        """The number of parked groups."""
        return 0 if self._groups is None else len(self._groups.parked)

    def in_turn(self) -> int:
        """The approximate number of queued jobs that are not parked; exactly 0 if there are
        none."""
        parked = 0 if self._groups is None else self._groups.parked_count()
        if parked and self.oldest() is None:
            return 0
        return max(self.length - parked, min(self.length, 1))

    def count_of(self, group: bytes) -> int:
        """The number of entries of the group, including some of jobs that are no longer queued."""
        return 0 if self._groups is None else sum(map(len, self._groups.of(group)))

    def oldest_of(self, group: bytes) -> Job | None:
        """The first job of a group."""
        lines = [] if self._groups is None else self._groups.of(group)
        return next((job for line in lines for job in line.queued()), None)

    def _oldest_plain(self) -> Job | None:
        """The first of the jobs without a group."""
        in_order, late = self._in_order, self._late
        while in_order and in_order[0].state != QUEUED:
            in_order.popleft().in_line = False
        while late and late.first[-1].state != QUEUED:
            late.pop_first()[-1].in_line = False
        if late and (not in_order or late.first[:4] < _key(in_order[0])):
            return late.first[-1]
        return in_order[0] if in_order else None

    def pop(self) -> Job | None:
        """Remove and return the next job. The caller must change its state."""
        in_order = self._in_order
        if in_order and not (self._late or self._groups) and in_order[0].state == QUEUED:
            job = in_order.popleft()
        else:
            oldest = self.oldest()
            if oldest is None:
                return None
            job = oldest
            if self._groups is not None and self._groups.take(job):
                pass
            elif in_order and in_order[0] is job:
                in_order.popleft()
            elif self._late:
                self._late.pop_first()
        job.in_line = False
        self.length -= 1
        return job

    def pop_many(self, count: int) -> list[Job]:
        """Remove and return up to `count` jobs in the order of delivery. The caller must change
        their states."""
        jobs: list[Job] = []
        in_order = self._in_order
        while in_order and not (self._late or self._groups) and len(jobs) < count:
            job = in_order.popleft()
            job.in_line = False
            if job.state == QUEUED:
                jobs.append(job)
        if self._groups is not None and self._oldest_plain() is None:
            jobs += self._groups.take_many(count - len(jobs))
        self.length -= len(jobs)
        while (
            (self._late or self._groups) and len(jobs) < count and (late := self.pop()) is not None
        ):
            jobs.append(late)
        return jobs

    def peek(self, count: int) -> list[Job]:
        """Up to `count` jobs in the order of delivery. With a negative count: the last ones by
        priority and age, regardless of groups, from the last."""
        if count >= 0:
            return list(islice(self.in_order(), min(count, len(self))))
        lines = self._groups.lines() if self._groups is not None else []
        ends = [reversed(each) for each in (self._late or (), *lines)]
        lates = [(entry[-1] for entry in end) for end in ends]
        found = _queued(heapq.merge(reversed(self._in_order), *lates, key=_key, reverse=True))
        return list(islice(found, min(-count, len(self))))

    def in_order(self) -> Iterator[Job]:
        """The jobs in the order of delivery, for as long as none is enqueued or removed."""
        late = (entry[-1] for entry in self._late or ())
        found = _queued(heapq.merge(self._in_order, late, key=_key))
        return found if self._groups is None else self._groups.in_turn(found)

    def entries(self) -> list[Job]:
        """All jobs, mostly from the last to the first, including some that are no longer queued."""
        lines = self._groups.lines() if self._groups is not None else []
        grouped = [entry[-1] for line in lines for entry in reversed(line)]
        return [*grouped, *(entry[-1] for entry in self._late or ()), *reversed(self._in_order)]

    def sweep(self) -> None:
        """Drop the entries of jobs that are no longer queued."""
        late = self._late
        for job in (*self._in_order, *(entry[-1] for entry in late or ())):
            job.in_line = job.state == QUEUED
        self._in_order = deque(job for job in self._in_order if job.in_line)
        if late is not None:
            late.only(entry for entry in late if entry[-1].in_line)
        if self._groups is not None:
            self._groups.sweep()


def _queued(jobs: Iterable[Job]) -> Iterator[Job]:
    return (job for job in jobs if job.state == QUEUED)


def _key(job: Job) -> Key:
    return (-job.priority, job.made, job.number, job.id)
