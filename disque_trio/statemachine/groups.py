"""The jobs of a queue that have a GROUP, and the turns of the groups (decision 135).

Within one priority, the groups of a queue are served in turn, one job each. The jobs without a
group count as one more group. Within a group, jobs are in queue order. A group leaves the ring with
its last job, and joins it at the end with its next one.

`queue` keeps the jobs without a group, so the first job with a group moves none of them. The ring
of each priority has a place for them. Owns `Job.in_line`, with `queue`, and fields of `Level`,
`Line` and `Groups`.
"""

from collections import deque
from collections.abc import Iterable, Iterator

import attrs

from disque_trio.statemachine.base import QUEUED
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.sorted_entries import Entry, SortedEntries


@attrs.define(eq=False, weakref_slot=False)
class Line:
    """The jobs of one group and one priority. If there are many groups, most have few jobs or
    one."""

    group: bytes | None
    """None for the place of the jobs without a group, which are not kept here."""
    first: Entry | None = None
    rest: SortedEntries | None = None
    """The entries after the first; None until there was one."""
    is_in_ring: bool = True
    """False from a turn while its group was parked until the group is unparked."""

    def __len__(self) -> int:
        return (self.first is not None) + len(self.rest or ())

    def __bool__(self) -> bool:
        return self.first is not None

    def __iter__(self) -> Iterator[Entry]:
        if self.first is not None:
            yield self.first
        yield from self.rest or ()

    def __reversed__(self) -> Iterator[Entry]:
        if self.rest is not None:
            yield from reversed(self.rest)
        if self.first is not None:
            yield self.first

    def add(self, entry: Entry) -> None:
        """Add an entry in order."""
        if self.first is None:
            self.first = entry
            return
        if entry < self.first:
            entry, self.first = self.first, entry
        if self.rest is None:
            self.rest = SortedEntries()
        self.rest.add(entry)

    def pop_first(self) -> None:
        """Remove the first entry."""
        self.first = self.rest.pop_first() if self.rest else None

    def only(self, kept: Iterable[Entry]) -> None:
        """Keep only these entries, which must be in order."""
        entries = list(kept)
        self.first = entries[0] if entries else None
        if self.rest is not None:
            self.rest.only(entries[1:])

    def queued(self) -> Iterator[Job]:
        """Its queued jobs, in order."""
        return (entry[-1] for entry in self if entry[-1].state == QUEUED)


@attrs.define(eq=False, weakref_slot=False)
class Level:
    """The groups of one priority."""

    rank: int
    """The priority negated."""
    lines: dict[bytes, Line] = attrs.Factory(dict)
    ring: deque[Line] = attrs.Factory(lambda: deque([Line(None)]))
    """The lines in the order of their turns."""


