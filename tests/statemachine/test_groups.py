"""GROUP: within one priority the groups of a queue are served in turn (decision 135)."""

from collections import Counter

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disque_trio.statemachine.base import ACTIVE, EXTENDS, QUEUED, Status
from disque_trio.statemachine.extensions import Extensions
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import NeedJobs, YourJobs
from disque_trio.statemachine.queue import Queue
from tests.rig import CALM, JOB, N2, Rig, copy_of
from tests.statemachine.test_priorities import bodies


def filled(rig: Rig, **jobs: int) -> Rig:
    """So many jobs of each group; those of `plain` have none. The bodies are numbered."""
    for group, count in jobs.items():
        for number in range(count):
            words = [] if group == "plain" else ["GROUP", group]
            rig.add("REPLICATE", 1, *words, body=f"{group}{number}")
    rig.sent()
    return rig


def has_groups(queue: Queue) -> bool:
    """Has it the records of groups?"""
    return queue._groups is not None


def with_three(rig: Rig) -> Rig:
    return filled(rig, plain=2, noisy=4, quiet=2)


def test_getjob_serves_the_groups_in_turn() -> None:
    rig = filled(Rig(), noisy=4, quiet=2, other=1)

    assert bodies(rig, "GETJOB", "COUNT", 9, "FROM", "q") == [
        "noisy0", "quiet0", "other0", "noisy1", "quiet1", "noisy2", "noisy3",
    ]  # fmt: skip


def test_one_by_one_as_well() -> None:
    rig = with_three(Rig())
    shown = bodies(rig, "QPEEK", "q", 9)

    assert [bodies(rig, "GETJOB", "FROM", "q") for _ in range(8)] == [[each] for each in shown]


def test_of_parked_groups_the_one_that_was_parked_first_has_the_first_turn() -> None:
    names = ["ann", "bob", "cid", "dan", "eve"]
    rig = filled(Rig(), **dict.fromkeys(names, 1))
    queue = rig.queue()
    for name in names:
        queue.park(name.encode())
        assert queue.oldest() is not None or name == names[-1]
    queue.unpark_all()

    assert bodies(rig, "GETJOB", "COUNT", 9, "FROM", "q") == [f"{name}0" for name in names]


def test_jobs_without_a_group_are_one_group_of_their_own() -> None:
    rig = with_three(Rig())

    taken = bodies(rig, "GETJOB", "COUNT", 6, "FROM", "q")

    assert Counter(each[:-1] for each in taken) == {"plain": 2, "noisy": 2, "quiet": 2}


def test_qpeek_shows_the_order_of_delivery() -> None:
    rig = with_three(Rig())

    shown = bodies(rig, "QPEEK", "q", 5)

    assert shown == bodies(rig, "GETJOB", "COUNT", 5, "FROM", "q")


def test_qpeek_from_the_other_end_shows_the_youngest_first() -> None:
    rig = with_three(Rig())
    rig.add("PRIORITY", -3, "GROUP", "noisy", body="low")

    shown = bodies(rig, "QPEEK", "q", -4)

    assert shown == ["low", "quiet1", "quiet0", "noisy3"]
    assert len(bodies(rig, "QPEEK", "q", -100)) == 9


def test_a_higher_priority_goes_first_whatever_the_groups() -> None:
    rig = filled(Rig(), noisy=3, quiet=1)
    rig.add("PRIORITY", 5, body="urgent")
    rig.add("PRIORITY", 5, "GROUP", "noisy", body="urgent noisy")
    rig.add("PRIORITY", -1, body="low")
    rig.add("PRIORITY", -2, body="lower")
    rig.add("PRIORITY", 9, body="most urgent")
    shown = bodies(rig, "QPEEK", "q", 9)

    taken = bodies(rig, "GETJOB", "COUNT", 9, "FROM", "q")

    assert taken == shown
    assert taken[0] == "most urgent"
    assert {*taken[1:3]} == {"urgent", "urgent noisy"}
    assert taken[3:] == ["noisy0", "quiet0", "noisy1", "noisy2", "low", "lower"]


