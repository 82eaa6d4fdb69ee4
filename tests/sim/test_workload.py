from collections.abc import Callable
from typing import Any

import pytest

from disque_trio.sim.plan import Add, Consumer, Plan
from disque_trio.sim.workload import (
    ENDLESS,
    NEVER,
    PATIENCE,
    RECONNECT,
    Agent,
    Ask,
    Hang,
    Producer,
    Wish,
    Worker,
    add_words,
    agents,
)
from disque_trio.statemachine.base import NULL_ARRAY, Failure, Reply, Status

JOB = b"D-11111111-222222222222222222222222-05a1"
SECOND = 1_000_000
MakeWorker = Callable[..., Worker]


class Rng:
    """Draws nothing: always the middle, and the first of the choices."""

    def random(self) -> float:
        return 0.5

    def choices(self, names: list[str], weights: list[float]) -> list[str]:
        return [max(zip(weights, names, strict=True))[1]]


def add(at: int = 0, node: int = 1, timeout_ms: int = 100, **rest: Any) -> Add:
    return Add(at=at, node=node, producer="p1", queue="q", body="b", timeout_ms=timeout_ms, **rest)


def worker(mix: str = "ackjob", *, count: int = 1, nodes: int = 3, stop: int = 0) -> Worker:
    plan = Consumer(
        name="c1",
        node=2,
        queues=("q", "r"),
        count=count,
        poll_ms=1000,
        work=(100, 300),
        mix=((mix, 1.0),),
        stop=stop,
    )
    return Worker(plan, nodes, Rng())  # type: ignore[arg-type]


def wishes(agent: Agent) -> list[Wish]:
    found, agent.wishes = agent.wishes, []
    return found


def jobs(*names: bytes) -> Reply:
    return [[b"q", name, b"b"] for name in names]


def asked(agent: Agent) -> Ask:
    (wish,) = wishes(agent)
    assert isinstance(wish, Ask)
    return wish


def fetch(agent: Worker, *names: bytes) -> None:
    """Let the worker ask, and hand it jobs."""
    agent.wake(agent.deadline())
    agent.answered(agent.deadline() - PATIENCE, asked(agent).lane, jobs(*(names or (JOB,))))


def do_work(agent: Worker) -> list[Wish]:
    """Let the worker finish the job in hand."""
    agent.wake(agent.deadline())
    return wishes(agent)


# Producers.


def test_a_producer_adds_each_job_at_its_time() -> None:
    producer = Producer("p1", [add(10), add(20)])

    assert producer.deadline() == 10
    producer.wake(10)
    assert asked(producer).words == [b"ADDJOB", b"q", b"b", b"100"]
    assert producer.deadline() == 20


def test_every_option_is_spelled() -> None:
    job = add(timeout_ms=5, replicate=2, delay_s=1, retry_s=3, ttl_s=60, maxlen=9, is_async=True)

    words = b" ".join(add_words(job))

    assert words == b"ADDJOB q b 5 REPLICATE 2 DELAY 1 RETRY 3 TTL 60 MAXLEN 9 ASYNC"


def test_a_producer_does_not_wait_for_earlier_jobs() -> None:
    producer = Producer("p1", [add(10), add(11)])
    producer.wake(10)
    producer.wake(11)

    first, second = wishes(producer)

    assert isinstance(first, Ask)
    assert isinstance(second, Ask)
    assert first.lane != second.lane


def test_a_lane_is_used_again_for_its_node() -> None:
    producer = Producer("p1", [add(10), add(20), add(20, node=2)])
    producer.wake(10)
    lane = asked(producer).lane
    producer.answered(15, lane, Status(JOB))

    producer.wake(20)

    again, other = wishes(producer)
    assert isinstance(again, Ask)
    assert isinstance(other, Ask)
    assert (again.lane, again.node) == (lane, 1)
    assert (other.lane != lane, other.node) == (True, 2)


def test_a_lost_lane_is_not_used_again() -> None:
    producer = Producer("p1", [add(10), add(20)])
    producer.wake(10)
    lane = asked(producer).lane
    producer.answered(11, lane, Status(JOB))
    producer.lost(15, lane)

    producer.wake(20)

    assert asked(producer).lane != lane


@pytest.mark.parametrize(("timeout_ms", "wait"), [(100, 100_000 + PATIENCE), (0, ENDLESS)])
def test_a_producer_gives_up_on_a_reply(timeout_ms: int, wait: int) -> None:
    producer = Producer("p1", [add(10, timeout_ms=timeout_ms)])
    producer.wake(10)
    lane = asked(producer).lane

    assert producer.deadline() == 10 + wait
    producer.wake(10 + wait)

    assert wishes(producer) == [Hang(lane)]
    assert producer.is_idle()


def test_a_producer_is_idle_when_nothing_is_left_or_under_way() -> None:
    producer = Producer("p1", [add(10)])
    assert not producer.is_idle()
    producer.wake(10)
    assert not producer.is_idle()

    producer.answered(11, asked(producer).lane, Failure(b"NOREPL"))

    assert producer.is_idle()
    assert producer.deadline() == NEVER


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
    lane = asked(agent).lane

    agent.answered(SECOND, lane, NULL_ARRAY)

    assert asked(agent).lane == lane


def test_a_worker_works_and_acks_one_job_after_the_other() -> None:
    agent = worker(count=2)
    agent.wake(0)
    lane = asked(agent).lane
    agent.answered(1000, lane, jobs(b"one", b"two"))

    assert agent.deadline() == 1200
    assert not agent.is_idle()
    (first,) = do_work(agent)
    assert first == Ask(lane, 2, [b"ACKJOB", b"one"])
    agent.answered(1300, lane, 1)
    (second,) = do_work(agent)
    assert second == Ask(lane, 2, [b"ACKJOB", b"two"])
    agent.answered(1600, lane, 1)
    assert agent.is_idle()
    assert asked(agent).words[0] == b"GETJOB"


