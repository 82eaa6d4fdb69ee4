"""What the judge says of the outcomes of runs."""

import attrs
import pytest

from disque_trio.sim.scenarios.apps import HandlerAction
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.testing.apps.checkers import outcomes
from disque_trio.testing.apps.checkers.history import History, RunRecord
from tests.trees import HOME


@pytest.mark.parametrize(
    ("action", "acted_at", "outcome", "found"),
    [
        ("snooze", 2, "release", set()),
        ("snooze", None, "release", {"A3"}),
        ("return", 2, "done", set()),
        ("return", None, "done", {"A3"}),
        ("error", 2, "done", {"A3"}),
    ],
)
def test_a_run_whose_time_limit_ends_as_it_ends_itself_may_have_either_outcome(
    action: str, acted_at: int | None, outcome: str, found: set[str]
) -> None:
    plan = expand(load(HOME / "scenarios" / "apps-calm.toml"), 0).apps
    assert plan is not None
    history = History(plan)
    job = next(iter(history.jobs.values()))
    job.plan = attrs.evolve(job.plan, actions=(HandlerAction(kind=action),))
    job.runs = [
        RunRecord(1, "w1", "id", 1, action, 1, 1, 0, 0, 0, acted_at, 3, outcome, "", "TOO_LONG")
    ]

    outcomes.check(history)

    assert {each.property for each in history.violations} == found
