"""What the judge says of runs of a job beside each other."""

import pytest

from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.testing.apps.checkers import timing
from disque_trio.testing.apps.checkers.history import History
from disque_trio.tracing.rows import Row
from tests.trees import HOME

SECOND = 1_000_000


def row(at: float, kind: str, *, client: str = "", job: str = "", detail: str = "") -> Row:
    is_begin = kind == "app.begin"
    return Row(
        int(at * SECOND), kind, "n1", job, "q1", client, "n2" if kind in ("cut", "heal") else "",
        "return", detail, 1 if is_begin else 0, 0, 0, (),
    )  # fmt: skip


@pytest.mark.parametrize(("delivered", "found"), [(15.0, []), (29.0, ["A4"])])
def test_a_run_beside_another_one_is_excused_by_a_cut_in_which_it_was_delivered(
    delivered: float, found: list[str]
) -> None:
    plan = expand(load(HOME / "scenarios" / "apps-calm.toml"), 0).apps
    assert plan is not None
    history = History(plan)
    begins = "attempt=1 delivery=1 snoozes=0 interrupted=0"
    for each in (
        row(10, "cut"),
        row(11, "get.deliver", client="w1", job="id"),
        row(delivered, "get.deliver", client="w2", job="id"),
        row(20, "heal"),
        row(28, "app.begin", client="w1", job="id", detail=begins),
        row(30, "app.begin", client="w2", job="id", detail=begins),
    ):
        history.see(each)

    timing.check(history)

    assert [each.property for each in history.violations] == found
