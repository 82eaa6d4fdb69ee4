"""IFEXISTS again and replace: when the new job is queued, and what becomes of the earlier one."""

import pytest

from disque_trio.statemachine.base import ACKED, Failure, Status
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.extensions import FOLLOWS, HAS_FOLLOWED
from disque_trio.statemachine.job import Job
from tests.cluster_rig import ClusterRig

A, B, C = NODES = ("a", "b", "c")
AGAIN = ("UNIQUE", "k", "IFEXISTS", "again")
REPLACE = ("UNIQUE", "k", "IFEXISTS", "replace")


@pytest.fixture
def rig() -> ClusterRig:
    """Three nodes that know each other."""
    rig = ClusterRig(*NODES)
    rig.form()
    rig.run(2000)
    return rig


def add(rig: ClusterRig, name: str, body: str, *options: str | int) -> bytes:
    """The id with which an ADDJOB is answered."""
    words = options if "UNIQUE" in options else ("UNIQUE", "k", *options)
    reply = rig.ask(name, "ADDJOB", "q", body, 0, "RETRY", 10, *words, within=5000)
    assert isinstance(reply, Status), reply
    return reply.text


def take(rig: ClusterRig, name: str) -> tuple[bytes, bytes] | None:
    """Id and body of the next job, if one comes within 200 ms."""
    found = rig.ask(name, "GETJOB", "TIMEOUT", 200, "FROM", "q")
    if not isinstance(found, list):
        return None
    [job] = found
    assert isinstance(job, list)
    _, id, body = job
    assert isinstance(id, bytes)
    assert isinstance(body, bytes)
    return id, body


def taken(rig: ClusterRig, name: str, client: Client) -> list[bytes]:
    """The jobs that a worker who waits has got."""
    jobs: list[bytes] = []
    for reply in rig.replies(name, client):
        for job in reply if isinstance(reply, list) else []:
            assert isinstance(job, list)
            assert isinstance(job[1], bytes)
            jobs.append(job[1])
    return jobs


def wait_for(rig: ClusterRig, name: str) -> Client:
    """A worker that waits."""
    return rig.request(name, "GETJOB", "TIMEOUT", 60_000, "FROM", "q", client=rig.connect(name))


def ids(rig: ClusterRig) -> set[bytes]:
    return {id for name in rig.names() for id in rig.node(name).jobs}


def copies(rig: ClusterRig, id: bytes) -> list[Job]:
    return [rig.node(name).jobs[id] for name in rig.names() if id in rig.node(name).jobs]


# again


@pytest.mark.parametrize("replicate", [1, 3])
@pytest.mark.parametrize("worker", [A, B])
def test_a_wish_is_delivered_when_the_job_is_acknowledged(
    rig: ClusterRig, replicate: int, worker: str
) -> None:
    first = add(rig, A, "one", "REPLICATE", replicate)
    assert take(rig, worker) == (first, b"one")

    second = add(rig, C, "two", *AGAIN, "REPLICATE", replicate)
    assert second != first
    assert take(rig, C) is None
    rig.ask(worker, "ACKJOB", first)

    assert take(rig, C) == (second, b"two")
    assert take(rig, A) is None
    rig.ask(C, "ACKJOB", second)
    rig.run(5000)
    assert not ids(rig)


def test_a_wish_comes_within_a_few_messages_of_the_acknowledgement(rig: ClusterRig) -> None:
    first = add(rig, A, "one")
    take(rig, A)
    add(rig, B, "two", *AGAIN)
    rig.run(3000)
    waiting = wait_for(rig, C)
    rig.request(A, "ACKJOB", first)

    rig.run(20)

    assert rig.replies(C, waiting)


def test_one_wish_is_kept(rig: ClusterRig) -> None:
    first = add(rig, A, "one")
    take(rig, A)
    second = add(rig, B, "two", *AGAIN)

    assert add(rig, C, "three", *AGAIN) == second
    assert ids(rig) == {first, second}


def test_wishes_at_the_same_moment_are_one(rig: ClusterRig) -> None:
    first = add(rig, A, "one")
    take(rig, A)
    clients = [rig.connect(name) for name in NODES]

    for name, client in zip(NODES, clients, strict=True):
        rig.request(name, "ADDJOB", "q", name, 0, *AGAIN, client=client)
    rig.run(1000)

    replies = [rig.replies(*pair) for pair in zip(NODES, clients, strict=True)]
    [second] = {reply.text for [reply] in replies if isinstance(reply, Status)}
    assert ids(rig) == {first, second}


