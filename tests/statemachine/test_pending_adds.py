"""Several ADDJOBs of one client wait for their copies at once, and are answered in their order."""

from itertools import product

import pytest

from disque_trio.statemachine.base import QUEUED, WAIT_REPL, Failure, Status
from disque_trio.statemachine.client import Blocked
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.knobs import DEFAULTS
from disque_trio.statemachine.messages import GotJob
from disque_trio.statemachine.pressure import OOM
from tests.rig import CALM, N2, N3, Rig
from tests.statemachine.adding import PING, add, confirm, fill, ids
from tests.statemachine.keying import claims, keyed_rig, say
from tests.statemachine.replicating import GRAIN, REMOVED, leaving_rig, repljobs

# Order.


def test_addjobs_of_a_pipeline_wait_at_the_same_time() -> None:
    rig = Rig(peers=1)

    jobs = [add(rig) for _ in range(3)]

    assert [job.state for job in jobs] == [WAIT_REPL] * 3
    assert repljobs(rig.sent()) == [(N2, False)] * 3
    assert rig.replies() == []
    assert rig.client.blocked is Blocked.COPIES


def test_answers_leave_in_the_order_of_the_requests() -> None:
    rig = Rig(peers=1)
    first, second, third = add(rig), add(rig), add(rig)

    confirm(rig, third)
    confirm(rig, second)
    assert rig.replies() == []
    assert (second.state, third.state) == (QUEUED, QUEUED)

    confirm(rig, first)
    assert rig.replies() == ids(first, second, third)
    assert rig.machine.accepts(rig.client)
    assert rig.outboxes[-1].resumed == [rig.client]


def test_an_answer_whose_turn_it_is_does_not_wait_for_later_ones() -> None:
    rig = Rig(peers=1)
    first, second = add(rig), add(rig)

    confirm(rig, first)

    assert rig.replies() == ids(first)
    assert rig.client.blocked is Blocked.COPIES
    confirm(rig, second)
    assert rig.replies() == ids(second)


def test_jobs_stand_in_the_queue_in_the_order_of_the_requests() -> None:
    rig = Rig(peers=1)
    jobs = [add(rig) for _ in range(3)]

    for job in reversed(jobs):
        confirm(rig, job)

    assert rig.queue().peek(3) == jobs


def test_another_pipeline_begins_when_the_last_has_its_copies() -> None:
    rig = Rig(peers=1)
    for _ in range(3):
        jobs = [add(rig) for _ in range(2)]
        for job in jobs:
            confirm(rig, job)
        assert rig.replies() == ids(*jobs)


def test_keys_of_a_pipeline_are_asked_for_at_the_same_time() -> None:
    """Jobs of one copy, too: without keys they would be added before those that still wait."""
    rig = keyed_rig()
    client = rig.connect()
    words = ("ADDJOB", "q", "body", 0, "REPLICATE", 1)
    keys = [b"k1", b"k2"]
    for key in keys:
        assert rig.offer(*words, "UNIQUE", key, client=client)
    assert not rig.offer(*words, client=client)
    asked = claims(rig)
    assert [(message.key, to) for to, message in asked] == list(product(keys, [N2, N3]))

    for to, message in reversed(asked):
        say(rig, to, message)

    second, first = rig.node.jobs.values()
    assert [job.extensions and job.extensions.key for job in (first, second)] == keys
    assert rig.replies(client) == [Status(first.id), Status(second.id)]


# Who has to wait.


@pytest.mark.parametrize(
    "words",
    [
        (PING,),
        ("GETJOB", "FROM", "q"),
        ("CLIENT", "REPLY", "OFF"),
        ("no-such-command",),
        ("ADDJOB", "q"),
        ("ADDJOB", "q", "body", 0, "RETRY", "soon"),
        ("ADDJOB", "q", "body", 0, "REPLICATE", 1),
        ("ADDJOB", "q", "body", 0, "REPLICATE", 2, "MAXLEN", 1),
        ("ADDJOB", "q", "body", 0, "REPLICATE", 2, "ASYNC"),
    ],
)
def test_any_other_request_waits_until_all_are_answered(words: tuple[bytes | str | int]) -> None:
    rig = Rig(peers=1)
    jobs = [add(rig), add(rig)]

    assert not rig.offer(*words)
    confirm(rig, jobs[0])
    assert not rig.offer(*words)
    confirm(rig, jobs[1])

    assert rig.offer(*words)


