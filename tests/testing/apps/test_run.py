"""A plan with an app is played like any other plan."""

import json
from typing import Final

import pytest

from disque_trio.cli.sim import main
from disque_trio.sim.scenarios import plan_file
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.testing.apps.run import simulate
from disque_trio.tracing.rows import Row
from tests.trees import HOME

APPS: Final = str(HOME / "scenarios" / "apps.toml")


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


def test_the_command_tells_the_jobs_and_the_digest(capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", APPS, "--seed", "2", "--json"])

    told = json.loads(capsys.readouterr().out)
    assert told["scenario"] == "apps"
    assert told["added"] > 10
    assert told["digest"]
