"""Commands about many jobs are carried out some at a time, and others are served meanwhile."""

from collections.abc import Sequence
from typing import Any

import pytest

from disque_trio.statemachine.base import (
    ACTIVE,
    DEAD,
    LEAVING,
    NULL_ARRAY,
    QUEUED,
    Failure,
    JobId,
    Status,
)
from disque_trio.statemachine.client import Blocked
from disque_trio.statemachine.knobs import Knobs
from tests.cluster_rig import ClusterRig
from tests.rig import Rig
from tests.statemachine.commands.refused import Refused

COUNT = 7
FEW = 2


def rig_with(count: int = COUNT, *options: str | int) -> tuple[Rig, list[JobId]]:
    rig = Rig()
    rig.turn(ids_at_once=FEW)
    return rig, [rig.add(*options, body=f"body {number}").id for number in range(count)]


def begun(rig: Rig, *words: bytes | str | int) -> None:
    """The first step has been made, and the client waits."""
    rig.request(*words)
    assert rig.replies() == []
    assert rig.client.blocked is Blocked.STEPS
    assert not rig.machine.accepts(rig.client)


def ended(rig: Rig) -> Any:
    rig.advance(100)
    assert rig.node.long_commands == []
    assert rig.machine.accepts(rig.client)
    return rig.reply()


def got(rig: Rig, *options: str | int, queues: Sequence[str] = ("q",)) -> list[Any]:
    begun(rig, "GETJOB", *options, "COUNT", COUNT, "FROM", *queues)
    jobs = ended(rig)
    assert isinstance(jobs, list)
    return jobs


def named(jobs: list[Any]) -> list[bytes]:
    return [b"%b@%b" % (job[1], job[job.index(b"token") + 1]) for job in jobs]


def test_jobs_are_taken_some_at_a_time_and_answered_together_in_their_order() -> None:
    rig, ids = rig_with()
    begun(rig, "GETJOB", "COUNT", COUNT, "FROM", "q")
    assert len(rig.queue()) == COUNT - FEW
    assert rig.ask("PING", client=rig.connect()) == Status(b"PONG")

    assert [job[1] for job in ended(rig)] == ids


def test_the_client_of_each_acknowledgement_is_remembered_though_others_come_between() -> None:
    rig, ids = rig_with()
    rig.ask("CLIENT", "SETNAME", "patient")
    other = rig.connect()
    rig.ask("CLIENT", "SETNAME", "quick", client=other)
    begun(rig, "ACKJOB", *ids[1:])
    rig.ask("ACKJOB", ids[0], client=other)
    assert ended(rig) == COUNT - 1

    told = [rig.ask("SHOW", id, "ENDED") for id in ids]
    assert [each[each.index(b"by") + 1] for each in told] == [b"quick"] + [b"patient"] * (COUNT - 1)  # type: ignore[index, union-attr]


def test_another_client_may_take_some_between() -> None:
    rig, ids = rig_with()
    begun(rig, "GETJOB", "COUNT", COUNT, "FROM", "q")
    [other] = rig.ask("GETJOB", "FROM", "q", client=rig.connect())  # type: ignore[misc]

    assert [job[1] for job in ended(rig)] == [id for id in ids if id != other[1]]  # type: ignore[index]


@pytest.mark.parametrize("count", [1, 3, 4, 6])
def test_fewer_than_are_asked_for_are_answered_too(count: int) -> None:
    rig, ids = rig_with(count)
    rig.request("GETJOB", "COUNT", 100, "FROM", "q")
    rig.advance(100)

    assert [job[1] for job in rig.reply()] == ids  # type: ignore[index, union-attr]


def test_the_jobs_of_several_queues_come_round_after_round() -> None:
    for most in (1, 2, 3, 5, 100):
        rig = Rig()
        rig.turn(ids_at_once=most)
        for number in range(9):
            rig.add(queue=f"q{number % 3}", body=str(number))
        rig.add(queue="q1", body="9")
        rig.request("GETJOB", "COUNT", 8, "FROM", "q0", "none", "q1", "q2")
        rig.advance(100)

        assert [job[2] for job in rig.reply()] == [b"%d" % each for each in range(8)]  # type: ignore[index, union-attr]
        assert sum(map(len, rig.node.queues.values())) == 2


