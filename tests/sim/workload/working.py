"""What the tests of workloads begin with."""

from collections.abc import Callable
from typing import Any

from disque_trio.sim.scenarios.plan import Add, Consumer
from disque_trio.sim.workload.actions import PATIENCE, Action, Agent, SendRequest
from disque_trio.sim.workload.agents import Worker
from disque_trio.statemachine.base import Reply

JOB = b"D-11111111-222222222222222222222222-05a1"
SECOND = 1_000_000
MakeWorker = Callable[..., Worker]


class Rng:
    """Draws nothing: always the middle, and the first of the choices."""

    def random(self) -> float:
        return 0.5

    def randint(self, low: int, high: int) -> int:
        return (low + high) // 2

    def choices(self, names: list[str], weights: list[float]) -> list[str]:
        return [max(zip(weights, names, strict=True))[1]]


def add(at: int = 0, node: int = 1, timeout_ms: int = 100, **rest: Any) -> Add:
    return Add(at=at, node=node, producer="p1", queue="q", body="b", timeout_ms=timeout_ms, **rest)


def worker(mix: str = "ackjob", *, count: int = 1, nodes: int = 3, **rest: Any) -> Worker:
    plan = Consumer(
        name="c1",
        node=2,
        queues=("q", "r"),
        count=count,
        poll_ms=1000,
        work=(100, 300),
        mix=((mix, 1.0),),
        **rest,
    )
    return Worker(plan, nodes, Rng())  # type: ignore[arg-type]


def actions(agent: Agent) -> list[Action]:
    found, agent.actions = agent.actions, []
    return found


def jobs(*names: bytes) -> Reply:
    return [[b"q", name, b"b"] for name in names]


def asked(agent: Agent) -> SendRequest:
    (action,) = actions(agent)
    assert isinstance(action, SendRequest)
    return action


def fetch(agent: Worker, *names: bytes) -> None:
    """Let the worker ask, and hand it jobs."""
    agent.wake(agent.deadline())
    agent.answered(agent.deadline() - PATIENCE, asked(agent).connection, jobs(*(names or (JOB,))))


def do_work(agent: Worker) -> list[Action]:
    """Let the worker finish the job in hand."""
    agent.wake(agent.deadline())
    return actions(agent)
