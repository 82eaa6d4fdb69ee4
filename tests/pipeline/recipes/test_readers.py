"""dbt, a notebook and Grafana's dashboard on the tables that an export has made."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.pipeline.recipes import HOME
from tests.pipeline.recipes.conftest import Night

DBT = HOME / "dbt"
MODELS = {path.stem: path for path in (DBT / "models").glob("*.sql")}


@pytest.fixture
def tables(night: Night) -> Iterator[Any]:
    with closing(duckdb.connect(night.tables, read_only=True)) as found:
        yield found


def test_sums_in_tables_are_of_a_type_that_other_programs_know(tables: Any) -> None:
    kinds = tables.execute("SELECT DISTINCT data_type FROM information_schema.columns").fetchall()

    assert not [kind for (kind,) in kinds if "HUGEINT" in kind]


def check_days(base: Any) -> None:
    found = base.execute(
        "SELECT cluster, queue, day IS NOT NULL, jobs, duplicates FROM queue_days ORDER BY queue"
    )
    assert found.fetchall() == [("berlin", "q0", True, 10, 1), ("berlin", "q1", True, 10, 0)]


def check_health(base: Any) -> None:
    found = base.execute("SELECT scenario, seeds, failed > 0, violated FROM scenario_health")
    assert found.fetchall() == [("careless", 3, True, "D1")]


def test_the_models_of_dbt_are_what_they_say(tables: Any) -> None:
    with closing(duckdb.connect()) as base:
        for name, path in MODELS.items():
            sql = re.sub(r"\{\{ source\('lake', '(\w+)'\) \}\}", r"\1", path.read_text("utf-8"))
            base.register(name, tables.sql(sql).to_arrow_table())
        check_days(base)
        check_health(base)


@pytest.mark.skipif(not shutil.which("dbt"), reason="no dbt on the PATH")
def test_dbt_builds_and_tests_the_models(night: Night, tmp_path: Path) -> None:
    project = shutil.copytree(DBT, tmp_path / "dbt")
    marts = tmp_path / "marts.duckdb"
    environment = {
        **os.environ,
        "DISQUE_LAKE": night.tables,
        "DISQUE_MARTS": str(marts),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "False",
    }
    built = subprocess.run(
        ["dbt", "build", "--profiles-dir", "."],
        cwd=project, env=environment, check=False, capture_output=True, text=True,
    )  # fmt: skip

    assert built.returncode == 0, built.stdout
    assert re.search(r"PASS=5 WARN=0 ERROR=0 SKIP=0", built.stdout), built.stdout
    with closing(duckdb.connect(str(marts), read_only=True)) as base:
        check_days(base)
        check_health(base)


def test_the_cells_of_the_notebook_run(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISQUE_LAKE", night.tables)
    names: dict[str, Any] = {}
    exec((HOME / "latency.py").read_text("utf-8"), names)

    names["lake"].close()
    assert set(names["slowest"]["queue"]) >= {"q0", "q1"}
    assert dict(names["causes"].itertuples(index=False))["D1"] > 0
    assert len(names["longest"]) == 10


def test_jupyter_runs_the_notebook(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    jupytext = pytest.importorskip("jupytext")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("DISQUE_LAKE", night.tables)
    notebook = jupytext.read(HOME / "latency.py")

    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()

    shown = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    assert [len(outputs) for outputs in shown] == [0, 1, 1, 1]
    assert "text/html" in shown[1][0]["data"]


TIME_SERIES, TABLE = 0, 1
"""Formats of queries, which Grafana's plugins in Go read as numbers."""
DASHBOARD = json.loads((HOME / "grafana" / "dashboard.json").read_text("utf-8"))


@pytest.mark.parametrize("panel", DASHBOARD["panels"], ids=lambda panel: panel["title"])
def test_each_panel_of_the_dashboard_shows_something(tables: Any, panel: dict[str, Any]) -> None:
    (target,) = panel["targets"]
    # As the plugin of Grafana replaces it.
    sql = re.sub(
        r"\$__timeFilter\((.+?\))\)",
        r"\1 >= '1970-01-02T00:00:00Z' AND \1 <= '2100-01-01T00:00:00Z'",
        target["rawSql"],
    )
    assert "$" not in sql
    found = tables.execute(sql)

    columns = [(name, str(kind)) for name, kind, *_ in found.description]
    assert target["format"] == (TIME_SERIES if columns[0][0] == "time" else TABLE)
    if target["format"] == TIME_SERIES:
        assert columns[:2] == [("time", "TIMESTAMP"), ("metric", "VARCHAR")]
        assert {kind for _, kind in columns[2:]} <= {"BIGINT", "DOUBLE"}
    assert not any(kind == "HUGEINT" for _, kind in columns), "the plugin makes texts of it"
    assert found.fetchall() or panel["title"] == "Violations"


def test_the_dashboard_reads_the_data_source_that_is_provisioned() -> None:
    text = (HOME / "grafana" / "datasource.yml").read_text("utf-8")
    (uid,) = re.findall(r"uid: (\S+)", text)
    (kind,) = re.findall(r"type: (\S+)", text)

    places = [
        place["datasource"] for panel in DASHBOARD["panels"] for place in (panel, *panel["targets"])
    ]
    assert all(place == {"type": kind, "uid": uid} for place in places)
