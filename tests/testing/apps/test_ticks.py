"""What the judge says of ticks."""

import attrs
import pytest

from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.testing.apps.checkers import ticks
from disque_trio.testing.apps.checkers.history import History
from disque_trio.testing.apps.run import simulate
from disque_trio.tracing.rows import Row
from tests.trees import HOME


@pytest.mark.slow
def test_a_tick_whose_job_has_another_id_is_a_second_one() -> None:
    plan = expand(load(HOME / "scenarios" / "apps-calm.toml"), 2)
    rows: list[Row] = []
    simulate(plan, rows.append)
    assert plan.apps is not None
    once, twice = History(plan.apps), History(plan.apps)
    for row in rows:
        once.see(row)
        twice.see(row)
        if row.kind == "app.tick":
            twice.see(attrs.evolve(row, job="another", time=row.time + 1))

    for history in (once, twice):
        history.finish()
        ticks.check(history)

    assert once.violations == []
    assert {found.property for found in twice.violations} == {"A9"}
