"""One night, as the DAG runs it: the other recipes read what it leaves."""

import os
import sys
from pathlib import Path
from typing import Final

import attrs
import pytest

from tests.cluster.processes import Fleet
from tests.pipeline.recipes import airflow
from tests.pipeline.test_sweep_on_cluster import scenario

PATHS: Final = {"lake": "lake", "traces": "traces", "html": "night.html", "tables": "lake.duckdb"}


@attrs.frozen
class Night:
    """What the commands have said, and where it is."""

    folder: Path
    params: dict[str, str]
    statuses: dict[str, int]
    said: str

    @property
    def tables(self) -> str:
        """The DuckDB file."""
        return self.params["tables"]


@pytest.fixture(scope="session")
def parameters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Parameters of the DAG: traces of two nodes, and a scenario of which some seeds fail."""
    folder = tmp_path_factory.mktemp("night")
    fleet = Fleet(folder / "traces")
    try:
        client = fleet.cluster(2, "--trace-file", "trace.jsonl").servers[0].client
        for number in range(20):
            client.call("ADDJOB", f"q{number % 2}", f"b{number}", 5000, "RETRY", 1, "REPLICATE", 2)
        client.call("GETJOB", "COUNT", 20, "FROM", "q0")
        again = client.call("GETJOB", "TIMEOUT", 20_000, "FROM", "q0")
        assert isinstance(again, list), "nobody has acknowledged it"
    finally:
        fleet.close()
    paths = {name: str(folder / path) for name, path in PATHS.items()}
    swept = scenario(folder, "careless", 40)
    return {**paths, "cluster": "berlin", "scenarios": swept, "seeds": "0:3"}


@pytest.fixture(scope="session")
def night(parameters: dict[str, str]) -> Night:
    """Its commands are run in order, as Airflow would run them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        ran = {task.task_id: task.run(parameters) for task in airflow.tasks()}
    return Night(
        Path(parameters["lake"]).parent,
        parameters,
        {name: each.returncode for name, each in ran.items()},
        "".join(each.stdout + each.stderr for each in ran.values()),
    )
