"""Where things are in a lake: the names that whoever writes and whoever reads must agree on.

A lake is a folder of Parquet files: a folder for each table, and in it one for each scenario, as in
``LAKE/results/scenario=NAME/part-….parquet``. Spark and Arrow make a column of the folder's name,
and skip names that begin with ``_`` or ``.``: what is under way, or not a table.
"""

from pathlib import Path
from typing import Final

RESULTS: Final = "results"
"""A row for each seed and version of the code."""
TRACES: Final = "traces"
"""Rows of runs: `sim.tracefile.schema` without the scenario, and `run` in front."""
PLANS: Final = "plans"
"""The plan of each run that has a trace."""
SWEEP: Final = "_sweep"
"""What a sweep keeps to go on where it stopped."""
PARTITION: Final = "scenario"
LIVE: Final = "live"
"""The scenario of what live nodes have traced."""


def folder(lake: Path | str, table: str, scenario: str) -> Path:
    """Where a scenario's files of a table are."""
    return Path(lake, table, f"{PARTITION}={scenario}")


def run_name(scenario: str, seed: int, code: str) -> str:
    """What the rows of one run have in common: no two runs of a lake have the same."""
    return f"{scenario}-{seed}-{code[:8]}"
