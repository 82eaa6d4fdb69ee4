"""What the judge says of members of flows."""

from typing import Final

import attrs
import pytest

from disque_trio.cli.sim.execution import execute
from disque_trio.sim.scenarios.apps import AppCall, AppJob, AppsPlan, AppTask
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.testing.apps.checkers import flows
from disque_trio.testing.apps.checkers.history import History, RunRecord
from tests.trees import HOME

SECOND: Final = 1_000_000
JOBS: Final = (AppJob(number=1, task="t"), AppJob(number=2, task="t", after=(0,)))


def history_of(cancel_s: float = 0.0) -> History:
    """A flow of two members, one after the other, that was added at 1 s."""
    call = AppCall(at=SECOND, producer=1, kind="flow", jobs=JOBS, cancel_s=cancel_s)
    history = History(AppsPlan(tasks=(AppTask(name="t", queue="q"),), calls=(call,)))
    history.flows[1] = SECOND
    history.over_at = 400 * SECOND
    return history


def run(number: int, at: int, action: str = "return", outcome: str = "done") -> RunRecord:
    end = (at + 1) * SECOND
    known = at * SECOND, "w1", f"D-{number}", number, action, 1, 1, 0, 0, 0
    return RunRecord(*known, end, end, outcome)


def found(history: History) -> list[str]:
    flows.check(history)
    return [f"{each.property}: {each.detail}" for each in history.violations]


def test_a_member_runs_after_the_one_before_it() -> None:
    history = history_of()
    history.jobs[1].runs, history.jobs[2].runs = [run(1, 2)], [run(2, 4)]
    assert found(history) == []


@pytest.mark.parametrize("runs", [[run(1, 4)], [run(1, 2, "error", "retry")], []])
def test_one_that_runs_before_is_found(runs: list[RunRecord]) -> None:
    history = history_of()
    history.jobs[1].runs, history.jobs[2].runs = runs, [run(2, 4)]
    assert found(history)[-1] == "A13: job 2 of t runs, and job 1 of t before it is not done"


def test_one_that_never_runs_is_found_unless_it_cannot() -> None:
    history = history_of()
    history.jobs[1].runs = [run(1, 2)]
    assert found(history) == ["A13: job 2 of t never runs, and all members before it are done"]
    for runs in ([run(1, 2, "cancel")], [run(1, 2, "dead", "dead")], [run(1, 150)]):
        late = history_of()
        late.jobs[1].runs = runs
        assert found(late) == []


@pytest.mark.parametrize(("held_at", "count"), [(8, 0), (20, 1)])
def test_one_that_is_added_after_the_flow_was_cancelled_is_found(held_at: int, count: int) -> None:
    history = history_of(cancel_s=3.0)
    history.jobs[1].runs, history.jobs[2].runs = [run(1, 2)], [run(2, 30)]
    history.cancelled[1] = 4 * SECOND
    history.held["D-2"] = held_at * SECOND
    assert len(found(history)) == count


@pytest.mark.slow
@pytest.mark.parametrize("name", ["flows", "flows-calm"])
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_flows_keep_their_promises(name: str, seed: int) -> None:
    plan = expand(load(HOME / "scenarios" / f"{name}.toml"), seed)
    assert plan.apps is not None
    assert any(call.kind == "flow" for call in plan.apps.calls)
    assert execute(plan).result.findings == ()


def test_seeds_draw_flows_that_are_cancelled_and_members_without_order() -> None:
    drawn = [expand(load(HOME / "scenarios" / "flows.toml"), seed).apps for seed in range(10)]
    calls = [call for apps in drawn if apps for call in apps.calls if call.kind == "flow"]
    assert {bool(call.cancel_s) for call in calls} == {False, True}
    sizes = {len(job.after) for call in calls for job in call.jobs}
    assert {0, 1, 2, 3} <= sizes
    assert attrs.asdict(calls[0])["jobs"]
