"""The DAG: its commands, and the DAG itself in Airflow where that is installed."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from disque_trio.pipeline.lake.store import Lake
from tests.pipeline.recipes import HOME, airflow
from tests.pipeline.recipes.conftest import Night


@pytest.mark.slow
def test_the_commands_of_the_dag_make_a_lake_a_report_and_tables(night: Night) -> None:
    assert night.statuses == {"ingest": 0, "sweep": 1, "compact": 0, "report": 0, "export": 0}
    assert "FAILED" in Path(night.params["html"]).read_text("utf-8")
    with closing(duckdb.connect(night.tables, read_only=True)) as tables:
        assert tables.execute("SELECT seeds FROM seeds").fetchall() == [(3,)]
        found = tables.execute("SELECT count(*) FROM jobs WHERE run = 'berlin'").fetchall()
        assert found == [(20,)]


def test_a_report_is_made_though_seeds_have_failed_and_a_sweep_is_not_run_again() -> None:
    tasks = {task.task_id: task for task in airflow.tasks()}

    before = {name: {each.task_id for each in task.before} for name, task in tasks.items()}
    assert before["compact"] == {"ingest", "sweep"}
    assert before["report"] == before["export"] == {"compact"}
    assert tasks["compact"].trigger_rule == "all_done"
    assert tasks["sweep"].retries == 0


@pytest.mark.slow
def test_tasks_that_run_again_store_nothing_twice(night: Night) -> None:
    lake = Lake.open(night.params["lake"])
    before = {name: sum(part.rows for part in parts) for name, parts in lake.snapshot().items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        for task in airflow.tasks():
            if task.task_id in ("ingest", "sweep"):
                assert task.run(night.params).returncode == night.statuses[task.task_id]

    after = {name: sum(part.rows for part in parts) for name, parts in lake.snapshot().items()}
    assert after == before


@pytest.mark.skipif(not shutil.which("airflow"), reason="no airflow on the PATH")
@pytest.mark.timeout(3600)
def test_airflow_parses_and_runs_the_dag(parameters: dict[str, str], tmp_path: Path) -> None:
    paths = {name: parameters[name] for name in ("traces", "cluster", "scenarios", "seeds")}
    given = {**paths, "lake": f"{tmp_path}/lake", "html": f"{tmp_path}/a.html"}
    given["tables"] = f"{tmp_path}/lake.duckdb"
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(HOME),
    }

    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(shutil.which("airflow", path=os.environ["PATH"])), *words],
            env=environment, check=False, capture_output=True, text=True, cwd=tmp_path,
        )  # fmt: skip

    assert run("db", "migrate").returncode == 0
    file = ["--dagfile-path", str(HOME / "nightly.py"), "--conf", json.dumps(given)]
    said = run("dags", "test", "disque_lake", *file)

    with closing(duckdb.connect(given["tables"], read_only=True)) as tables:
        assert tables.execute("SELECT seeds, failed > 0 FROM seeds").fetchall() == [(3, True)]
    assert "FAILED" in Path(given["html"]).read_text("utf-8"), said.stdout