def test_again_is_as_return_while_the_job_waits(rig: ClusterRig) -> None:
    first = add(rig, A, "one")

    assert add(rig, B, "two", *AGAIN) == first


def test_again_adds_a_job_if_none_has_the_key(rig: ClusterRig) -> None:
    only = add(rig, A, "one", *AGAIN)

    assert take(rig, A) == (only, b"one")


def test_return_tells_the_job_that_has_the_key_not_the_one_that_waits_for_it(
    rig: ClusterRig,
) -> None:
    first = add(rig, A, "one")
    take(rig, A)
    add(rig, B, "two", *AGAIN)

    assert add(rig, C, "three") == first


def test_a_wish_does_not_die_with_the_node_of_its_producer(rig: ClusterRig) -> None:
    first = add(rig, A, "one", "REPLICATE", 1)
    take(rig, A)
    second = add(rig, C, "two", *AGAIN, "REPLICATE", 3)
    rig.crash(C)
    rig.run(100)
    rig.ask(A, "ACKJOB", first)

    waiting = wait_for(rig, B)
    rig.run(15_000)

    assert taken(rig, B, waiting) == [second]


def test_a_wish_is_not_delivered_while_the_worker_goes_on(rig: ClusterRig) -> None:
    first = add(rig, A, "one")
    take(rig, A)
    add(rig, B, "two", *AGAIN)
    waiting = [wait_for(rig, name) for name in NODES]

    for _ in range(8):
        rig.ask(A, "WORKING", first)
        rig.run(5000)

    assert [rig.replies(*pair) for pair in zip(NODES, waiting, strict=True)] == [[], [], []]


def test_a_wish_is_delivered_when_the_job_has_died(rig: ClusterRig) -> None:
    first = add(rig, A, "one")
    take(rig, A)
    second = add(rig, B, "two", *AGAIN)

    rig.ask(A, "NACK", first, "DEAD", "broken")

    assert take(rig, C) == (second, b"two")


def test_a_wish_is_delivered_when_the_job_has_expired(rig: ClusterRig) -> None:
    add(rig, A, "one", "TTL", 12)
    take(rig, A)
    second = add(rig, B, "two", *AGAIN)
    waiting = wait_for(rig, C)
    rig.run(14_000)

    [came] = taken(rig, C, waiting)
    if came != second:
        assert take(rig, C) == (second, b"two")


def test_a_wish_has_its_own_delay(rig: ClusterRig) -> None:
    first = add(rig, A, "one")
    take(rig, A)
    second = add(rig, B, "two", *AGAIN, "DELAY", 5)
    rig.run(100)
    rig.ask(A, "ACKJOB", first)
    rig.run(4000)
    assert take(rig, B) is None

    rig.run(1500)

    assert take(rig, B) == (second, b"two")


def test_show_says_that_a_job_follows(rig: ClusterRig) -> None:
    first = add(rig, A, "one")
    take(rig, A)
    second = add(rig, B, "two", *AGAIN)
    [extensions] = {job.extensions for job in copies(rig, second)}
    assert extensions is not None
    assert extensions.follows == FOLLOWS

    rig.ask(A, "ACKJOB", first)
    rig.run(100)

    extensions = rig.node(B).jobs[second].extensions
    assert extensions is not None
    assert extensions.follows == HAS_FOLLOWED


def test_a_client_can_have_it_queued_at_once(rig: ClusterRig) -> None:
    add(rig, A, "one")
    take(rig, A)
    second = add(rig, B, "two", *AGAIN)

    assert rig.ask(B, "ENQUEUE", second) == 1

    assert take(rig, B) == (second, b"two")


def test_a_job_that_is_held_back_does_not_reach_its_limit(rig: ClusterRig) -> None:
    first = add(rig, A, "one", "LIMIT", 5)
    take(rig, A)
    second = add(rig, B, "two", *AGAIN, "LIMIT", 1)
    for _ in range(8):
        rig.ask(A, "WORKING", first)
        rig.run(5000)
    rig.ask(A, "ACKJOB", first)

    assert take(rig, B) == (second, b"two")


# replace


@pytest.mark.parametrize("replicate", [1, 3])
@pytest.mark.parametrize("by", NODES)
def test_a_queued_job_is_replaced(rig: ClusterRig, replicate: int, by: str) -> None:
    first = add(rig, A, "one", "REPLICATE", replicate)

    second = add(rig, by, "two", *REPLACE, "REPLICATE", replicate)

    assert second != first
    assert take(rig, C) == (second, b"two")
    assert take(rig, A) is None
    rig.ask(C, "ACKJOB", second)
    rig.run(5000)
    assert not ids(rig)


