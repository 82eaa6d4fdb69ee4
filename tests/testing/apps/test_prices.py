"""What the judge says of what deliveries cost."""

import attrs
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
        at=at * SECOND, process="w1", job="id", number=1, action="late", attempt=1,
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


@pytest.mark.parametrize(("unanswered", "found"), [(0, {"A5"}), (4, {"A5"}), (5, set())])
def test_faults_of_nodes_do_not_make_a_job_dead_that_has_killed_no_worker(
    unanswered: int, found: set[str]
) -> None:
    plan = expand(load(HOME / "scenarios" / "apps-calm.toml"), 0).apps
    assert plan is not None
    history = History(plan)
    for at in (10, 20, 30, 40, 50, 60, 70):
        what = at * SECOND, "queue", "n1", "id", "", "", "", "retry", "", 0, 0, 0, ()
        history.see(Row(*what))
    history.at_nodes.append((0, 80 * SECOND))
    history.dead["id"] = 90 * SECOND
    job = next(iter(history.jobs.values()))
    job.id, job.is_own = "id", True
    runs = [run(10 + place, place, place, 11 + place) for place in range(unanswered)]
    job.runs = [attrs.evolve(each, ended_at=None, outcome="") for each in runs]

    timing.check_crashes(history)

    assert {each.property for each in history.violations} == found
