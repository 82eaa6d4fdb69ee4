import random
from collections.abc import Iterator
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from disque_trio.statemachine.base import ACTIVE, QUEUED, JobId
from disque_trio.statemachine.job import STAMPS, Job
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.sorted_entries import PIECE, SortedEntries


def job(ctime: int, name: str = "A") -> Job:
    """A queued job."""
    return Job(
        id=b"D-bbbbbbbb-%b-05a1" % (name.encode() * 24),
        queue=b"q",
        body=b"",
        replicas=1,
        made=ctime // STAMPS,
        number=ctime % STAMPS,
        expires=1000,
        delay=0,
        retry=1000,
        holders=(),
        state=QUEUED,
    )


def queue_of(*jobs: Job) -> Queue:
    queue = Queue(b"q", 0, 0)
    for each in jobs:
        queue.add(each)
    return queue


def take_out(queue: Queue, leaver: Job) -> None:
    leaver.state = ACTIVE
    queue.discard()


def _noting(looked: list[Any], entries: Iterator[Any]) -> Iterator[Any]:
    for entry in entries:
        looked.append(entry)
        yield entry


def test_an_empty_queue_is_a_queue() -> None:
    queue = queue_of()

    assert queue
    assert len(queue) == 0
    assert queue.oldest() is None
    assert queue.pop() is None
    assert queue.peek(3) == []


def test_jobs_come_in_the_order_of_their_creation() -> None:
    young, old, middle = job(30), job(10), job(20)
    queue = queue_of(young, old, middle)

    assert [queue.pop(), queue.pop(), queue.pop()] == [old, middle, young]


def test_many_are_taken_in_the_same_order() -> None:
    young, old, middle, gone = job(30), job(10, "B"), job(20), job(5)
    queue = queue_of(gone, young, old, middle)
    take_out(queue, gone)

    assert queue.pop_many(2) == [old, middle]
    assert queue.pop_many(9) == [young]
    assert queue.pop_many(9) == []
    assert len(queue) == 0


def test_jobs_of_the_same_moment_come_in_the_order_of_their_ids() -> None:
    second, first = job(10, "B"), job(10, "A")

    assert queue_of(second, first).peek(2) == [first, second]


def test_peeking_takes_nothing_and_looks_from_either_end() -> None:
    jobs = [job(10), job(40), job(20), job(30)]
    queue = queue_of(*jobs)

    assert [each.ctime for each in queue.peek(3)] == [10, 20, 30]
    assert [each.ctime for each in queue.peek(-3)] == [40, 30, 20]
    assert queue.peek(0) == []
    assert len(queue.peek(1 << 63)) == len(queue.peek(-(1 << 63))) == len(queue) == 4


@pytest.mark.pure  # methods are replaced, which the compiled form does not look up
def test_peeking_at_few_of_many_late_jobs_looks_at_few(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Any] = []
    queue = queue_of(*(job(n) for n in range(3 * PIECE, 0, -1)))
    intact = SortedEntries.__iter__, SortedEntries.__reversed__
    monkeypatch.setattr(SortedEntries, "__iter__", lambda self: _noting(looked, intact[0](self)))
    monkeypatch.setattr(
        SortedEntries, "__reversed__", lambda self: _noting(looked, intact[1](self))
    )

    assert [each.ctime for each in queue.peek(3)] == [1, 2, 3]
    assert [each.ctime for each in queue.peek(-2)] == [3 * PIECE, 3 * PIECE - 1]
    assert len(looked) < 20


def test_a_job_that_left_the_middle_is_not_delivered() -> None:
    first, middle, last = job(10), job(20), job(30)
    queue = queue_of(first, middle, last)
    take_out(queue, middle)

    assert queue.peek(3) == [first, last]
    assert [queue.pop(), queue.pop(), queue.pop()] == [first, last, None]


def test_a_job_that_comes_back_finds_its_old_place() -> None:
    first, middle, last = job(10), job(20), job(30)
    queue = queue_of(first, middle, last)
    take_out(queue, middle)
    middle.state = QUEUED
    queue.add(middle)

    assert [queue.pop(), queue.pop(), queue.pop()] == [first, middle, last]


