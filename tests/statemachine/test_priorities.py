"""PRIORITY: the higher one first, then the older one."""

import attrs
from hypothesis import given
from hypothesis import strategies as st

from disque_trio.statemachine.base import QUEUED
from disque_trio.statemachine.extensions import Extensions
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import NeedJobs, YourJobs
from disque_trio.statemachine.queue import Queue
from tests.rig import CALM, JOB, N2, Rig, copy_of


def bodies(rig: Rig, *words: str | int) -> list[str]:
    """What GETJOB takes, or QPEEK shows."""
    reply = rig.ask(*words)
    assert isinstance(reply, list)
    return [job[2].decode() for job in reply if isinstance(job, list)]  # type: ignore[union-attr]


def with_four(rig: Rig) -> Rig:
    for body, priority in [("low", -1), ("plain", 0), ("urgent", 9), ("urgent too", 9)]:
        rig.add("REPLICATE", 1, "PRIORITY", priority, body=body)
    rig.sent()
    return rig


IN_ORDER = ["urgent", "urgent too", "plain", "low"]


def test_getjob_takes_the_highest_priority_first_then_the_oldest() -> None:
    assert bodies(with_four(Rig()), "GETJOB", "COUNT", 9, "FROM", "q") == IN_ORDER


def test_one_by_one_as_well() -> None:
    rig = with_four(Rig())

    assert [bodies(rig, "GETJOB", "FROM", "q") for _ in range(4)] == [[each] for each in IN_ORDER]


def test_qpeek_shows_them_in_that_order_and_backwards() -> None:
    rig = with_four(Rig())

    assert bodies(rig, "QPEEK", "q", 3) == IN_ORDER[:3]
    assert bodies(rig, "QPEEK", "q", -3) == IN_ORDER[:0:-1]


def test_several_queues_are_served_by_turns_all_the_same() -> None:
    rig = with_four(Rig())
    rig.add("PRIORITY", 100, queue="mail", body="mail")

    assert bodies(rig, "GETJOB", "COUNT", 3, "FROM", "q", "mail") == [
        "urgent",
        "mail",
        "urgent too",
    ]


def test_a_job_that_comes_back_has_its_place_again() -> None:
    rig = with_four(Rig())
    urgent = next(job for job in rig.node.jobs.values() if job.body == b"urgent")
    bodies(rig, "GETJOB", "COUNT", 3, "FROM", "q")

    rig.ask("NACK", urgent.id)

    assert bodies(rig, "GETJOB", "COUNT", 2, "FROM", "q") == ["urgent", "low"]


def test_a_job_with_priority_moves_to_another_node_first() -> None:
    rig = with_four(Rig(peers=1, config=CALM, ours=True))

    rig.message(N2, NeedJobs(b"q", 2, waits=True))

    [given] = [message for _, message in rig.sent() if isinstance(message, YourJobs)]
    assert [copy.body for copy in given.copies] == [b"urgent", b"urgent too"]


def test_an_imported_job_has_its_place_by_its_priority() -> None:
    rig = with_four(Rig(peers=1, config=CALM, ours=True))
    copy = attrs.evolve(copy_of(), body=b"imported", extensions=Extensions(priority=5))

    rig.message(N2, YourJobs((copy,)))

    assert rig.node.jobs[JOB].state == QUEUED
    assert bodies(rig, "QPEEK", "q", 9) == [*IN_ORDER[:2], "imported", *IN_ORDER[2:]]


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 3), st.booleans()), max_size=40))
def test_the_order_is_always_that_of_priority_and_creation(
    jobs: list[tuple[int, int, bool]],
) -> None:
    queue = Queue(b"q", 0, 0)
    expected: list[Job] = []
    for number, (priority, made, takes) in enumerate(jobs):
        job = attrs.evolve(
            Rig().add(),
            made=made,
            number=number,
            state=QUEUED,
            extensions=Extensions(priority=priority) if priority else None,
        )
        queue.add(job)
        expected.append(job)
        expected.sort(key=lambda each: (-each.priority, each.made, each.number))
        assert queue.peek(len(expected)) == expected
        assert queue.peek(-len(expected)) == expected[::-1]
        if takes:
            assert queue.pop() is expected.pop(0)
    while expected:
        taken = queue.pop_many(100)
        assert taken == [expected.pop(0) for _ in taken]


def test_a_worker_is_told_the_priority() -> None:
    rig = Rig()
    rig.add("PRIORITY", -7)

    reply = rig.ask("GETJOB", "WITHMETA", "FROM", "q")

    assert isinstance(reply, list)
    [job] = reply
    assert isinstance(job, list)
    assert job[job.index(b"priority") + 1] == -7


def test_a_body_that_is_wanted_soon_is_not_spilled() -> None:
    rig = Rig()
    for _ in range(40):
        rig.add(body="x" * 600)
    rig.node.memory.spillable = {}

    first = rig.add("PRIORITY", 1, body="x" * 600)
    last = rig.add("PRIORITY", -1, body="x" * 600)

    assert list(rig.node.memory.spillable) == [last.id]
    assert rig.queue().peek(1) == [first]
    rig.node.memory.spillable = None
