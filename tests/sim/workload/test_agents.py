import pytest

from disque_trio.sim.scenarios.plan import Add, Consumer, Plan
from disque_trio.sim.workload.actions import PATIENCE, Disconnect, SendRequest
from disque_trio.sim.workload.agents import ENDLESS, Producer, agents
from disque_trio.sim.workload.requests import add_words, error_of, way_words
from disque_trio.sim.workload.visits import NEVER
from disque_trio.statemachine.base import Failure, Status
from tests.sim.workload.working import JOB, actions, add, asked

# Producers.


def test_a_producer_adds_each_job_at_its_time() -> None:
    producer = Producer("p1", [add(10), add(20)], 3)

    assert producer.deadline() == 10
    producer.wake(10)
    assert asked(producer).words == [b"ADDJOB", b"q", b"b", b"100"]
    assert producer.deadline() == 20


def test_every_option_is_spelled() -> None:
    job = add(timeout_ms=5, replicate=2, delay_s=1, retry_s=3, ttl_s=60, maxlen=9, is_async=True)

    words = b" ".join(add_words(job))

    assert words == b"ADDJOB q b 5 REPLICATE 2 DELAY 1 RETRY 3 TTL 60 MAXLEN 9 ASYNC"


def test_sync_is_spelled() -> None:
    assert b" ".join(add_words(add(replicate=3, sync=2))) == b"ADDJOB q b 100 REPLICATE 3 SYNC 2"
    assert b" ".join(add_words(add(sync=0))) == b"ADDJOB q b 100 SYNC AUTO"


def test_a_producer_does_not_wait_for_earlier_jobs() -> None:
    producer = Producer("p1", [add(10), add(11)], 3)
    producer.wake(10)
    producer.wake(11)

    first, second = actions(producer)

    assert isinstance(first, SendRequest)
    assert isinstance(second, SendRequest)
    assert first.connection != second.connection


def test_a_connection_is_used_again_for_its_node() -> None:
    producer = Producer("p1", [add(10), add(20), add(20, node=2)], 3)
    producer.wake(10)
    connection = asked(producer).connection
    producer.answered(15, connection, Status(JOB))

    producer.wake(20)

    again, other = actions(producer)
    assert isinstance(again, SendRequest)
    assert isinstance(other, SendRequest)
    assert (again.connection, again.node) == (connection, 1)
    assert (other.connection != connection, other.node) == (True, 2)


def test_a_lost_connection_is_not_used_again() -> None:
    producer = Producer("p1", [add(10), add(20)], 3)
    producer.wake(10)
    connection = asked(producer).connection
    producer.answered(11, connection, Status(JOB))
    producer.lost(15, connection)

    producer.wake(20)

    assert asked(producer).connection != connection


@pytest.mark.parametrize(("timeout_ms", "wait"), [(100, 100_000 + PATIENCE), (0, ENDLESS)])
def test_a_producer_gives_up_on_a_reply(timeout_ms: int, wait: int) -> None:
    producer = Producer("p1", [add(10, timeout_ms=timeout_ms)], 3)
    producer.wake(10)
    connection = asked(producer).connection

    assert producer.deadline() == 10 + wait
    producer.wake(10 + wait)

    assert actions(producer) == [Disconnect(connection)]
    assert producer.is_idle()


def test_a_producer_may_send_some_jobs_without_waiting() -> None:
    producer = Producer("p1", [add(10, pipeline=2) for _ in range(3)], 3)
    producer.wake(10)

    connections = [
        action.connection for action in actions(producer) if isinstance(action, SendRequest)
    ]
    assert connections[0] == connections[1] != connections[2]

    producer.answered(11, connections[0], Status(JOB))
    assert not producer.is_idle()
    producer.answered(12, connections[0], Status(JOB))
    producer.answered(13, connections[2], Status(JOB))
    assert producer.is_idle()