@pytest.mark.parametrize("deed", ["fastack", "nack", "deljob", "dequeue"])
def test_a_worker_says_what_its_mix_says(deed: str) -> None:
    agent = worker(deed)
    fetch(agent)

    (wish,) = do_work(agent)

    assert isinstance(wish, Ask)
    assert wish.words == [deed.upper().encode(), JOB]


def test_a_forgetful_worker_goes_on_without_a_word() -> None:
    agent = worker("none")
    fetch(agent)

    (wish,) = do_work(agent)

    assert isinstance(wish, Ask)
    assert wish.words[0] == b"GETJOB"


def test_a_dying_worker_drops_its_connection_and_comes_back() -> None:
    agent = worker("die", count=2)
    fetch(agent, b"one", b"two")
    now = agent.deadline()

    assert do_work(agent) == [Hang(1)]
    assert agent.is_idle()
    assert agent.deadline() == now + RECONNECT
    agent.wake(agent.deadline())
    assert asked(agent).lane != 1


def test_a_worker_may_ack_at_another_node() -> None:
    agent = worker("elsewhere")
    fetch(agent)

    (wish,) = do_work(agent)

    assert isinstance(wish, Ask)
    assert wish.node != 2
    assert wish.words == [b"ACKJOB", JOB]
    agent.answered(agent.deadline(), wish.lane, 0)
    hang, ask = wishes(agent)
    assert hang == Hang(wish.lane)
    assert isinstance(ask, Ask)
    assert (ask.node, ask.words[0]) == (2, b"GETJOB")


def test_a_worker_may_ask_for_more_time_and_then_ack() -> None:
    agent = worker("working")
    fetch(agent)

    (first,) = do_work(agent)
    assert first == Ask(1, 2, [b"WORKING", JOB])
    agent.answered(agent.deadline() - PATIENCE, 1, 1)
    (second,) = do_work(agent)

    assert second == Ask(1, 2, [b"ACKJOB", JOB])


def test_after_the_chaos_a_worker_acks_everything() -> None:
    agent = worker("none")
    agent.settle()
    fetch(agent)

    (wish,) = do_work(agent)

    assert isinstance(wish, Ask)
    assert wish.words[0] == b"ACKJOB"


def test_a_worker_without_a_connection_works_on_and_acks_on_a_new_one() -> None:
    agent = worker()
    fetch(agent)

    agent.lost(agent.deadline() - 1, 1)
    (wish,) = do_work(agent)

    assert isinstance(wish, Ask)
    assert wish.words == [b"ACKJOB", JOB]
    assert wish.lane != 1


def test_an_ack_that_gets_no_answer_is_tried_at_the_next_nodes_and_then_given_up() -> None:
    agent = worker()
    fetch(agent)
    (first,) = do_work(agent)
    assert isinstance(first, Ask)

    agent.lost(1, first.lane)
    second = asked(agent)
    agent.lost(2, second.lane)
    third = asked(agent)
    agent.lost(3, third.lane)

    assert [first.node, second.node, third.node] == [2, 3, 1]
    assert wishes(agent) == []
    assert agent.is_idle()
    assert agent.deadline() == 3 + RECONNECT


def test_a_nack_that_gets_no_answer_is_given_up() -> None:
    agent = worker("nack")
    fetch(agent)
    do_work(agent)

    agent.lost(1, 1)

    assert agent.is_idle()
    assert wishes(agent) == []


def test_a_worker_whose_node_is_away_keeps_trying_there() -> None:
    agent = worker()
    agent.wake(0)
    lane = asked(agent).lane

    agent.lost(300, lane)

    assert agent.deadline() == 300 + RECONNECT
    agent.wake(agent.deadline())
    assert asked(agent).node == 2


def test_a_worker_gives_up_on_a_node_that_does_not_answer() -> None:
    agent = worker()
    agent.wake(0)
    lane = asked(agent).lane

    assert agent.deadline() == SECOND + PATIENCE
    agent.wake(agent.deadline())

    assert wishes(agent) == [Hang(lane)]
    assert agent.deadline() == SECOND + PATIENCE + RECONNECT


def test_a_reply_that_comes_too_late_is_none() -> None:
    agent = worker()
    agent.wake(0)
    lane = asked(agent).lane
    agent.wake(agent.deadline())
    wishes(agent)

    agent.answered(agent.deadline(), lane, jobs(JOB))

    assert agent.is_idle()


def test_a_worker_moves_on_from_a_node_that_leaves() -> None:
    agent = worker()
    agent.wake(0)
    lane = asked(agent).lane

    agent.answered(500, lane, Failure(b"LEAVING This node is leaving"))

    assert wishes(agent) == [Hang(lane)]
    agent.wake(agent.deadline())
    assert asked(agent).node == 3


def test_a_worker_that_is_refused_comes_back_on_a_new_connection() -> None:
    agent = worker()
    agent.wake(0)
    lane = asked(agent).lane

    agent.answered(500, lane, Failure(b"OOM command not allowed"))

    assert wishes(agent) == [Hang(lane)]
    agent.wake(agent.deadline())
    assert asked(agent).node == 2


def test_a_worker_stops_when_its_time_is_over() -> None:
    agent = worker(stop=500)
    agent.wake(0)
    lane = asked(agent).lane

    agent.answered(600, lane, NULL_ARRAY)

    assert wishes(agent) == [Hang(lane)]
    assert agent.deadline() == NEVER


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
