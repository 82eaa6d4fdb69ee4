"""An Airflow DAG: each night, traces of a cluster and a sweep go into a lake, and a report and a
DuckDB file are made of it. docs/pipeline-recipes.md explains it.

Needs Airflow 3, and `disque-trio` with the extra `spark` on the PATH of its workers.
"""

from datetime import datetime, timedelta
from typing import Final

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, Param

COMMANDS: Final = {
    "ingest": "disque-trio pipeline ingest {lake} {traces} --run {cluster}",
    "sweep": "disque-trio sim sweep {scenarios} --seeds {seeds} --lake {lake} --trace-share 0.01",
    "compact": "disque-trio pipeline compact {lake}",
    "report": "disque-trio pipeline report {lake} --html {html}",
    "export": "disque-trio pipeline export {lake} {tables}",
}
"""All of them may run again, also beside their first attempt: nothing is stored twice."""

PARAMS: Final = {
    "lake": "/data/lake",
    "traces": "/data/traces",
    "cluster": "berlin",
    "scenarios": "/data/scenarios/*.toml",
    "seeds": "nightly",
    "html": "/data/night.html",
    "tables": "/data/lake.duckdb",
}
"""`airflow dags trigger disque_lake --conf '{"seeds": "ci"}'` gives others."""

with DAG(
    "disque_lake",
    schedule="30 2 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    params={name: Param(value, type="string") for name, value in PARAMS.items()},
):
    given = {name: f"{{{{ params.{name} }}}}" for name in PARAMS}
    tasks = {
        name: BashOperator(
            task_id=name,
            bash_command=command.format(**given),
            append_env=True,
            # A seed that has failed fails its task, and belongs into the report.
            trigger_rule="all_done" if name == "compact" else "all_success",
            retries=0 if name == "sweep" else 2,
            retry_delay=timedelta(minutes=5),
        )
        for name, command in COMMANDS.items()
    }
    tasks["compact"].set_upstream([tasks["ingest"], tasks["sweep"]])
    tasks["compact"].set_downstream([tasks["report"], tasks["export"]])