def test_a_producer_may_die_in_mid_pipeline() -> None:
    producer = Producer("p1", [add(10, pipeline=9), add(10, pipeline=9, dies_after=5), add(90)], 3)
    producer.wake(10)
    (connection, _) = [
        action.connection for action in actions(producer) if isinstance(action, SendRequest)
    ]

    assert producer.deadline() == 15
    producer.wake(15)

    assert actions(producer) == [Disconnect(connection, "quit")]
    assert producer.deadline() == 90
    producer.wake(90)
    assert asked(producer).connection != connection


def test_a_producer_that_has_its_answers_does_not_die() -> None:
    producer = Producer("p1", [add(10, dies_after=5)], 3)
    producer.wake(10)
    producer.answered(12, asked(producer).connection, Status(JOB))

    producer.wake(15)

    assert actions(producer) == []
    assert producer.deadline() == NEVER


def test_a_pipeline_is_for_one_node() -> None:
    producer = Producer("p1", [add(10, pipeline=9), add(10, node=2, pipeline=9)], 3)
    producer.wake(10)

    first, second = actions(producer)

    assert isinstance(first, SendRequest)
    assert isinstance(second, SendRequest)
    assert first.connection != second.connection


def test_who_may_have_waited_for_others_is_given_its_time_anew() -> None:
    wait = 100_000 + PATIENCE
    producer = Producer("p1", [add(10, pipeline=2), add(10, pipeline=2)], 3)
    producer.wake(10)
    connection, _ = [
        action.connection for action in actions(producer) if isinstance(action, SendRequest)
    ]
    assert producer.deadline() == 10 + wait

    producer.answered(5_000, connection, Status(JOB))
    assert producer.deadline() == 5_000 + wait

    producer.wake(5_000 + wait)
    assert actions(producer) == [Disconnect(connection)]


def test_a_producer_is_idle_when_nothing_is_left_or_under_way() -> None:
    producer = Producer("p1", [add(10)], 3)
    assert not producer.is_idle()
    producer.wake(10)
    assert not producer.is_idle()

    producer.answered(11, asked(producer).connection, Failure(b"NOREPL"))

    assert producer.is_idle()
    assert producer.deadline() == NEVER


# All of them.


def test_a_plan_has_its_producers_first_and_each_agent_its_own_chance() -> None:
    plan = Plan(
        scenario="s",
        seed=3,
        nodes=3,
        adds=(add(20), Add(at=5, node=1, producer="p2", queue="q", body="b"), add(1)),
        consumers=(Consumer(name="c1", node=1, queues=("q",)),),
    )

    found = agents(plan)

    assert [agent.name for agent in found] == ["p1", "p2", "c1"]
    assert [agent.deadline() for agent in found] == [1, 5, 0]


def test_a_producer_sends_again_what_has_got_no_reply_to_the_next_node() -> None:
    producer = Producer("p1", [add(10, again=2, node=3)], 3)
    producer.wake(10)
    [first] = producer.actions
    producer.actions.clear()

    producer.lost(20, 1)
    assert not producer.is_idle()
    due = producer.deadline()
    producer.wake(due)

    [again] = producer.actions
    assert isinstance(first, SendRequest)
    assert isinstance(again, SendRequest)
    assert (again.node, again.words) == (1, first.words)
    producer.answered(due + 1, again.connection, Status(b"id"))
    assert producer.is_idle()


@pytest.mark.parametrize("again", [0, 1])
def test_it_does_so_as_often_as_it_is_to_after_a_timeout_too(again: int) -> None:
    producer = Producer("p1", [add(10, again=again, timeout_ms=100)], 3)
    asked = 0
    while (due := producer.deadline()) < NEVER:
        producer.wake(due)
        asked += sum(isinstance(action, SendRequest) for action in producer.actions)
        producer.actions.clear()

    assert asked == again + 1


@pytest.mark.parametrize("way", ["nack-delay", "release-delay"])
def test_a_job_that_is_to_wait_is_given_back_with_its_token_and_the_delay(way: str) -> None:
    words = way_words(way, [b"id"], {b"id": b"token"}, 1500)

    said = [b"ERROR", error_of(b"id")] if way == "nack-delay" else []
    command = way.partition("-")[0].upper().encode()
    assert words == [command, b"id@token", b"DELAY", b"1.500", *said]
