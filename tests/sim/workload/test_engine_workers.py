"""Simulated workers that run the engine of the worker library: their process and their handlers."""

from typing import Any

from disque_trio.sim.scenarios.plan import Consumer
from disque_trio.sim.workload.actions import Action, Disconnect, SendRequest, WriteRow
from disque_trio.sim.workload.engine_workers import EngineWorker
from disque_trio.sim.workload.visits import NEVER
from disque_trio.statemachine.base import Reply
from tests.sim.workload.working import JOB, SECOND, Rng, actions

FEATURES = b"features:withmeta,tokens,release,tied,unblock,nack-delay,release-delay,dead-letters"


class LikelyRng(Rng):
    """Handlers obey when they are cancelled."""


def engine_worker(way: str = "ackjob", **rest: Any) -> EngineWorker:
    facts: dict[str, Any] = {
        "name": "c1",
        "node": 2,
        "queues": ("q",),
        "kind": "engine",
        "count": 2,
        "meta": True,
        "tied": True,
        "work": (100, 300),
        "mix": ((way, 1.0),),
        **rest,
    }
    return EngineWorker(Consumer(**facts), 3, Rng())  # type: ignore[arg-type]


def told(found: list[Action]) -> list[tuple[str, str]]:
    return [(action.kind, action.cause) for action in found if isinstance(action, WriteRow)]


def asked(found: list[Action]) -> list[SendRequest]:
    return [action for action in found if isinstance(action, SendRequest)]


def deliver(agent: EngineWorker) -> int:
    """Greet it and give it a job. Returns the connection."""
    agent.wake(agent.deadline())
    connection = asked(actions(agent))[0].connection
    agent.answered(0, connection, FEATURES)
    agent.answered(0, connection, 7)
    job: list[Reply] = [b"q", JOB, b"b", b"nacks", 0, b"additional-deliveries", 0]
    agent.answered(0, connection, [[*job, b"lease-ms", 9000, b"token", b"aaaaaaaa0123456789ab"]])
    return connection


def run(agent: EngineWorker, until: int) -> list[Action]:
    """Let time pass."""
    found = actions(agent)
    while agent.deadline() <= until:
        agent.wake(agent.deadline())
        found += actions(agent)
    return found


def test_it_begins_at_its_own_node_and_tells_what_it_does() -> None:
    agent = engine_worker(start=5)
    assert agent.deadline() == 5
    agent.wake(5)
    found = actions(agent)

    assert told(found) == [("worker.start", "")]
    assert [ask.node for ask in asked(found)] == [2, 2]


def test_a_handler_takes_its_time_and_the_outcome_is_told() -> None:
    agent = engine_worker()
    deliver(agent)
    assert told(actions(agent)) == [("run.begin", "")]
    assert not agent.is_idle()

    found = run(agent, 199)
    assert told(found) == []
    found = run(agent, 3_000)
    assert told(found) == [("run.end", "done")]


def test_a_handler_may_snooze_its_job() -> None:
    agent = engine_worker("release-delay", delay_ms=(2500, 2500))
    deliver(agent)

    found = run(agent, 3_000)

    assert told(found)[-1] == ("run.end", "release")
    [said] = [ask.words for ask in asked(found) if ask.words[0] == b"RELEASE"]
    assert said[2:] == [b"DELAY", b"2.500"]


def test_a_killed_process_drops_everything_and_another_begins() -> None:
    agent = engine_worker("die", away=(SECOND, SECOND))
    connection = deliver(agent)

    found = run(agent, 300)

    assert Disconnect(connection, "timeout", has_row=True) in found
    assert told(found) == [("run.begin", ""), ("worker.kill", "")]
    assert agent.is_idle()
    assert agent.deadline() == SECOND + 200
    agent.wake(agent.deadline())
    assert min(ask.connection for ask in asked(actions(agent))) > connection


def test_a_stopped_process_reads_what_has_come_when_it_continues() -> None:
    agent = engine_worker("stall", stall=(20 * SECOND, 20 * SECOND))
    connection = deliver(agent)
    found = run(agent, 300)
    assert told(found)[-1] == ("worker.stall", "")

    agent.lost(5 * SECOND, connection)
    assert actions(agent) == []
    found = run(agent, 21 * SECOND)

    assert told(found)[:2] == [("worker.resume", ""), ("run.cancel", "lease_over")]


def test_what_it_sends_over_a_connection_that_ended_meanwhile_goes_nowhere() -> None:
    """workers-engine, seed 400314: a node that was started again got the GETJOB."""
    agent = engine_worker("stall", stall=(5000, 5000))
    connection = deliver(agent)
    run(agent, 300)
    agent.answered(400, connection, None)
    agent.lost(500, connection)

    found = run(agent, 5400)

    assert ("worker.resume", "") in told(found)
    assert [ask for ask in asked(found) if ask.connection == connection] == []


def test_a_handler_that_does_not_end_is_cancelled_at_its_limit() -> None:
    agent = engine_worker("none", limit=SECOND)
    deliver(agent)
    found = run(agent, 2 * SECOND)

    assert ("run.cancel", "too_long") in told(found)
    assert ("run.end", "retry") in told(found)


def test_a_visit_ends_in_order() -> None:
    agent = engine_worker(visit=(SECOND, SECOND), away=(SECOND, SECOND), work=(9 * SECOND,) * 2)
    deliver(agent)
    found = run(agent, 4 * SECOND + SECOND // 2)

    assert [each for each in told(found) if each[0].startswith("worker")] == [
        ("worker.stop", ""),
        ("worker.stopped", ""),
    ]
    assert ("run.cancel", "shutdown") in told(found)
    assert agent.deadline() < NEVER


def test_after_the_chaos_every_job_is_done() -> None:
    agent = engine_worker("nack")
    agent.settle()
    deliver(agent)

    assert ("run.end", "done") in told(run(agent, 3_000))


def test_a_worker_whose_time_is_over_does_not_come_back() -> None:
    agent = engine_worker(stop=SECOND)
    deliver(agent)
    run(agent, 30 * SECOND)

    assert agent.deadline() == NEVER