def test_a_group_that_comes_again_takes_the_last_place() -> None:
    rig = filled(Rig(), a=1, b=2, c=1)
    assert bodies(rig, "GETJOB", "FROM", "q") == ["a0"]

    filled(rig, a=1)

    assert bodies(rig, "GETJOB", "COUNT", 9, "FROM", "q") == ["b0", "c0", "a0", "b1"]


def test_a_job_that_comes_back_has_its_place_in_its_group_again() -> None:
    rig = filled(Rig(), a=3, b=3)
    first = next(job for job in rig.node.jobs.values() if job.body == b"a0")
    bodies(rig, "GETJOB", "COUNT", 3, "FROM", "q")

    rig.ask("NACK", first.id)

    assert bodies(rig, "GETJOB", "COUNT", 4, "FROM", "q") == ["b1", "a0", "b2", "a2"]


def test_a_job_that_leaves_the_queue_is_passed_over_and_may_come_back() -> None:
    rig = filled(Rig(), a=2, b=2, c=1)
    for body in (b"a0", b"a1", b"c0"):
        job = next(job for job in rig.node.jobs.values() if job.body == body)
        rig.ask("DEQUEUE", job.id)
    first = next(job for job in rig.node.jobs.values() if job.body == b"a1")
    rig.ask("ENQUEUE", first.id)

    assert bodies(rig, "QPEEK", "q", 9) == ["a1", "b0", "b1"]
    assert bodies(rig, "GETJOB", "COUNT", 9, "FROM", "q") == ["a1", "b0", "b1"]
    assert rig.queue().oldest() is None


def test_entries_of_jobs_that_have_left_are_swept() -> None:
    rig = filled(Rig(), gone=90, some=40, plain=3)
    queue = rig.node.queues[b"q"]
    left = {b"some7", b"some20", b"plain1"}

    rig.ask("ACKJOB", *[job.id for job in rig.node.jobs.values() if job.body not in left])

    assert len(queue.entries()) < 2 * len(left) + 70
    assert bodies(rig, "GETJOB", "COUNT", 9, "FROM", "q") == ["plain1", "some7", "some20"]
    assert not has_groups(queue)


def test_purge_reaches_the_jobs_of_all_groups() -> None:
    rig = with_three(Rig())

    assert rig.ask("PURGE", "q") == 8
    rig.advance(1000)

    assert rig.ask("QLEN", "q") == 0


def test_waiting_clients_are_served_as_well() -> None:
    rig = Rig()
    for client in (rig.connect(), rig.connect()):
        rig.request("GETJOB", "FROM", "q", client=client)

    filled(rig, a=2, b=1)

    assert bodies(rig, "QPEEK", "q", 9) == ["b0"]


def test_groups_take_turns_when_jobs_move_to_another_node() -> None:
    rig = with_three(Rig(peers=1, config=CALM, ours=True))
    shown = bodies(rig, "QPEEK", "q", 4)

    rig.message(N2, NeedJobs(b"q", 4, waits=True))

    [given] = [message for _, message in rig.sent() if isinstance(message, YourJobs)]
    assert [bytes(copy.body).decode() for copy in given.copies] == shown
    assert len({copy.extensions.group if copy.extensions else None for copy in given.copies}) == 3


def test_an_imported_job_is_in_its_group() -> None:
    rig = filled(Rig(peers=1, config=CALM, ours=True), a=3)
    copy = attrs.evolve(copy_of(), body=b"imported", extensions=Extensions(group=b"b"))

    rig.message(N2, YourJobs((copy,)))

    assert rig.node.jobs[JOB].state == QUEUED
    assert bodies(rig, "QPEEK", "q", 9) == ["a0", "imported", "a1", "a2"]


def test_a_job_with_a_group_is_for_nodes_that_keep_extensions() -> None:
    assert Rig().add("GROUP", "acme").extensions == Extensions(group=b"acme")
    assert Extensions(group=b"acme").needs == EXTENDS


@pytest.mark.parametrize(("group", "error"), [("", "is empty"), ("x" * 257, "at most 256 bytes")])
def test_a_group_has_a_name(group: str, error: str) -> None:
    assert error in str(Rig().ask("ADDJOB", "q", "b", 0, "GROUP", group))


