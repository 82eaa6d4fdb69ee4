"""Judges queues: H8 (MAXLEN) and H9 (order).

A client cannot observe at which node a job is queued. So the maximum length and the order are
judged only for queues that were used through one node.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import attrs

from disque_trio.sim.histories.facts import Add, Facts, Job, queues_of
from disque_trio.sim.histories.records import ENDLESS, Seconds, Violation
from disque_trio.terminal.counting import counted


@attrs.define(eq=False)
class Queue:
    """The calls about one queue."""

    name: str
    adds: list[Add] = attrs.Factory(list)
    jobs: list[Job] = attrs.Factory(list)
    nodes: set[str] = attrs.Factory(set)
    """The nodes to which these calls were sent."""
    known_until: Seconds = ENDLESS
    """When the first GETJOB without an outcome began, which may have taken jobs."""

    @property
    def is_lone(self) -> bool:
        """Was it used through one node only, and is that known?"""
        return len(self.nodes) == 1 and "" not in self.nodes


def queues(facts: Facts) -> list[Queue]:
    """Return all queues that had an ADDJOB."""
    found: dict[str, Queue] = {}
    for add in facts.adds:
        queue = found.setdefault(add.queue, Queue(add.queue))
        queue.adds.append(add)
        queue.nodes.add(add.call.node)
    for call in facts.gets:
        for name in queues_of(call):
            if (known := found.get(name)) is not None:
                known.nodes.add(call.node)
                if not call.is_ok and call.error is None:
                    known.known_until = min(known.known_until, call.begin)
    for job in facts.jobs.values():
        if (known := found.get(job.queue)) is not None:
            known.jobs.append(job)
            known.nodes.update(report.call.node for report in job.reports)
    return list(found.values())


def check_lengths(facts: Facts) -> Iterator[Violation]:
    """H8: MAXLEN refuses an ADDJOB only if the queue may have that many jobs, and accepts one only
    if it may have fewer."""
    if not facts.history.has_all_clients:
        return
    for queue in queues(facts):
        limited = [add for add in queue.adds if "maxlen" in add.options]
        if limited:
            lengths = _Lengths(facts, queue)
            for add in limited:
                yield from lengths.check(add)


class _Lengths:
    """Bounds for the length of a queue."""

    def __init__(self, facts: Facts, queue: Queue) -> None:
        self._history = facts.history
        self._known_until = queue.known_until
        self._first = min(add.begin for add in queue.adds)
        may_exist = [add for add in queue.adds if add.id or add.is_unknown]
        self._begins = sorted(add.begin for add in may_exist)
        self._overs = sorted(
            min(report.call.end for report in job.reports_of("ACKJOB") if report.call.is_ok)
            for job in queue.jobs
            if any(report.call.is_ok for report in job.reports_of("ACKJOB"))
        )
        is_judged = queue.is_lone and not facts.queue_calls.get(queue.name)
        waiting = [job for job in queue.jobs if job.is_plain] if is_judged else []
        self._queued = sorted(job.adds[0].end for job in waiting)
        self._touched = sorted(map(_touched, waiting))

    def check(self, add: Add) -> Iterator[Violation]:
        most, error = int(add.seconds("maxlen", 0)), add.call.error or ""
        is_calm = self._history.is_calm(self._first, add.end)
        if error.startswith("MAXLEN"):
            jobs = bisect_left(self._begins, add.end)
            if is_calm:
                jobs -= bisect_right(self._overs, add.begin - self._history.limits.slack)
            if jobs < most:
                yield _of(add, "H8", f"was refused with MAXLEN {most}, when the queue had at most "
                          f"{counted(jobs, 'job')}")  # fmt: skip
        elif add.id and is_calm and add.end < self._known_until:
            jobs = bisect_right(self._queued, add.begin)
            jobs -= bisect_right(self._touched, add.end)
            if jobs >= most:
                yield _of(add, "H8", f"was accepted with MAXLEN {most}, when the queue had at "
                          f"least {counted(jobs, 'job')}")  # fmt: skip


def _touched(job: Job) -> Seconds:
    """Return until when the job was certainly queued."""
    add = job.adds[0]
    begins = [each.begin for each in job.deliveries] + [each.call.begin for each in job.reports]
    return min([add.begin + add.ttl, *begins])


def _of(add: Add, name: str, text: str) -> Violation:
    return Violation(property=name, text=text, job=add.id, at=add.end, lines=(add.call.line,))


def check_order(facts: Facts) -> Iterator[Violation]:
    """H9: a job that certainly waited, and comes first, is not delivered after another one."""
    history = facts.history
    if not history.has_all_clients:
        return
    for queue in queues(facts):
        plain = [job for job in queue.jobs if _is_ordered(job)]
        begin = min(add.begin for add in queue.adds)
        if (
            queue.is_lone
            and not facts.queue_calls.get(queue.name)
            and len(plain) == len(queue.jobs)
            and history.is_calm(begin, history.end)
        ):
            yield from _check_order(plain, queue.known_until)


def _is_ordered(job: Job) -> bool:
    """Is its place in the queue known? It is not if the job was returned, or queued later."""
    others = any(job.reports_of("NACK", "RELEASE", "ENQUEUE", "DEQUEUE", "DELJOB"))
    return job.is_plain and "async" not in job.adds[0].options and not others


def _priority(job: Job) -> int:
    return int(job.adds[0].seconds("priority", 0))


def _check_order(jobs: list[Job], until: Seconds) -> Iterator[Violation]:
    added = sorted(jobs, key=lambda job: job.adds[0].end)
    delivered = sorted(
        (job for job in jobs if job.deliveries and job.deliveries[0].end < until),
        key=lambda job: job.deliveries[0].begin,
    )
    waiting: dict[int, list[tuple[Seconds, str, Seconds, Job]]] = {}
    """By priority: when the job was added, its id, and until when it was certainly queued."""
    next_added = 0
    for job in delivered:
        delivery = job.deliveries[0]
        while next_added < len(added) and added[next_added].adds[0].end < delivery.begin:
            other = added[next_added]
            heap = waiting.setdefault(_priority(other), [])
            heapq.heappush(heap, (other.adds[0].end, other.id, _touched(other), other))
            next_added += 1
        for priority in sorted(waiting, reverse=True):
            heap = waiting[priority]
            while heap and heap[0][2] < delivery.end:
                heapq.heappop(heap)
            if not heap or priority < _priority(job):
                continue
            end, _, _, other = heap[0]
            if priority > _priority(job) or end < job.adds[0].begin:
                yield _disorder(job, other)
                break


def _disorder(job: Job, other: Job) -> Violation:
    why = "has a higher priority"
    if _priority(job) == _priority(other):
        why = "is older"
    delivery = job.deliveries[0]
    lines = [other.adds[0].call.line, job.adds[0].call.line, delivery.call.line]
    lines += [each.call.line for each in other.deliveries[:1]]
    at = delivery.end if delivery.end < ENDLESS else delivery.begin
    text = f"was delivered before {other.id}, which {why} and was queued"
    return Violation(property="H9", text=text, job=job.id, at=at, lines=tuple(lines))
