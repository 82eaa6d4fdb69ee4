"""Simulated processes of an app."""

import pytest

from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.testing.apps.run import simulate
from disque_trio.tracing.rows import Row
from tests.trees import HOME


@pytest.mark.slow
def test_a_process_that_stood_still_renews_no_lease_that_has_ended_meanwhile() -> None:
    rows: list[Row] = []

    simulate(expand(load(HOME / "scenarios" / "apps.toml"), 59), rows.append)

    over = {
        (row.time, row.job) for row in rows if row.kind == "app.end" and "LEASE_OVER" in row.detail
    }
    renewed = {(row.time, row.job) for row in rows if row.kind == "working.invoke"}
    assert over
    assert not over & renewed