def test_a_job_dropped_and_brought_anew_stands_beside_its_old_entry() -> None:
    youngest, dropped, anew = job(30), job(10), job(10)
    queue = queue_of(youngest, dropped)
    take_out(queue, dropped)
    queue.add(anew)

    assert queue.peek(2) == [anew, youngest]
    assert queue.pop() is anew


def test_entries_left_behind_are_swept_when_they_outnumber_the_jobs() -> None:
    jobs = [job(n) for n in range(200)]
    late = [job(n, "B") for n in range(50)]
    queue = queue_of(*jobs, *late)
    for leaver in (*jobs[5:], *late[5:]):
        take_out(queue, leaver)

    assert sum(each.in_line for each in (*jobs, *late)) <= 2 * 10 + 64
    assert queue.peek(100) == [n for pair in zip(jobs[:5], late[:5], strict=True) for n in pair]


def test_a_swept_job_may_come_back_to_another_queue() -> None:
    leaver = job(10)
    queue = queue_of(leaver)
    take_out(queue, leaver)
    queue.sweep()
    leaver.state = QUEUED

    assert queue_of(leaver).pop() is leaver


class QueueAgainstAList(RuleBasedStateMachine):
    """The queue, and a plain dict that is sorted whenever it is looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = Queue(b"q", 0, 0)
        self.out: list[Job] = []
        self.queued: dict[JobId, Job] = {}
        self.made = 0

    def model(self) -> list[Job]:
        return sorted(self.queued.values(), key=lambda each: (each.ctime, each.id))

    @rule(ctime=st.integers(0, 20), many=st.integers(1, 40))
    def add_new(self, ctime: int, many: int) -> None:
        for _ in range(many):
            self.made += 1
            new = job(ctime)
            new.id = b"D-bbbbbbbb-%024d-05a1" % (self.made * 7919 % 100_000)
            self.queue.add(new)
            self.queued[new.id] = new

    @precondition(lambda self: self.out)
    @rule(which=st.randoms(use_true_random=False))
    def add_again(self, which: random.Random) -> None:
        back = self.out.pop(which.randrange(len(self.out)))
        back.state = QUEUED
        self.queue.add(back)
        self.queued[back.id] = back

    @precondition(lambda self: self.out)
    @rule(which=st.randoms(use_true_random=False))
    def add_as_a_new_record(self, which: random.Random) -> None:
        gone = self.out.pop(which.randrange(len(self.out)))
        anew = job(gone.ctime)
        anew.id = gone.id
        self.queue.add(anew)
        self.queued[anew.id] = anew

    @rule()
    def pop(self) -> None:
        popped = self.queue.pop()
        expected = self.model()
        assert popped is (expected[0] if expected else None)
        if popped is not None:
            popped.state = ACTIVE
            del self.queued[popped.id]
            self.out.append(popped)

    @precondition(lambda self: self.queued)
    @rule(which=st.randoms(use_true_random=False), many=st.integers(1, 60))
    def discard(self, which: random.Random, many: int) -> None:
        for _ in range(min(many, len(self.queued))):
            leaver = self.queued.pop(which.choice(list(self.queued)))
            take_out(self.queue, leaver)
            self.out.append(leaver)

    @rule()
    def sweep(self) -> None:
        self.queue.sweep()
        assert not any(each.in_line for each in self.out)

    @rule(count=st.integers(1, 30))
    def peek(self, count: int) -> None:
        expected = self.model()
        assert self.queue.peek(count) == expected[:count]
        assert self.queue.peek(-count) == expected[::-1][:count]

    @invariant()
    def counts_and_names_the_oldest(self) -> None:
        expected = self.model()
        assert len(self.queue) == len(expected)
        assert self.queue.oldest() is (expected[0] if expected else None)


TestQueueAgainstAList: Any = QueueAgainstAList.TestCase
