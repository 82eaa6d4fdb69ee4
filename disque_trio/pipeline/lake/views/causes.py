"""Duplicates by cause: from the checkers where they have seen the run, else from the rows.

The checkers distinguish all causes (`results`). For a trace without a result, such as that of live
nodes, the rows distinguish only D0, D1 and the rest (view `deliveries`).
"""

from typing import Final

COLUMNS: Final = {
    "scenario": "the scenario's name; `live` for live nodes",
    "cause": "D0 to D12 or DX (docs/guarantees.md), or D2-D12",
    "is_judged": "whether the checkers determined it",
    "duplicates": "how many duplicates",
    "jobs": "how many confirmed jobs the scenario had",
    "per_million": "duplicates per million jobs",
}

SQL: Final = """
WITH counted AS (
  SELECT scenario, cause, sum(times) AS duplicates
  FROM (SELECT scenario, explode(duplicates) AS (cause, times) FROM results)
  GROUP BY scenario, cause
), judged AS (
  SELECT scenario, cause, true AS is_judged, duplicates, jobs
  FROM counted JOIN (SELECT scenario, sum(added) AS jobs FROM results GROUP BY scenario)
    USING (scenario)
), rest AS (
  SELECT scenario, run, added FROM runs LEFT ANTI JOIN results USING (scenario, run)
), told AS (
  SELECT scenario, cause, count(*) AS duplicates
  FROM deliveries LEFT SEMI JOIN rest USING (scenario, run)
  WHERE cause IS NOT NULL GROUP BY scenario, cause
), known AS (
  SELECT scenario, sum(added) AS jobs FROM rest GROUP BY scenario
)
SELECT *, try_divide(1e6 * duplicates, jobs) AS per_million FROM (
  SELECT * FROM judged
  UNION ALL
  SELECT scenario, cause, false, duplicates, jobs FROM told JOIN known USING (scenario)
)
"""
