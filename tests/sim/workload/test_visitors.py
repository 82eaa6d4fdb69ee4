"""Simulated consumers that connect, ask, disconnect and come back."""

from disque_trio.sim.workload.actions import Disconnect, SendRequest
from disque_trio.sim.workload.visits import NEVER
from disque_trio.statemachine.base import NULL_ARRAY
from tests.sim.workload.working import SECOND, actions, asked, do_work, fetch, worker


def test_a_visitor_disconnects_after_its_last_poll_and_comes_back() -> None:
    agent = worker(polls=(2, 2), away=(3 * SECOND, 3 * SECOND))
    agent.wake(0)
    connection = asked(agent).connection

    agent.answered(SECOND, connection, NULL_ARRAY)
    assert asked(agent).connection == connection
    agent.answered(2 * SECOND, connection, NULL_ARRAY)

    assert actions(agent) == [Disconnect(connection, "quit")]
    assert agent.deadline() == 5 * SECOND
    agent.wake(5 * SECOND)
    again = asked(agent)
    assert again.connection != connection
    agent.answered(6 * SECOND, again.connection, NULL_ARRAY)
    assert asked(agent).connection == again.connection


def test_a_visitor_works_on_what_it_has_before_it_disconnects() -> None:
    agent = worker(polls=(1, 1))
    fetch(agent)

    (ack,) = do_work(agent)
    assert isinstance(ack, SendRequest)
    agent.answered(agent.deadline(), ack.connection, 1)

    assert actions(agent) == [Disconnect(ack.connection, "quit")]


def test_a_visit_may_end_in_the_middle_of_a_poll() -> None:
    agent = worker(visit=(400_000, 400_000), away=(SECOND, SECOND))
    agent.wake(0)
    connection = asked(agent).connection

    assert agent.deadline() == 400_000
    agent.wake(400_000)

    assert actions(agent) == [Disconnect(connection, "quit")]
    assert agent.deadline() == 1_400_000


def test_a_visitor_that_roams_connects_to_any_node() -> None:
    agent = worker(polls=(1, 1), roams=True, nodes=5)
    agent.wake(0)
    first = asked(agent)

    agent.answered(SECOND, first.connection, NULL_ARRAY)
    actions(agent)
    agent.wake(agent.deadline())

    assert (first.node, asked(agent).node) == (2, 3)


def test_after_the_chaos_a_visitor_stays() -> None:
    agent = worker(visit=(400_000, 400_000), polls=(1, 1))
    agent.wake(0)
    connection = asked(agent).connection

    agent.settle()
    agent.wake(400_000)
    assert actions(agent) == []
    agent.answered(SECOND, connection, NULL_ARRAY)

    assert asked(agent).connection == connection


def test_after_the_chaos_one_that_roams_goes_home_once() -> None:
    agent = worker(polls=(1, 1), roams=True, nodes=5)
    agent.wake(0)
    agent.answered(SECOND, asked(agent).connection, NULL_ARRAY)
    actions(agent)
    agent.wake(agent.deadline())
    away = asked(agent)

    agent.settle()
    agent.answered(2 * SECOND, away.connection, NULL_ARRAY)

    assert actions(agent) == [Disconnect(away.connection, "quit")]
    agent.wake(agent.deadline())
    home = asked(agent)
    assert home.node == 2
    agent.answered(4 * SECOND, home.connection, NULL_ARRAY)
    assert asked(agent).connection == home.connection


def test_a_visitor_stops_when_its_time_is_over() -> None:
    agent = worker(polls=(1, 1), stop=500)
    agent.wake(0)

    agent.answered(600, asked(agent).connection, NULL_ARRAY)

    assert len(actions(agent)) == 1
    assert agent.deadline() == NEVER
