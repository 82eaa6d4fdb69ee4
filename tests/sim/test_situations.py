"""The situations that scenarios are about do come up in them."""

from collections import Counter
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from disque_trio.cli.sim.execution import execute
from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.sim.workload.agents import Worker
from disque_trio.sim.workload.visits import Visits
from disque_trio.statemachine.base import Reply
from disque_trio.statemachine.machine import Machine

FOLDER: Final = Path(__file__).parents[2] / "scenarios"
SECOND: Final = 1_000_000
MOST_SEEDS: Final = 20


def plan_of(name: str, seed: int) -> Plan:
    return expand(load(FOLDER / f"{name}.toml"), seed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "marks"),
    [
        ("careless-clients", ("producer.died", "add.recovered", "expired.unacked")),
        ("half-open", ("half-open", "message.lost")),
        ("moved-jobs", ("fastack.moved", "giver.crashed", "restart")),
        ("at-most-once-aof", ("at_most_once.added", "copy.loaded", "federation.moved_once")),
        ("repair-pairs", ("remove.two", "copy.restored")),
    ],
)
def test_a_scenario_shows_what_it_is_about(name: str, marks: tuple[str, ...]) -> None:
    missing = list(marks)
    for seed in range(MOST_SEEDS):
        found = execute(plan_of(name, seed)).result.marks
        missing = [mark for mark in missing if not found.get(mark)]
        if not missing:
            return
    assert missing == []


def test_consumers_wait_for_long_and_leave_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[int] = []
    visits: Counter[str] = Counter()
    asked: dict[str, int] = {}
    ask, answered, leave = Visits.ask, Worker.answered, Worker._leave

    def asking(self: Visits, now: int) -> int:
        asked[self._plan.name] = now
        return ask(self, now)

    def served(self: Worker, now: int, connection: int, reply: Reply) -> None:
        if self._is_asking and isinstance(reply, list) and self.name in asked:
            waits.append(now - asked[self.name])
        answered(self, now, connection, reply)

    def leaving(self: Worker, now: int) -> None:
        visits["in the middle" if self._is_asking else "between"] += 1
        leave(self, now)

    monkeypatch.setattr(Visits, "ask", asking)
    monkeypatch.setattr(Worker, "answered", served)
    monkeypatch.setattr(Worker, "_leave", leaving)

    plan = plan_of("comers-and-goers", 1)
    simulate(plan)

    assert sum(wait > 2 * SECOND for wait in waits) > 10
    assert visits["in the middle"] > 10
    assert visits["between"] > 10
    assert len({queue for each in plan.consumers for queue in each.queues}) == 20


@pytest.mark.slow
def test_nodes_turn_their_tombstones_several_times() -> None:
    machines: list[Machine] = []

    def make(*arguments: Any, **named: Any) -> Machine:
        machines.append(Machine(*arguments, **named))
        return machines[-1]

    plan = attrs.evolve(plan_of("small-tombstones", 0), drain=SECOND)
    simulate(plan, machine_factory=make)

    for machine in machines:
        tombstones = machine.state.tombstones
        assert tombstones.generation == 150
        assert len(tombstones) < 300
    assert sum(len(machine.state.tombstones._old) == 150 for machine in machines) == len(machines)
