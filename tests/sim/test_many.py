"""Simulated nodes get single messages, and take the way of many: nothing changes.

So what the checkers find of simulated runs holds for messages about many jobs, too; that many have
the effects of one after the other is tested in tests/statemachine/test_many.py.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.statemachine import acks, many
from disque_trio.statemachine.base import JobId
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.dispatch import ON_MESSAGE
from disque_trio.statemachine.messages import JobMessage
from disque_trio.statemachine.state import NodeState
from tests.sim.ablations.conditions import SCENARIOS


@pytest.mark.pure
@pytest.mark.parametrize("name", ["swarm", "kill-restart-aof", "ack-vs-federation"])
def test_simulated_runs_are_the_same_with_messages_about_many(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = expand(load(str(SCENARIOS / f"{name}.toml")), seed=7)
    singly = simulate(plan).digest

    taken = say_all_as_many(monkeypatch)

    assert simulate(plan).digest == singly
    assert min(taken[kind] for kind in (*many.ON_MANY, "ack")) > 10, taken


def say_all_as_many(patch: pytest.MonkeyPatch) -> Counter[Any]:
    """Each message is about many jobs, which are one. Returns how many there are of each kind."""
    taken: Counter[Any] = Counter()

    def alone(kind: type, handle: Callable[..., None]) -> Callable[..., None]:
        def take(node: NodeState, sender: Peer, message: JobMessage) -> None:
            taken[kind] += 1
            handle(node, sender, message, [message.id])

        return take

    def ack_all(node: NodeState, ids: list[JobId]) -> int:
        taken["ack"] += len(ids)
        return sum(acks.ack_in_one_pass(node, [id]) for id in ids)

    for kind, handle in many.ON_MANY.items():
        patch.setitem(ON_MESSAGE, kind, alone(kind, handle))
    patch.setattr(acks, "ack_all", ack_all)
    return taken
