"""Duplicates by cause, as the judge has found them: in sweeps, and in traces of other runs."""

from typing import Final

COLUMNS: Final = {
    "scenario": "the scenario's name; `live` for live nodes",
    "cause": "D0 to D13 or DX (docs/guarantees.md)",
    "duplicates": "how many duplicates",
    "jobs": "how many confirmed jobs the scenario had",
    "per_million": "duplicates per million jobs",
}

SQL: Final = """
WITH rest AS (
  SELECT scenario, run, added FROM runs LEFT ANTI JOIN results USING (scenario, run)
), found AS (
  SELECT scenario, each.key AS cause, each.value AS times
  FROM (SELECT scenario, explode(map_entries(duplicates)) AS each FROM results)
  UNION ALL
  SELECT scenario, each.cause, 1
  FROM (SELECT scenario, run, explode(duplicates) AS each FROM verdicts)
    LEFT SEMI JOIN rest USING (scenario, run)
), known AS (
  SELECT scenario, sum(added) AS jobs
  FROM (SELECT scenario, added FROM results UNION ALL SELECT scenario, added FROM rest)
  GROUP BY scenario
)
SELECT scenario, cause, sum(times) AS duplicates, jobs,
  try_divide(1e6 * sum(times), jobs) AS per_million
FROM found JOIN known USING (scenario) GROUP BY scenario, cause, jobs
"""