def test_a_queue_whose_jobs_have_no_group_any_more_is_as_before() -> None:
    rig = filled(Rig(), a=1, plain=2)
    assert has_groups(rig.queue())

    bodies(rig, "GETJOB", "COUNT", 2, "FROM", "q")
    rig.queue().oldest()

    assert not has_groups(rig.queue())
    assert bodies(rig, "GETJOB", "COUNT", 2, "FROM", "q") == ["plain1"]


def test_a_worker_is_told_the_group() -> None:
    rig = Rig()
    rig.add("GROUP", "acme")

    reply = rig.ask("GETJOB", "WITHMETA", "FROM", "q")

    assert isinstance(reply, list)
    [job] = reply
    assert isinstance(job, list)
    assert job[job.index(b"group") + 1] == b"acme"


def test_a_job_that_has_ended_is_found_by_its_group() -> None:
    rig = Rig()
    job = rig.add("GROUP", "acme")
    rig.add()
    rig.ask("ACKJOB", job.id)

    def ended(group: str) -> object:
        return rig.ask("JSCAN", 0, "STATE", "ended", "GROUP", group, "REPLY", "id")

    assert ended("acme") == [b"0", [Status(job.id)]]
    assert ended("other") == [b"0", []]
    reply = rig.ask("SHOW", job.id, "ENDED")
    assert isinstance(reply, list)
    assert reply[reply.index(b"group") + 1] == b"acme"


def test_the_body_of_a_quiet_group_is_wanted_soon() -> None:
    rig = Rig()
    for _ in range(40):
        rig.add("GROUP", "noisy", body="x" * 600)
    rig.node.memory.spillable = {}

    noisy = rig.add("GROUP", "noisy", body="x" * 600)
    rig.add("GROUP", "quiet", body="x" * 600)

    assert list(rig.node.memory.spillable) == [noisy.id]
    rig.node.memory.spillable = None


_JOBS = st.tuples(
    st.integers(-1, 1), st.sampled_from([None, b"a", b"b", b"c"]), st.integers(0, 3), st.booleans()
)


def _jobs(drawn: list[tuple[int, bytes | None, int, bool]]) -> list[Job]:
    return [
        attrs.evolve(
            Rig().add(),
            id=b"D-bbbbbbbb-%024d-05a1" % number,
            made=made,
            number=number,
            state=QUEUED,
            extensions=Extensions(priority=priority, group=group) if priority or group else None,
        )
        for number, (priority, group, made, _) in enumerate(drawn)
    ]


@given(st.lists(_JOBS, max_size=30), st.integers(1, 5))
def test_each_way_to_take_jobs_takes_them_in_the_order_that_is_shown(
    drawn: list[tuple[int, bytes | None, int, bool]], at_once: int
) -> None:
    queue = Queue(b"q", 0, 0)
    for job, (_, _, _, takes) in zip(_jobs(drawn), drawn, strict=True):
        queue.add(job)
        assert len(queue.peek(-99)) == len(queue)
        if takes:
            [first] = queue.peek(1)
            assert queue.oldest() is first
            assert queue.pop() is first
    while shown := queue.peek(99):
        taken = queue.pop_many(at_once)  # fewer where one kind of jobs ends
        assert 0 < len(taken) <= at_once
        assert taken == shown[: len(taken)]
    assert not len(queue)


@given(
    st.lists(st.sampled_from([None, b"a", b"b", b"c"]), min_size=1, max_size=60),
    st.lists(st.booleans(), min_size=60, max_size=60),
)
def test_of_two_groups_with_jobs_neither_is_served_twice_before_the_other(
    groups: list[bytes | None], leaves: list[bool]
) -> None:
    """Also while jobs leave the queue and are swept."""
    drawn = [(0, group, 0, False) for group in groups]
    queue, jobs = Queue(b"q", 0, 0), _jobs(drawn)
    for job in jobs:
        queue.add(job)
    for job, is_left in zip(jobs, leaves, strict=False):
        if is_left:
            job.state = ACTIVE
            queue.discard(3)
    left = Counter(job.group for job in jobs if job.state == QUEUED)
    served: Counter[bytes | None] = Counter()
    while (taken := queue.pop()) is not None:
        taken.state = ACTIVE
        served[taken.group] += 1
        for group, count in left.items():
            if served[group] < count:
                assert served[taken.group] <= served[group] + 1
    assert served == left
