"""What a run's result has when the run does not come to its end."""

from typing import Any

import pytest

from disque_trio.cli.sim.execution import OverdueError, execute
from disque_trio.sim.engines.heap.run import Outcome
from disque_trio.sim.engines.heap.world import FormingError
from disque_trio.tracing.rows import Row
from tests.sim.mutants.plans.conditions import plan


@pytest.mark.parametrize(
    ("error", "property"),
    [
        (RuntimeError("boom"), "S12"),
        (FormingError("no"), "forming"),
        (OverdueError("late"), "hang"),
    ],
)
def test_what_was_found_before_a_run_fails_is_reported_too(
    error: BaseException, property: str
) -> None:
    def run(_plan: Any, observe: Any) -> Outcome:
        observe(Row(5, "invariant", node="n1", detail="a job is twice in a queue"))
        raise error

    result = execute(plan("failing", 1, 10), run=run).result

    assert not result.is_ok
    assert [each.property for each in result.findings] == [property, "S17"]
    assert result.findings[1].time == 5
