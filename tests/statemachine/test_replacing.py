"""IFEXISTS replace: what becomes of the earlier job, and which one is delivered."""

import pytest

from disque_trio.statemachine.base import ACKED, Failure, Status
from disque_trio.statemachine.job import LAST_STAMP
from tests.cluster_rig import ClusterRig
from tests.statemachine.keying import ask, held, keyed_rig, say_all
from tests.statemachine.test_key_ordering import (
    AGAIN,
    NODES,
    REPLACE,
    A,
    B,
    C,
    add,
    ids,
    rig,
    take,
    taken,
    wait_for,
)

__all__ = ["rig"]


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


def test_a_replacement_that_is_acknowledged_before_it_is_answered_is_answered(
    rig: ClusterRig,
) -> None:
    for wait in range(1, 9):
        add(rig, A, "one", "UNIQUE", f"k{wait}")
        client = rig.connect(B)
        words = ("UNIQUE", f"k{wait}", "IFEXISTS", "replace", "REPLICATE", 2)
        rig.request(B, "ADDJOB", "q", "two", 0, *words, client=client)
        rig.run(wait)
        for job in list(rig.node(B).keys.ordering.replacing):
            rig.request(B, "ACKJOB", job, client=rig.connect(B))
        rig.run(3000)

        assert rig.replies(B, client)


def test_a_replacement_is_answered_at_its_timeout_if_a_node_is_silent(rig: ClusterRig) -> None:
    first = add(rig, A, "one", "REPLICATE", 1)
    client = rig.connect(B)
    rig.request(B, "ADDJOB", "q", "two", 300, "REPLICATE", 1, *REPLACE, client=client)
    rig.run_until(lambda: any(rig.node(B).keys.ordering.replacing.values()), 100)
    rig.silence(A, B)
    rig.run(1000)

    [reply] = rig.replies(B, client)
    assert isinstance(reply, Status)
    assert reply.text != first


def test_a_replacement_that_is_acknowledged_while_a_node_is_silent_is_answered(
    rig: ClusterRig,
) -> None:
    add(rig, A, "one", "REPLICATE", 1)
    client = rig.connect(B)
    rig.request(B, "ADDJOB", "q", "two", 0, "REPLICATE", 1, *REPLACE, client=client)
    rig.run_until(lambda: any(rig.node(B).keys.ordering.replacing.values()), 100)
    rig.silence(A, B)
    [second] = rig.node(B).keys.ordering.replacing
    rig.ask(B, "ACKJOB", second)
    rig.run(300)

    assert rig.replies(B, client) == [Status(second)]


def test_who_waits_behind_a_replacement_goes_on_if_its_client_is_gone(rig: ClusterRig) -> None:
    add(rig, A, "one", "REPLICATE", 1)
    first, second = rig.connect(B), rig.connect(B)
    rig.request(B, "ADDJOB", "q", "two", 0, "REPLICATE", 1, *REPLACE, client=first)
    rig.request(B, "ADDJOB", "q", "three", 0, "REPLICATE", 1, *REPLACE[:2], client=second)
    rig.run_until(lambda: any(rig.node(B).keys.ordering.replacing.values()), 100)
    take(rig, A)
    rig.machine(B).disconnect(first, rig.now)
    rig.run(3000)

    assert rig.replies(B, second)


def test_a_replacement_whose_queue_is_paused_meanwhile_is_refused_and_forgotten(
    rig: ClusterRig,
) -> None:
    add(rig, A, "one")
    client = rig.request(B, "ADDJOB", "q", "two", 0, *REPLACE, client=rig.connect(B))
    rig.ask(B, "PAUSE", "q", "in")
    rig.run(1000)

    [reply] = rig.replies(B, client)

    assert isinstance(reply, Failure)
    assert not rig.node(B).keys.ordering.replacing


def test_a_wish_is_not_queued_while_its_queue_is_paused_but_a_retry_later(rig: ClusterRig) -> None:
    first = add(rig, A, "one")
    take(rig, A)
    second = add(rig, B, "two", *AGAIN)
    for name in NODES:
        rig.ask(name, "PAUSE", "q", "in")
    rig.ask(A, "ACKJOB", first)
    rig.run(3000)
    assert take(rig, B) is None

    for name in NODES:
        rig.ask(name, "PAUSE", "q", "none")
    rig.run(11_000)

    assert take(rig, B) == (second, b"two")


def test_a_peer_may_send_the_greatest_stamp() -> None:
    keyed = keyed_rig()
    ask(keyed, "IFEXISTS", "replace")

    say_all(keyed, held(stamp=LAST_STAMP))

    [job] = keyed.node.jobs.values()
    assert job.ctime == LAST_STAMP, "it is still one that a message can carry"
