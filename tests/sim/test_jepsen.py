"""Jepsen's test of Disque of 2015, its workload and its two faults, in every engine."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs
import pytest

from disque_trio.cli.sim.execution import execute
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.sim.scenarios.vocabulary import ENGINES
from tests.sim.plans import SECOND
from tests.sim.scenarios.test_shipped import ROOT

LENGTH: Final = 30 * SECOND
NODE_TIMEOUT: Final = "2000"
"""Milliseconds, in real time."""
PACES: Final = (5, 2, 1)
"""How many times as fast faults come and go. Where a machine is so busy that all nodes are killed
before any has started, nothing is added, and nothing is shown: then slower."""


def brief(plan: Plan, faster: int) -> Plan:
    """Its beginning, and less of it the faster it is: real time is dear."""
    length = LENGTH // faster
    faults = (
        attrs.evolve(fault, at=fault.at // faster, hold=fault.hold // faster)
        for fault in plan.faults
    )
    return attrs.evolve(
        plan,
        adds=tuple(add for add in plan.adds if add.at < length),
        faults=tuple(fault for fault in faults if fault.at < length),
        chaos=length,
    )


def patient(plan: Plan) -> Plan:
    """With a node timeout that real processes can keep on a machine that is busy: with the 100 ms
    of the scenario they give up their links while they wait for a processor, and never form a
    cluster."""
    config = {**dict(plan.config), "cluster-node-timeout": NODE_TIMEOUT}
    return attrs.evolve(plan, config=tuple(config.items()))


def plans(plan: Plan, engine: str) -> Iterator[Plan]:
    """Whole for the fastest engine."""
    if engine == "heap":
        return iter([plan])
    played = patient(plan) if engine == "tcp" else plan
    return (brief(played, pace) for pace in PACES)


@pytest.mark.sample(6)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("name", "fault"), [("jepsen-2015", "cut"), ("jepsen-2015-kills", "crash")]
)
def test_jepsens_test_of_2015_loses_nothing(name: str, fault: str, engine: str) -> None:
    plan = expand(load(Path(ROOT, "scenarios", f"{name}.toml")), 1)

    for played in plans(plan, engine):
        result = execute(played, engine).result

        assert result.lost == 0
        # In real time, a busy machine is late, which shows as duplicates.
        is_exact = engine != "tcp"
        late = () if is_exact else ("D",)
        assert [f for f in result.findings if not f.property.startswith(late)] == []
        assert result.marks[fault] > 0
        if result.added or is_exact:
            break
    assert result.delivered >= result.added > 0