def test_a_delayed_job_is_replaced_and_the_delay_begins_anew(rig: ClusterRig) -> None:
    add(rig, A, "one", "DELAY", 5)
    rig.run(3000)
    second = add(rig, B, "two", *REPLACE, "DELAY", 5)

    rig.run(4000)
    assert take(rig, A) is None
    rig.run(1500)

    assert take(rig, A) == (second, b"two")


def test_the_last_of_several_replacements_is_delivered(rig: ClusterRig) -> None:
    for number in range(10):
        last = add(rig, NODES[number % 3], f"body {number}", *REPLACE, "DELAY", 2)
    rig.run(2500)

    assert take(rig, B) == (last, b"body 9")
    assert take(rig, A) is None


def test_replacements_at_the_same_moment_leave_one(rig: ClusterRig) -> None:
    add(rig, A, "one")
    clients = [rig.connect(name) for name in NODES]

    for name, client in zip(NODES, clients, strict=True):
        rig.request(name, "ADDJOB", "q", name, 0, *REPLACE, client=client)
    rig.run(1000)

    answers = [rig.replies(*pair) for pair in zip(NODES, clients, strict=True)]
    found = take(rig, A)
    assert found is not None
    assert [Status(found[0])] in answers
    assert all(len(each) == 1 for each in answers)
    assert take(rig, B) is None


def test_replace_is_as_return_once_the_job_was_delivered(rig: ClusterRig) -> None:
    first = add(rig, A, "one")
    take(rig, B)

    assert add(rig, C, "two", *REPLACE) == first
    rig.ask(B, "NACK", first)
    assert add(rig, C, "three", *REPLACE) == first


def test_a_wish_can_be_replaced(rig: ClusterRig) -> None:
    first = add(rig, A, "one")
    take(rig, A)
    add(rig, B, "two", *AGAIN)

    third = add(rig, C, "three", *REPLACE)

    assert take(rig, C) is None
    rig.ask(A, "ACKJOB", first)
    assert take(rig, C) == (third, b"three")
    assert take(rig, A) is None


def test_the_replaced_job_stays_until_the_new_one_has_its_copies(rig: ClusterRig) -> None:
    first = add(rig, A, "one", "REPLICATE", 1)
    rig.crash(C)
    rig.run(5000)

    words = ("ADDJOB", "q", "two", 500, *REPLACE, "REPLICATE", 2)
    rig.silence(B, A)
    rig.silence(A, B)
    client = rig.request(A, *words)
    rig.run(1000)
    [reply] = rig.replies(A, client)

    assert isinstance(reply, Failure)
    rig.heal()
    rig.run(5000)
    assert take(rig, A) == (first, b"one")


def test_a_producer_that_goes_away_leaves_one_of_the_two(rig: ClusterRig) -> None:
    add(rig, A, "one")
    for wait in range(12):
        client = rig.connect(C)
        rig.request(C, "ADDJOB", "q", f"{wait}", 0, "RETRY", 10, *REPLACE, client=client)
        rig.run(wait)
        rig.machine(C).disconnect(client, rig.now)
        rig.run(2000)

        alive = {
            job.id for name in NODES for job in rig.node(name).jobs.values() if job.state != ACKED
        }
        assert len(alive) == 1
    last = add(rig, B, "last", *REPLACE)
    assert take(rig, A) == (last, b"last")
    assert take(rig, A) is None


def test_the_node_that_was_to_deliver_it_need_not_be_there(rig: ClusterRig) -> None:
    add(rig, A, "one", "REPLICATE", 3, "DELAY", 30)
    rig.crash(A)
    rig.run(5000)

    second = add(rig, B, "two", *REPLACE, "REPLICATE", 2)

    assert take(rig, C) == (second, b"two")
    waiting = wait_for(rig, C)
    rig.run(60_000)
    assert taken(rig, C, waiting) == [second]


def test_the_clock_of_the_adding_node_may_be_behind(rig: ClusterRig) -> None:
    rig.node(A).last_made = rig.now.wall + 60_000
    add(rig, A, "one")

    second = add(rig, B, "two", *REPLACE)

    assert take(rig, C) == (second, b"two")
    assert take(rig, A) is None
