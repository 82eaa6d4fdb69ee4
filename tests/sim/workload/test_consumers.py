"""Simulated consumers: what they ask for, and what they make of the answers."""

import pytest

from disque_trio.sim.workload.actions import PATIENCE, RECONNECT, Disconnect, SendRequest
from disque_trio.sim.workload.requests import error_of
from disque_trio.sim.workload.visits import NEVER
from disque_trio.statemachine.base import NULL_ARRAY, Failure
from tests.sim.workload.working import JOB, SECOND, actions, asked, do_work, fetch, jobs, worker

# Consumers.


def test_a_worker_asks_for_jobs_of_its_queues() -> None:
    agent = worker(count=3)
    agent.wake(0)

    ask = asked(agent)

    assert ask.node == 2
    assert b" ".join(ask.words) == b"GETJOB TIMEOUT 1000 COUNT 3 WITHCOUNTERS FROM q r"


def test_a_worker_asks_again_when_there_was_nothing() -> None:
    agent = worker()
    agent.wake(0)
    connection = asked(agent).connection

    agent.answered(SECOND, connection, NULL_ARRAY)

    assert asked(agent).connection == connection


def test_a_worker_works_and_acks_one_job_after_the_other() -> None:
    agent = worker(count=2)
    agent.wake(0)
    connection = asked(agent).connection
    agent.answered(1000, connection, jobs(b"one", b"two"))

    assert agent.deadline() == 1200
    assert not agent.is_idle()
    (first,) = do_work(agent)
    assert first == SendRequest(connection, 2, [b"ACKJOB", b"one"])
    agent.answered(1300, connection, 1)
    (second,) = do_work(agent)
    assert second == SendRequest(connection, 2, [b"ACKJOB", b"two"])
    agent.answered(1600, connection, 1)
    assert agent.is_idle()
    assert asked(agent).words[0] == b"GETJOB"


@pytest.mark.parametrize("way", ["fastack", "nack", "deljob", "dequeue"])
def test_a_worker_says_what_its_mix_says(way: str) -> None:
    agent = worker(way)
    fetch(agent)

    (action,) = do_work(agent)

    assert isinstance(action, SendRequest)
    said = [b"ERROR", error_of(JOB)] if way == "nack" else []
    assert action.words == [way.upper().encode(), JOB, *said]


def test_a_forgetful_worker_goes_on_without_a_word() -> None:
    agent = worker("none")
    fetch(agent)

    (action,) = do_work(agent)

    assert isinstance(action, SendRequest)
    assert action.words[0] == b"GETJOB"


def test_a_dying_worker_drops_its_connection_and_comes_back() -> None:
    agent = worker("die", count=2)
    fetch(agent, b"one", b"two")
    now = agent.deadline()

    assert do_work(agent) == [Disconnect(1)]
    assert agent.is_idle()
    assert agent.deadline() == now + RECONNECT
    agent.wake(agent.deadline())
    assert asked(agent).connection != 1


@pytest.mark.parametrize(
    ("way", "command"), [("elsewhere", b"ACKJOB"), ("fastack-elsewhere", b"FASTACK")]
)
def test_a_worker_may_ack_at_another_node(way: str, command: bytes) -> None:
    agent = worker(way)
    fetch(agent)

    (action,) = do_work(agent)

    assert isinstance(action, SendRequest)
    assert action.node != 2
    assert action.words == [command, JOB]
    agent.answered(agent.deadline(), action.connection, 0)
    hang, ask = actions(agent)
    assert hang == Disconnect(action.connection)
    assert isinstance(ask, SendRequest)
    assert (ask.node, ask.words[0]) == (2, b"GETJOB")


def test_a_worker_may_ask_for_more_time_and_then_ack() -> None:
    agent = worker("working")
    fetch(agent)

    (first,) = do_work(agent)
    assert first == SendRequest(1, 2, [b"WORKING", JOB])
    agent.answered(agent.deadline() - PATIENCE, 1, 1)
    (second,) = do_work(agent)

    assert second == SendRequest(1, 2, [b"ACKJOB", JOB])