def test_a_client_waits_if_none_of_many_queues_has_a_job() -> None:
    rig = Rig()
    rig.turn(ids_at_once=FEW)
    begun(rig, "GETJOB", "TIMEOUT", 1000, "FROM", *"abcde")
    rig.advance(50)
    assert rig.client.blocked is Blocked.JOBS

    job = rig.connect()
    rig.request("ADDJOB", "d", "body", 0, client=job)
    assert rig.reply() == [[b"d", rig.reply(job).text, b"body"]]  # type: ignore[union-attr]


@pytest.mark.parametrize("paused", [False, True])
def test_a_queue_that_is_filled_after_its_turn_is_looked_at_again(*, paused: bool) -> None:
    rig = Rig()
    rig.turn(ids_at_once=FEW)
    begun(rig, "GETJOB", "COUNT", COUNT, "FROM", *"abcde")
    if paused:
        rig.request("PAUSE", "a", "out", client=rig.connect())
    job = rig.add(queue="a")
    rig.advance(100)

    if paused:
        assert rig.client.blocked is Blocked.JOBS
        rig.request("PAUSE", "a", "none", client=rig.connect())
    assert rig.reply() == [[b"a", job.id, b"body"]]


def test_or_is_answered_at_the_end_if_it_does_not_wait() -> None:
    rig = Rig()
    rig.turn(ids_at_once=FEW)
    begun(rig, "GETJOB", "NOHANG", "FROM", *"abcde")

    assert ended(rig) is NULL_ARRAY


@pytest.mark.parametrize("retry", [0, 60])
def test_a_client_that_disconnects_is_given_no_more(retry: int) -> None:
    rig, _ = rig_with(COUNT, "RETRY", retry)
    begun(rig, "GETJOB", "WITHMETA", "TIED", "COUNT", COUNT, "FROM", "q")
    rig.disconnect(rig.client)
    rig.advance(100)

    assert len(rig.queue()) == COUNT - FEW
    assert rig.node.long_commands == []
    rig.advance(30_000)
    back = 0 if retry == 0 else FEW
    assert len(rig.queue()) == COUNT - FEW + back


def test_a_node_that_leaves_gives_what_it_has_as_in_one_step() -> None:
    rig, ids = rig_with()
    begun(rig, "GETJOB", "COUNT", COUNT, "FROM", "q")
    rig.node.cluster.myself.flags |= LEAVING

    assert [job[1] for job in ended(rig)] == ids


def test_a_node_that_cannot_write_any_more_gives_no_more() -> None:
    rig, ids = rig_with()
    begun(rig, "GETJOB", "COUNT", COUNT, "FROM", "q")
    rig.machine.journal_failed("no space", rig.now)

    assert [job[1] for job in ended(rig)] == ids[:FEW]


# Commands that name jobs.


def delayed(rig: Rig) -> int:
    found = rig.node.delayed.get(b"q")
    return 0 if found is None else found.number


WORDS = [
    ("ACKJOB", (), lambda rig: not rig.node.jobs),
    ("FASTACK", (), lambda rig: not rig.node.jobs),
    ("DELJOB", (), lambda rig: not rig.node.jobs),
    ("NACK", (), lambda rig: len(rig.queue()) == COUNT),
    ("NACK", ("DELAY", 60), lambda rig: delayed(rig) == COUNT),
    ("NACK", ("DEAD", "why"), lambda rig: len(rig.node.dead.get(b"q", ())) == COUNT),
    ("RELEASE", (), lambda rig: len(rig.queue()) == COUNT),
    ("RELEASE", ("DELAY", 60), lambda rig: delayed(rig) == COUNT),
    ("ENQUEUE", (), lambda rig: len(rig.queue()) == COUNT),
]


@pytest.mark.parametrize(("name", "options", "is_done"), WORDS)
def test_jobs_are_handled_some_at_a_time(name: str, options: Sequence[Any], is_done: Any) -> None:
    rig, ids = rig_with()
    got(rig)
    begun(rig, name, *ids, *options)
    assert not is_done(rig)

    assert ended(rig) == COUNT
    assert is_done(rig)


def test_jobs_leave_their_queue_and_come_from_the_dead_some_at_a_time() -> None:
    rig, ids = rig_with()
    begun(rig, "DEQUEUE", *ids)
    assert ended(rig) == COUNT
    assert {rig.node.jobs[id].state for id in ids} == {ACTIVE}

    begun(rig, "NACK", *ids, "DEAD")
    assert ended(rig) == COUNT
    assert {rig.node.jobs[id].state for id in ids} == {DEAD}
    begun(rig, "REDRIVE", *ids)
    assert ended(rig) == COUNT
    assert {rig.node.jobs[id].state for id in ids} == {QUEUED}


