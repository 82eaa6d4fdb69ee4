"""One history of a plan, whether the heap runs it by itself or a task leads it through its time."""

from pathlib import Path
from typing import Final

import attrs
import pytest
import trio

from disque_trio.sim.engines.heap.run import Outcome, run_on_heap, simulate
from disque_trio.sim.engines.trio import virtual_time
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.sim.scenarios.plan import Plan
from tests.trees import HOME

SECOND: Final = 1_000_000
SCENARIOS: Final = sorted(
    path
    for path in (HOME / "scenarios").glob("*.toml")
    if not path.stem.startswith(("soak", "apps"))
)


def beginning(plan: Plan) -> Plan:
    """A few seconds of it."""
    end = 6 * SECOND
    return attrs.evolve(
        plan,
        adds=tuple(add for add in plan.adds if add.at < end),
        faults=tuple(fault for fault in plan.faults if fault.when or fault.at < end),
        chaos=end,
        drain=2 * SECOND,
    )


def simulate_on_one_task(plan: Plan) -> Outcome:
    """The heap engine's run, by one task that sleeps from event to event."""

    async def main() -> Outcome:
        run = run_on_heap(plan)
        engine, began = run.engine, run.engine.now
        for until in run.parts():
            while engine.next_time() <= until:
                await trio.sleep_until((engine.next_time() - began) / SECOND)
                assert round(trio.current_time() * SECOND) + began == engine.next_time()
                engine.step()
            await trio.sleep_until((until - began) / SECOND)
            engine.run(until)
        return run.outcome()

    return virtual_time.run(f"{plan.seed}/tasks", main)


@pytest.mark.sample(15)
@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_scenario_begins_alike_in_both(path: Path) -> None:
    plan = beginning(expand(load(path), 3))

    assert simulate_on_one_task(plan).digest == simulate(plan).digest
