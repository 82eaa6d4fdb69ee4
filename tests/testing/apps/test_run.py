"""A plan with an app is played like any other plan."""

import json
from typing import Final

import attrs
import pytest

from disque_trio.cli.sim import main
from disque_trio.cli.sim.execution import execute
from disque_trio.sim.scenarios import plan_file
from disque_trio.sim.scenarios.apps import HandlerAction
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.testing.apps.run import simulate
from disque_trio.tracing.rows import Row
from tests.trees import HOME

APPS: Final = str(HOME / "scenarios" / "apps.toml")

CALM: Final = str(HOME / "scenarios" / "apps-calm.toml")


@pytest.mark.slow
def test_a_seed_gives_the_same_rows_twice() -> None:
    plan = expand(load(APPS), 3)
    runs: list[list[Row]] = [[], []]

    digests = [simulate(plan, rows.append).digest for rows in runs]

    assert digests[0] == digests[1]
    assert runs[0] == runs[1]
    assert any(row.kind == "app.end" for row in runs[0])


def test_a_plan_with_an_app_can_be_kept_in_a_file() -> None:
    plan = expand(load(APPS), 5)

    assert plan_file.parse(plan_file.dump(plan)) == plan


def test_a_run_goes_on_while_a_worker_with_much_to_do_runs_jobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("disque_trio.testing.apps.run.LONGEST_STILL_S", 30)
    plan = expand(load(CALM), 4)
    assert plan.apps is not None
    calls = [call for call in plan.apps.calls if call.kind == "single"][:12]
    slow = tuple(
        attrs.evolve(
            call, jobs=(attrs.evolve(call.jobs[0], actions=(HandlerAction(work=8_000_000),)),)
        )
        for call in calls
    )
    tasks = tuple(attrs.evolve(each, timeout_s=None) for each in plan.apps.tasks)
    apps = attrs.evolve(plan.apps, calls=slow, tasks=tasks, workers=1, concurrency=1)

    result = execute(attrs.evolve(plan, apps=apps)).result

    assert result.added >= len(calls) == 12
    assert result.findings == ()


@pytest.mark.slow
def test_the_command_tells_the_jobs_and_the_digest(capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", APPS, "--seed", "2", "--json"])

    told = json.loads(capsys.readouterr().out)
    assert told["scenario"] == "apps"
    assert told["added"] > 10
    assert told["digest"]