def test_after_the_chaos_a_worker_acks_everything() -> None:
    agent = worker("none")
    agent.settle()
    fetch(agent)

    (action,) = do_work(agent)

    assert isinstance(action, SendRequest)
    assert action.words[0] == b"ACKJOB"


def test_a_worker_without_a_connection_works_on_and_acks_on_a_new_one() -> None:
    agent = worker()
    fetch(agent)

    agent.lost(agent.deadline() - 1, 1)
    (action,) = do_work(agent)

    assert isinstance(action, SendRequest)
    assert action.words == [b"ACKJOB", JOB]
    assert action.connection != 1


def test_an_ack_that_gets_no_answer_is_tried_at_the_next_nodes_and_then_given_up() -> None:
    agent = worker()
    fetch(agent)
    (first,) = do_work(agent)
    assert isinstance(first, SendRequest)

    agent.lost(1, first.connection)
    second = asked(agent)
    agent.lost(2, second.connection)
    third = asked(agent)
    agent.lost(3, third.connection)

    assert [first.node, second.node, third.node] == [2, 3, 1]
    assert actions(agent) == []
    assert agent.is_idle()
    assert agent.deadline() == 3 + RECONNECT


def test_a_nack_that_gets_no_answer_is_given_up() -> None:
    agent = worker("nack")
    fetch(agent)
    do_work(agent)

    agent.lost(1, 1)

    assert agent.is_idle()
    assert actions(agent) == []


def test_a_worker_whose_node_is_away_keeps_trying_there() -> None:
    agent = worker()
    agent.wake(0)
    connection = asked(agent).connection

    agent.lost(300, connection)

    assert agent.deadline() == 300 + RECONNECT
    agent.wake(agent.deadline())
    assert asked(agent).node == 2


def test_a_worker_gives_up_on_a_node_that_does_not_answer() -> None:
    agent = worker()
    agent.wake(0)
    connection = asked(agent).connection

    assert agent.deadline() == SECOND + PATIENCE
    agent.wake(agent.deadline())

    assert actions(agent) == [Disconnect(connection)]
    assert agent.deadline() == SECOND + PATIENCE + RECONNECT


def test_a_reply_that_comes_too_late_is_none() -> None:
    agent = worker()
    agent.wake(0)
    connection = asked(agent).connection
    agent.wake(agent.deadline())
    actions(agent)

    agent.answered(agent.deadline(), connection, jobs(JOB))

    assert agent.is_idle()


def test_a_worker_moves_on_from_a_node_that_leaves() -> None:
    agent = worker()
    agent.wake(0)
    connection = asked(agent).connection

    agent.answered(500, connection, Failure(b"LEAVING This node is leaving"))

    assert actions(agent) == [Disconnect(connection)]
    agent.wake(agent.deadline())
    assert asked(agent).node == 3


def test_a_worker_that_is_refused_comes_back_on_a_new_connection() -> None:
    agent = worker()
    agent.wake(0)
    connection = asked(agent).connection

    agent.answered(500, connection, Failure(b"OOM command not allowed"))

    assert actions(agent) == [Disconnect(connection)]
    agent.wake(agent.deadline())
    assert asked(agent).node == 2


def test_a_worker_stops_when_its_time_is_over() -> None:
    agent = worker(stop=500)
    agent.wake(0)
    connection = asked(agent).connection

    agent.answered(600, connection, NULL_ARRAY)

    assert actions(agent) == [Disconnect(connection)]
    assert agent.deadline() == NEVER


@pytest.mark.parametrize("begun", [1, 0])
def test_a_worker_that_holds_jobs_begins_each_before_its_work(begun: int) -> None:
    agent = worker(count=2, tied=True, held=True)
    agent.wake(0)
    ask = asked(agent)
    assert b" ".join(ask.words).endswith(b"TIED HELD FROM q r")
    agent.answered(1000, ask.connection, jobs(b"one", b"two"))
    assert asked(agent).words == [b"BEGIN", b"one"]

    agent.answered(1100, ask.connection, begun)

    if begun:
        (ack,) = do_work(agent)
        assert ack == SendRequest(ask.connection, 2, [b"ACKJOB", b"one"])
    else:
        assert asked(agent).words == [b"BEGIN", b"two"]
