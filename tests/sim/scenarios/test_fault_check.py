"""Faults that cannot be carried out are refused, each with a sentence."""

from typing import Any

import attrs
import pytest

from disque_trio.sim.engines.heap.run import UnplayableError, simulate
from disque_trio.sim.model.network import Rule
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.fault_check import impossible
from disque_trio.sim.scenarios.file import load
from disque_trio.sim.scenarios.plan import Fault, Plan
from disque_trio.sim.scenarios.vocabulary import MESSAGES
from disque_trio.statemachine.messages import name_of
from disque_trio.wire.payloads import WRITERS
from tests.sim.mutants.plans.conditions import SCENARIOS
from tests.sim.runs import SECOND

DROP = {"kind": "drop", "nodes": (1,)}


def _plan(**fault: Any) -> Plan:
    return Plan(scenario="s", seed=1, nodes=3, chaos=SECOND, faults=(Fault(**fault),))


def test_each_message_on_the_wire_can_be_named() -> None:
    assert sorted(MESSAGES) == sorted(map(name_of, WRITERS))


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ({"kind": "flood", "nodes": (1,)}, "flood: there is no fault of this kind"),
        ({"kind": "swizzle", "nodes": (1,)}, "swizzle: there is no fault of this kind"),
        ({**DROP, "mode": "waitings"}, "drop: there is no message 'waitings'; known are ping, "),
        ({**DROP, "nodes": (4,)}, "drop: there is no node 4 among 3"),
        ({"kind": "drop", "links": ((1, 7),)}, "drop: there is no node 7 among 3"),
        ({"kind": "drop", "links": ((2, 2),)}, "drop: it meets no link"),
        ({"kind": "partition", "groups": ((1, 2, 3),)}, "partition: it meets no link"),
        ({"kind": "crash"}, "crash: nodes is empty: it meets no node"),
        ({"kind": "crash", "nodes": (1,), "mode": "in"}, "crash: there is no mode 'in'; known"),
        ({"kind": "slow", "nodes": (1,), "mode": "kill"}, "no mode 'kill'; known are none"),
        ({"kind": "pause-queue", "nodes": (1,)}, "pause-queue: queue is missing"),
        ({"kind": "crash", "nodes": (1,), "when": "send.hello"}, "there is no message 'hello'"),
        ({"kind": "crash", "nodes": (1,), "when": "dawn"}, "there is no event 'dawn'"),
        ({"kind": "crash", "target": "event.node"}, "target event.node needs an event"),
        (
            {"kind": "crash", "when": "serve", "target": "event.client"},
            "there is no target 'event.client'",
        ),
        ({"kind": "disk-full", "nodes": (1,)}, "disk-full: the nodes keep no journal"),
    ],
)
def test_a_fault_that_cannot_be_carried_out_is_refused(fault: dict[str, Any], why: str) -> None:
    plan = _plan(**fault)

    with pytest.raises(UnplayableError, match=f"no engine can play a fault .*{why}"):
        simulate(plan)


def test_a_fault_may_meet_a_node_that_joins() -> None:
    plan = _plan(kind="crash", nodes=(4,))
    join = Fault(kind="join", nodes=(1,))

    assert list(impossible(plan))
    assert not list(impossible(attrs.evolve(plan, faults=(join, *plan.faults))))


def test_a_rule_names_a_message_that_there_is() -> None:
    with pytest.raises(ValueError, match="only"):
        Rule(only="setacks")


@pytest.mark.sample(10)
@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.toml")), ids=lambda path: path.stem)
def test_the_shipped_scenarios_draw_no_such_fault(path: Any) -> None:
    scenario = load(path)

    assert [list(impossible(expand(scenario, seed))) for seed in range(20)] == [[]] * 20
