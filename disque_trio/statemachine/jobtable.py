"""The table of a node's jobs: a dictionary, and a linked list in order of insertion.

The linked list supports walks over all jobs in steps, while jobs are added and dropped: an
iteration over a dictionary cannot be resumed after a change, and copying a million ids takes too
long.

Owns `Job.before` and `Job.after`.
"""

from disque_trio.statemachine.base import JobId
from disque_trio.statemachine.job import Job


class JobTable:
    """The only writer of the dictionary of jobs."""

    __slots__ = ("_by_id", "_first", "_last", "_walks")

    def __init__(self, by_id: dict[JobId, Job]) -> None:
        self._by_id = by_id
        self._first: Job | None = None
        self._last: Job | None = None
        self._walks: list[Walk] = []
        """Walks that have not ended."""

    def put(self, job: Job) -> None:
        """Add a job that is not in the table."""
        self._by_id[job.id] = job
        last = self._last
        if last is None:
            self._first = job
        else:
            job.before = last
            last.after = job
        self._last = job

    def shrink(self) -> None:
        """Free the memory that an empty dictionary keeps after entries were removed one by one."""
        if not self._by_id:
            self._by_id.clear()

    def drop(self, job: Job) -> None:
        """Remove a job."""
        del self._by_id[job.id]
        if self._walks:
            for walk in [walk for walk in self._walks if walk.next is job or walk.last is job]:
                walk.pass_by(job)
        before, after = job.before, job.after
        if before is None:
            self._first = after
        else:
            before.after = after
        if after is None:
            self._last = before
        else:
            after.before = before
        job.before = job.after = None

    def walk(self) -> "Walk":
        """Begin a walk over all jobs."""
        walk = Walk(self._walks, self._first, self._last)
        if not walk.is_over:
            self._walks.append(walk)
        return walk


class Walk:
    """An iterator over the jobs that exist when it begins, in order, without those dropped
    meanwhile.

    It may be paused while jobs are added and dropped. A walk that does not run to its end must be
    ended with `end`: for each dropped job, the table checks whether it is the `next` or the `last`
    of a walk.
    """

    __slots__ = ("_all", "last", "next")

    def __init__(self, all_: "list[Walk]", first: Job | None, last: Job | None) -> None:
        self._all = all_
        self.next = first
        self.last = last

    @property
    def is_over(self) -> bool:
        """Has the walk ended?"""
        return self.next is None

    def __iter__(self) -> "Walk":
        return self

    def __next__(self) -> Job:
        job = self.next
        if job is None:
            raise StopIteration
        self._step(job)
        return job

    def pass_by(self, job: Job) -> None:
        """Skip this job, the walk's next or last one, which is about to be dropped."""
        if job is self.next:
            self._step(job)
        if job is self.last:
            self.last = job.before

    def go_on(self, job: Job | None) -> None:
        """Continue with this job, which is later in the walk; None ends the walk."""
        if job is None:
            self.end()
        else:
            self.next = job

    def end(self) -> None:
        """End the walk."""
        if self.next is not None:
            self.next = None
            self._all.remove(self)

    def _step(self, job: Job) -> None:
        if job is self.last or job.after is None:
            self.end()
        else:
            self.next = job.after