@attrs.define(eq=False, weakref_slot=False)
class Groups:
    """The groups of one queue. A queue without grouped jobs has no such record."""

    levels: list[Level] = attrs.Factory(list)
    """Ordered by rank."""
    count: int = 0
    """The number of entries, including those of jobs that are no longer queued."""
    parked: dict[bytes, None] = attrs.Factory(dict)
    """Groups that get no turn, because they have reached a limit, in the order in which they were
    parked."""
    _turn: Level | None = None
    """The level of the job that `next` last returned."""

    def __len__(self) -> int:
        return self.count

    def __bool__(self) -> bool:
        return True

    def add(self, group: bytes, entry: Entry) -> None:
        """Add a job of this group."""
        level = self._level(entry[0])
        line = level.lines.get(group)
        if line is None:
            line = level.lines[group] = Line(group)
            if self.parked and group in self.parked:
                line.is_in_ring = False
            else:
                level.ring.append(line)
        line.add(entry)
        self.count += 1

    def _level(self, rank: int) -> Level:
        at = 0
        for level in self.levels:
            if level.rank == rank:
                return level
            if level.rank > rank:
                break
            at += 1
        self.levels.insert(at, Level(rank))
        return self.levels[at]

    def next(self, plain: Job | None) -> Job | None:
        """The next job to deliver: of a group that is not parked, or `plain`, the first job without
        a group. Drops levels without jobs of groups."""
        at = 0
        while at < len(self.levels):
            level = self._turn = self.levels[at]
            rank = level.rank if plain is None else -plain.priority
            if plain is not None and rank < level.rank and level.lines:
                return plain
            job = self._first(level, plain if rank == level.rank else None)
            if job is not None:
                return job
            if not level.lines:
                del self.levels[at]
            elif plain is not None and rank == level.rank:
                return plain
            else:
                at += 1
        self._turn = None
        return plain

    def _first(self, level: Level, plain: Job | None) -> Job | None:
        """The next job of this level. `plain` is the first job without a group, if it has this
        priority. None if no group of the level has a turn."""
        ring = level.ring
        while len(ring) > 1:
            line = ring[0]
            if line.group is None:
                if plain is not None:
                    return plain
                ring.rotate(-1)
                continue
            if self.parked and line.group in self.parked:
                line.is_in_ring = False
                ring.popleft()
                continue
            while line.first is not None:
                job = line.first[-1]
                if job.state == QUEUED:
                    return job
                self._drop_first(line)
                job.in_line = False
            ring.popleft()
            del level.lines[line.group]
        return None

    def _drop_first(self, line: Line) -> None:
        line.pop_first()
        self.count -= 1

    def take(self, job: Job) -> bool:
        """Remove the job that `next` has just returned, and end its group's turn. Returns False if
        the job has no group, so it is not kept here."""
        level = self._turn
        if level is None:
            return False
        line = level.ring[0]
        if line.group is not None and line.first is not None and line.first[-1] is job:
            self._drop_first(line)
            if not line:
                level.ring.popleft()
                del level.lines[line.group]
                return True
            level.ring.rotate(-1)
            return True
        if line.group is None and level.rank == -job.priority:
            level.ring.rotate(-1)
        return False

    def take_many(self, count: int) -> list[Job]:
        """Take up to `count` jobs in turn. All jobs of the queue must have a group, and no group
        may be parked."""
        jobs: list[Job] = []
        while self.levels and len(jobs) < count:
            level = self.levels[0]
            ring, lines = level.ring, level.lines
            while len(ring) > 1 and len(jobs) < count:
                line = ring.popleft()
                while line.first is not None:
                    job = line.first[-1]
                    self._drop_first(line)
                    job.in_line = False
                    if job.state == QUEUED:
                        jobs.append(job)
                        break
                if line.first is not None or line.group is None:
                    ring.append(line)
                else:
                    del lines[line.group]
            if len(ring) == 1:
                del self.levels[0]
        return jobs

    def has_before(self, job: Job, group: bytes, count: int) -> bool:
        """Are there more than `count` jobs before this one, which was just added? An estimate that
        assumes that all groups have as many jobs as its own."""
        level = self._level(-job.priority)
        return len(level.lines[group]) * len(level.ring) > count

    def in_turn(self, plain: Iterator[Job]) -> Iterator[Job]:
        """All queued jobs, in the order of delivery. `plain` has those without a group, in
        order."""
        first = next(plain, None)
        for level in self.levels:
            while first is not None and -first.priority < level.rank:
                yield first
                first = next(plain, None)
            turns = _turns(level, has_parked=bool(self.parked))
            while turns is not None:
                again: list[Iterator[Job] | None] = []
                for jobs in turns:
                    if jobs is not None:
                        job = next(jobs, None)
                    elif first is not None and -first.priority == level.rank:
                        job, first = first, next(plain, None)
                    else:
                        job = None
                    if job is not None:
                        yield job
                        again.append(jobs)
                turns = again or None
        if first is not None:
            yield first
        yield from plain

    def park(self, group: bytes) -> None:
        """Skip the turns of this group until it is unparked."""
        self.parked[group] = None

    def unpark(self, group: bytes) -> None:
        """Give the group turns again, the first one at once: it was parked at its turn, and grants
        of its limit expire."""
        self.parked.pop(group, None)
        for level in self.levels:
            line = level.lines.get(group)
            if line is not None and not line.is_in_ring:
                line.is_in_ring = True
                level.ring.appendleft(line)

    def unpark_all(self) -> None:
        """Unpark all groups. The one that was parked first has the first turn."""
        for group in reversed(list(self.parked)):
            self.unpark(group)

    def of(self, group: bytes) -> list[Line]:
        """The lines of one group, the highest priority first."""
        return [line for level in self.levels if (line := level.lines.get(group)) is not None]

    def parked_count(self) -> int:
        """The number of entries of parked groups."""
        return sum(len(line) for group in self.parked for line in self.of(group))

    def lines(self) -> list[Line]:
        """The lines of all groups and priorities."""
        return [line for level in self.levels for line in level.lines.values()]

    def sweep(self) -> None:
        """Drop the entries of jobs that are no longer queued. The other groups keep their
        places."""
        for level in self.levels:
            for line in level.lines.values():
                for entry in line:
                    job = entry[-1]
                    job.in_line = job.state == QUEUED
                line.only(entry for entry in line if entry[-1].in_line)
            level.lines = {group: line for group, line in level.lines.items() if line}
            level.ring = deque([line for line in level.ring if line.group is None or line])
        self.levels = [level for level in self.levels if level.lines]
        self.count = sum(map(len, self.lines()))


def _turns(level: Level, *, has_parked: bool) -> Iterable[Iterator[Job] | None] | None:
    """For each group in the order of turns, an iterator over its queued jobs; None for the jobs
    without a group."""
    lines = list(level.ring)
    if has_parked:
        lines += [line for line in level.lines.values() if not line.is_in_ring]
    return (None if line.group is None else line.queued() for line in lines)
