"""Messages that are sent together arrive together in some seeds, and take the passes of `many`."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pytest

from disque_trio.sim.checkers.verdict import judge
from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.engines.trio.run import simulate as simulate_in_tasks
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.statemachine import many
from disque_trio.statemachine.base import JobId
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.state import NodeState
from tests.sim.mutants.plans.conditions import SCENARIOS, backlog


@pytest.mark.pure
@pytest.mark.parametrize("engine", [simulate, simulate_in_tasks])
def test_messages_of_one_moment_arrive_as_one_batch(
    engine: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = count_passes(monkeypatch)
    plan = in_batches(drained(7))
    judged = judge(plan)

    engine(plan, judged.see)

    assert min(taken[kind] for kind in many.ON_MANY) > 10, taken
    assert not judged.finish().violations


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ack-vs-federation", "kill-restart-aof", "swarm"])
def test_a_seed_with_batches_passes_and_can_be_repeated(name: str) -> None:
    plan = in_batches(expand(load(str(SCENARIOS / f"{name}.toml")), seed=7))
    judged = judge(plan)

    first = simulate(plan, judged.see).digest

    assert not judged.finish().violations
    assert simulate(plan).digest == first


def drained(seed: int) -> Plan:
    """Workers take several jobs at a time, and acknowledge them at once."""
    made = backlog(seed)
    workers = [attrs.evolve(each, count=5, mix=(("together", 1.0),)) for each in made.consumers]
    return attrs.evolve(made, consumers=tuple(workers))


def in_batches(plan: Plan) -> Plan:
    return attrs.evolve(plan, link=attrs.evolve(plan.link, batches=True))


def count_passes(patch: pytest.MonkeyPatch) -> Counter[Any]:
    """How many jobs messages about several jobs are about, by kind."""
    taken: Counter[Any] = Counter()

    def counted(kind: type, handle: Callable[..., None]) -> Callable[..., None]:
        def take(node: NodeState, sender: Peer, said: Any, ids: Sequence[JobId]) -> None:
            taken[kind] += len(ids)
            handle(node, sender, said, ids)

        return take

    for kind, handle in many.ON_MANY.items():
        patch.setitem(many.ON_MANY, kind, counted(kind, handle))
    return taken