def test_a_client_that_waits_for_nothing_or_for_jobs_is_not_followed() -> None:
    rig = Rig(peers=1)
    words = [b"ADDJOB", b"q", b"body", b"0"]
    assert not rig.machine.follows(rig.client, words)

    rig.request("GETJOB", "FROM", "q")

    assert not rig.machine.follows(rig.client, words)


def test_a_name_in_small_letters_is_the_same() -> None:
    rig = Rig(peers=1)
    add(rig)

    assert rig.offer("addjob", "q", "body", 0)
    assert rig.offer("AddJob", "q", "body", 0)

    assert len(rig.client.pending_adds) == 3


def test_a_client_whose_addjobs_are_renamed_is_heeded_by_the_new_name() -> None:
    rig = Rig(peers=1, config=Config(renamed_commands=(("addjob", "put"),)))
    assert rig.offer("PUT", "q", "body", 0)

    assert rig.offer("PUT", "q", "body", 0)
    assert not rig.offer("ADDJOB", "q", "body", 0)


def test_while_clients_are_paused_nothing_follows() -> None:
    rig = Rig(peers=1)
    job = add(rig)
    rig.ask("CLIENT", "PAUSE", 1000, client=rig.connect())

    assert not rig.offer("ADDJOB", "q", "body", 0)
    confirm(rig, job)
    assert not rig.offer("ADDJOB", "q", "body", 0)

    rig.advance(1000 + GRAIN)
    assert rig.client in [client for out in rig.outboxes for client in out.resumed]
    assert rig.offer("ADDJOB", "q", "body", 0)


