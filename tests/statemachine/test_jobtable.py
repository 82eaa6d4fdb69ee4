"""The table of jobs, and walks through it while jobs come and go."""

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from disque_trio.statemachine.base import JobId
from disque_trio.statemachine.copies import adopt
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.jobtable import JobTable, Walk
from tests.rig import Rig, copy_of

RIG = Rig()


def job(number: int) -> Job:
    return adopt(RIG.node, copy_of(b"D-bbbbbbbb-%024d-05a1" % number))


def table(count: int) -> tuple[JobTable, list[Job]]:
    jobs = [job(number) for number in range(count)]
    table = JobTable({})
    for each in jobs:
        table.put(each)
    return table, jobs


def test_a_walk_shows_every_job_in_the_order_in_which_they_came() -> None:
    jobs, all_ = table(5)

    assert list(jobs.walk()) == all_


def test_a_walk_shows_what_was_there_when_it_began_and_has_not_gone() -> None:
    jobs, all_ = table(5)
    walk = jobs.walk()
    assert next(walk) is all_[0]

    jobs.drop(all_[1])
    jobs.drop(all_[4])
    jobs.put(job(7))

    assert list(walk) == all_[2:4]
    assert walk.is_over


def test_a_walk_is_over_when_the_rest_has_gone() -> None:
    jobs, all_ = table(2)
    walk = jobs.walk()
    next(walk)

    jobs.drop(all_[1])
    jobs.put(all_[1])

    assert walk.is_over
    assert list(walk) == []


def test_to_show_one_job_does_not_show_all() -> None:
    _, all_ = table(3)

    assert all_[0].id in repr(all_[0]).encode()
    assert all_[1].id not in repr(all_[0]).encode()


def test_an_empty_table_has_nothing_to_show() -> None:
    assert JobTable({}).walk().is_over


def test_a_walk_may_be_ended_early_and_twice() -> None:
    jobs, _ = table(2)
    walk = jobs.walk()

    walk.end()
    walk.end()

    assert list(walk) == []


class Walks(RuleBasedStateMachine):
    """Against a list."""

    def __init__(self) -> None:
        super().__init__()
        self.by_id: dict[JobId, Job] = {}
        self.table = JobTable(self.by_id)
        self.jobs: list[Job] = []
        self.walks: list[tuple[Walk, list[Job]]] = []
        self.count = 0

    @rule()
    def come(self) -> None:
        self.count += 1
        new = job(self.count)
        self.table.put(new)
        self.jobs.append(new)

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def go(self, data: st.DataObject) -> None:
        gone = data.draw(st.sampled_from(self.jobs))
        self.table.drop(gone)
        self.jobs.remove(gone)
        for _, left in self.walks:
            if gone in left:
                left.remove(gone)

    @rule()
    def begin(self) -> None:
        self.walks.append((self.table.walk(), list(self.jobs)))

    @precondition(lambda self: self.walks)
    @rule(data=st.data())
    def go_on(self, data: st.DataObject) -> None:
        walk, left = data.draw(st.sampled_from(self.walks))
        assert next(walk, None) is (left.pop(0) if left else None)

    @invariant()
    def both_agree(self) -> None:
        assert list(self.by_id.values()) == self.jobs
        assert [walk.is_over for walk, _ in self.walks] == [not left for _, left in self.walks]


TestWalks = Walks.TestCase
TestWalks.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