def test_working_is_answered_for_each_job_in_their_order() -> None:
    rig, ids = rig_with(COUNT, "RETRY", 60)
    words = named(got(rig, "WITHMETA"))
    rig.ask("ACKJOB", ids[3])
    begun(rig, "WORKING", *words)

    assert ended(rig) == [60] * 3 + [Refused(b"NOJOB")] + [60] * 3


def test_a_job_that_somebody_else_got_meanwhile_stays_with_him() -> None:
    rig, _ = rig_with()
    words = named(got(rig, "WITHMETA"))
    begun(rig, "NACK", *words, words[0])
    for _ in range(len(words) // FEW + 1):
        rig.machine.tick(rig.now)
        rig.take()
    other = rig.connect()
    assert rig.ask("GETJOB", "NOHANG", "COUNT", FEW, "FROM", "q", client=other) != NULL_ARRAY

    assert ended(rig) == COUNT
    assert len(rig.queue()) == COUNT - FEW


@pytest.mark.parametrize("name", ["NACK", "RELEASE", "WORKING", "ACKJOB", "DELJOB", "ENQUEUE"])
def test_one_malformed_id_is_an_error_for_all(name: str) -> None:
    rig, ids = rig_with()
    got(rig)
    rig.request(name, *ids, "bad")
    rig.advance(100)

    assert rig.reply() == Refused(b"BADID")
    assert {rig.node.jobs[id].state for id in ids} == {ACTIVE}


@pytest.mark.parametrize("name", ["NACK", "RELEASE"])
def test_one_job_that_cannot_wait_so_long_is_an_error_for_all(name: str) -> None:
    rig, ids = rig_with()
    last = rig.add("TTL", 300)
    rig.request("GETJOB", "COUNT", 100, "FROM", "q")
    assert len(ended(rig)) == COUNT + 1
    begun(rig, name, *ids, last.id, "DELAY", 1000)

    assert isinstance(ended(rig), Failure)
    assert not rig.node.delayed


def test_a_client_that_disconnects_has_all_its_jobs_acknowledged() -> None:
    rig, ids = rig_with()
    begun(rig, "ACKJOB", *ids)
    rig.disconnect(rig.client)
    rig.advance(100)

    assert not rig.node.jobs


def test_two_commands_take_turns_and_each_client_is_answered() -> None:
    rig, ids = rig_with()
    other = rig.connect()
    begun(rig, "DEQUEUE", *ids)
    rig.request("ACKJOB", *ids, client=other)

    assert ended(rig) + rig.reply(other) > COUNT
    assert not rig.node.jobs


@pytest.mark.parametrize("mode", ["SKIP", "OFF"])
def test_a_reply_that_is_not_wanted_does_not_come_later(mode: str) -> None:
    rig, ids = rig_with()
    rig.request("CLIENT", "REPLY", mode)
    rig.request("ACKJOB", *ids)
    rig.advance(100)

    assert rig.replies() == []
    assert not rig.node.jobs
    rig.request("PING")
    assert len(rig.replies()) == (mode == "SKIP")


@pytest.mark.parametrize("most", [1, 512])
def test_a_client_that_waits_after_several_steps_has_the_jobs_of_other_nodes(most: int) -> None:
    """everything, seed 2063: the batch in which its first queues were empty had no waiting client,
    and it got their jobs at the next offer, 10 s later."""
    rig = ClusterRig("a", "b")
    rig.form()
    rig.run(2000)
    for _ in range(10):  # the node announces waiting clients less and less often
        assert rig.ask("a", "GETJOB", "TIMEOUT", 500, "FROM", "q", within=1000) is NULL_ARRAY
    rig.node("a").knobs = Knobs(ids_at_once=most)
    for body in ("one", "two", "three"):
        rig.ask("b", "ADDJOB", "q", body, 0, "REPLICATE", 1)
    rig.run(100)

    for _ in range(3):
        words = "GETJOB", "TIMEOUT", 400, "FROM", "q", "other", "third"
        assert rig.ask("a", *words, within=500) is not NULL_ARRAY
