"""What the judge says of snoozes."""

import pytest

from disque_trio.sim.scenarios.apps import AppCall, AppJob, AppsPlan, AppTask, HandlerAction
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.testing.apps.checkers import timing
from disque_trio.testing.apps.checkers.history import SLACK, History, RunRecord
from disque_trio.tracing.rows import Row
from tests.trees import HOME


def run(at: int, id: str, action: str, place: int) -> RunRecord:
    """One second long."""
    end = at * 1_000_000
    return RunRecord(end - 1_000_000, "w1", id, 1, action, 1, 1, 0, 0, place, end, end, "release")


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ([], ["one"], set()),
        ([], ["other"], {"A10"}),
        (["other"], ["other", "one"], set()),
        (["other"], ["other"], {"A10"}),
        ([], ["other", "one"], set()),
    ],
)
def test_a_snoozed_job_runs_again_under_its_id_beside_one_that_was_added_twice(
    before: list[str], after: list[str], found: set[str]
) -> None:
    plan = expand(load(HOME / "scenarios" / "apps-calm.toml"), 0).apps
    assert plan is not None
    history = History(plan)
    job = next(iter(history.jobs.values()))
    actions = [
        *((id, "error") for id in before),
        ("one", "snooze"),
        *((id, "late") for id in after),
    ]
    job.runs += [run(10 + 60 * n, id, action, n) for n, (id, action) in enumerate(actions)]

    timing.check(history)

    assert {each.property for each in history.violations} & {"A10"} == found


@pytest.mark.parametrize(
    ("cancel_s", "added_at", "found"),
    [
        (0.0, 10_000_000, {"A10"}),
        (30.0, 10_000_000, set()),
        (200.0, 10_000_000, {"A10"}),
        (30.0, None, {"A10"}),
    ],
)
def test_a_snoozed_member_of_a_flow_runs_again_unless_its_producer_has_begun_to_cancel_the_flow(
    cancel_s: float, added_at: int | None, found: set[str]
) -> None:
    task = AppTask(name="t", queue="q")
    job = AppJob(number=1, task="t", actions=(HandlerAction(kind="snooze", work=0, after_s=2.0),))
    call = AppCall(at=0, producer=1, kind="flow", jobs=(job,), cancel_s=cancel_s)
    history = History(AppsPlan(tasks=(task,), calls=(call,)))
    history.jobs[1].runs = [run(20, "one", "snooze", 0)]
    history.flows = {} if added_at is None else {1: added_at}
    history.over_at = 100_000_000

    timing.check(history)

    assert {each.property for each in history.violations} & {"A10"} == found


def test_a_wait_may_be_shorter_by_as_much_as_the_clock_of_a_node_is_fast() -> None:
    plan = expand(load(HOME / "scenarios" / "apps-calm.toml"), 0).apps
    assert plan is not None
    history = History(plan)
    assert history.shortest(10_000_000) == 10_000_000 - SLACK

    for ppm in ("-20000", "10000", "0"):
        history.see(Row(0, "clock.rate", "n1", "", "", "", "", "", ppm, 0, 0, 0, ()))

    assert history.shortest(10_000_000) == 9_900_000 - SLACK