def test_so_many_wait_and_no_more() -> None:
    rig = Rig(peers=1)
    jobs = [add(rig) for _ in range(DEFAULTS.adds_of_client)]

    assert not rig.offer("ADDJOB", "q", "body", 0)

    [*many, last] = jobs[: DEFAULTS.adds_of_client // 2]
    for job in many:
        confirm(rig, job)
        assert rig.outboxes[-1].resumed == []
    confirm(rig, last)
    assert rig.outboxes[-1].resumed == [rig.client]
    assert rig.offer("ADDJOB", "q", "body", 0)


def test_large_bodies_wait_a_few_at_a_time() -> None:
    rig = Rig(peers=1)
    body = b"x" * (DEFAULTS.add_bytes_of_client // 4)
    taken = 0
    while rig.offer("ADDJOB", "q", body, 0):
        taken += 1

    assert taken == 4
    assert rig.offer("ADDJOB", "q", "body", 0)


def test_with_half_of_the_large_bodies_answered_the_client_goes_on() -> None:
    rig = Rig(peers=1)
    body = b"x" * (DEFAULTS.add_bytes_of_client // 8)
    jobs = fill(rig, rig.client, body)
    assert len(jobs) == 8

    [*some, fourth] = jobs[:4]
    for job in some:
        confirm(rig, job)
        assert rig.outboxes[-1].resumed == []
    confirm(rig, fourth)

    assert rig.outboxes[-1].resumed == [rig.client]
    assert len(fill(rig, rig.client, body)) == 4


def test_the_pending_adds_of_all_clients_together_are_bounded() -> None:
    rig = Rig(peers=1)
    clients = [rig.connect() for _ in range(10)]
    jobs = [fill(rig, client, b"body") for client in clients]

    assert sum(map(len, jobs)) == DEFAULTS.adds_of_all + 2, "each has one"
    assert [len(some) for some in jobs[-3:]] == [104, 1, 1]


def test_the_bodies_of_all_clients_together_are_bounded() -> None:
    rig = Rig(peers=1)
    body = b"x" * (DEFAULTS.add_bytes_of_client // 8)
    clients = [rig.connect() for _ in range(6)]

    taken = [len(fill(rig, client, body)) for client in clients]

    assert taken == [8, 8, 8, 8, 1, 1]


def test_a_client_refused_for_the_adds_of_others_goes_on_when_its_own_are_answered() -> None:
    rig = Rig(peers=1)
    for _ in range(9):
        fill(rig, rig.connect(), b"body")
    [job] = fill(rig, rig.client, b"body")

    confirm(rig, job)

    assert rig.outboxes[-1].resumed == [rig.client]
    assert rig.offer("ADDJOB", "q", "body", 0)
    assert not rig.offer("ADDJOB", "q", "body", 0)


def test_a_client_that_goes_leaves_its_room_to_others() -> None:
    rig = Rig(peers=1)
    clients = [rig.connect() for _ in range(9)]
    for client in clients:
        fill(rig, client, b"body")
    assert rig.offer("ADDJOB", "q", "body", 0)
    assert not rig.offer("ADDJOB", "q", "body", 0)

    rig.disconnect(clients[0])

    assert rig.offer("ADDJOB", "q", "body", 0)


# What is answered at once.


def test_what_is_refused_is_answered_in_its_turn() -> None:
    rig = Rig(peers=1)
    first = add(rig)
    rig.ask("PAUSE", "p", "in", client=rig.connect())

    assert rig.offer("ADDJOB", "p", "body", 0)
    third = add(rig)
    assert rig.replies() == []
    confirm(rig, third)
    confirm(rig, first)

    paused = Failure(b"PAUSED Queue paused in input, try later")
    assert rig.replies() == [Status(first.id), paused, Status(third.id)]
    assert rig.machine.accepts(rig.client)


def test_a_copy_too_many_is_refused_in_its_turn() -> None:
    rig = Rig(peers=1)
    first = add(rig)

    assert rig.offer("ADDJOB", "q", "body", 0, "REPLICATE", 3)
    assert rig.replies() == []
    confirm(rig, first)

    [_, refusal] = rig.replies()
    assert isinstance(refusal, Failure)
    assert refusal.text.startswith(b"NOREPL Not enough reachable nodes")


def test_a_node_that_runs_out_of_memory_says_so_in_turn() -> None:
    rig = Rig(peers=1)
    first = add(rig)
    rig.node.memory.hard = -1

    assert rig.offer("ADDJOB", "q", "body", 0)
    assert rig.replies() == []
    confirm(rig, first)

    assert rig.replies() == [Status(first.id), OOM]


def test_a_journal_that_fails_meanwhile_is_told_of_in_turn() -> None:
    rig = Rig(peers=1)
    first = add(rig)
    rig.machine.journal_failed("disk full", rig.now)

    assert rig.offer("ADDJOB", "q", "body", 0)
    confirm(rig, first)

    assert rig.replies()[0] == Status(first.id)


def test_a_password_that_is_asked_for_meanwhile_is_missed_in_turn() -> None:
    rig = Rig(peers=1)
    first = add(rig)
    rig.ask("CONFIG", "SET", "requirepass", "secret", client=rig.connect())

    assert rig.offer("ADDJOB", "q", "body", 0)
    confirm(rig, first)

    assert rig.replies() == [Status(first.id), Failure(b"NOAUTH Authentication required.")]


def test_a_job_that_needs_no_copy_any_more_is_answered_in_its_turn() -> None:
    """Only one node is left, so an ADDJOB without REPLICATE asks for one copy."""
    rig = Rig(peers=1)
    first = add(rig)
    rig.ask("CLUSTER", "FORGET", N2, client=rig.connect())

    assert rig.offer("ADDJOB", "q", "body", 0)
    [second] = [job for job in rig.node.jobs.values() if job is not first]
    assert second.state == QUEUED
    assert rig.replies() == []
    rig.ask("DELJOB", first.id, client=rig.connect())

    assert rig.replies() == [REMOVED, Status(second.id)]


def test_whoever_waits_for_such_a_job_gets_it_at_once() -> None:
    rig = Rig(peers=1, config=CALM)
    worker = rig.connect()
    rig.request("GETJOB", "FROM", "q", client=worker)
    add(rig)
    rig.ask("CLUSTER", "FORGET", N2, client=rig.connect())

    assert rig.offer("ADDJOB", "q", "served", 0)

    [[[_, _, body]]] = rig.replies(worker)  # type: ignore[misc]
    assert body == b"served"


def test_a_leaving_node_waits_for_the_copies_of_others_likewise() -> None:
    rig = leaving_rig(peers=2)
    first, second = add(rig), add(rig)

    for job in (second, first):
        for node in (N2, N3):
            rig.message(node, GotJob(job.id))

    assert rig.replies() == ids(first, second)
    assert rig.node.jobs == {}
