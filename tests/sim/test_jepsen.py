"""Jepsen's test of Disque of 2015, its workload and its two faults, in every engine."""

from pathlib import Path
from typing import Final

import attrs
import pytest

from disque_trio.cli.sim.execution import execute
from disque_trio.sim.expand import expand
from disque_trio.sim.plan import Plan
from disque_trio.sim.scenariofile import load
from disque_trio.sim.words import ENGINES
from tests.sim.plans import SECOND
from tests.sim.test_shipped import ROOT

BRIEF: Final = 6 * SECOND
FASTER: Final = 5


def brief(plan: Plan) -> Plan:
    """Faults come and go five times as fast, for six seconds: real time is dear."""
    faults = (
        attrs.evolve(fault, at=fault.at // FASTER, hold=fault.hold // FASTER)
        for fault in plan.faults
    )
    return attrs.evolve(
        plan,
        adds=tuple(add for add in plan.adds if add.at < BRIEF),
        faults=tuple(fault for fault in faults if fault.at < BRIEF),
        chaos=BRIEF,
    )


@pytest.mark.timeout(300)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("name", "fault"), [("jepsen-2015", "cut"), ("jepsen-2015-kills", "crash")]
)
def test_jepsens_test_of_2015_loses_nothing(name: str, fault: str, engine: str) -> None:
    plan = expand(load(Path(ROOT, "scenarios", f"{name}.toml")), 1)

    result = execute(plan if engine == "heap" else brief(plan), engine).result

    assert result.lost == 0
    # In real time, how late is too late is a matter of the machine.
    is_exact = engine != "tcp"
    assert [f for f in result.findings if is_exact or not f.property.startswith("D")] == []
    assert result.marks[fault] > 0
    assert result.delivered >= result.added > 0
