"""What the judge says of what deliveries cost."""

import pytest

from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.testing.apps.checkers import timing
from disque_trio.testing.apps.checkers.history import History, RunRecord
from disque_trio.tracing.rows import Row
from tests.trees import HOME

SECOND = 1_000_000


def run(at: int, place: int, interrupted: int, ended_at: int) -> RunRecord:
    return RunRecord(
        at=at * SECOND, process="w1", job="id", number=1, deed="late", attempt=1,
        delivery=place + 1, snoozes=0, interrupted=interrupted, place=place,
        delivered_at=at * SECOND, ended_at=ended_at * SECOND, outcome="dead",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("taken_back", "interrupted", "found"),
    [
        ([], 1, {"A5"}),
        ([30.0], 1, set()),
        ([8.0], 1, {"A5"}),
        ([40.7], 1, set()),
        ([40.8], 1, {"A5"}),
        ([30.0], 2, {"A5"}),
        ([30.0, 30.1], 2, set()),
        ([30.0, 35.0], 2, {"A5"}),
    ],
)
def test_a_run_costs_a_delivery_only_if_its_outcome_came_too_late(
    taken_back: list[float], interrupted: int, found: set[str]
) -> None:
    plan = expand(load(HOME / "scenarios" / "apps-calm.toml"), 0).apps
    assert plan is not None
    history = History(plan)
    for at in taken_back:
        what = int(at * SECOND), "queue", "n1", "id", "", "", "", "retry", "", 0, 0, 0, ()
        history.see(Row(*what))
    job = next(iter(history.jobs.values()))
    job.runs = [run(10, 0, 0, 40), run(50, 1, interrupted, 51)]

    timing.check(history)

    assert {each.property for each in history.violations} & {"A5"} == found
