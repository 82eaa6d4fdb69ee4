"""Which message about a job met which state of the job at its receiver, and how often.

States: `unknown` (no record), `held`, `queued`, `acked`. Pairs with low counts are tested least.
"""

from typing import Final

from disque_trio.pipeline.lake.views.words import KEYS

COLUMNS: Final = {
    "scenario": "the scenario's name; `live` for live nodes",
    "message": "its type",
    "state": "the state of the job at the receiver when the message arrived",
    "times": "how often",
    "runs": "in how many runs",
}

SQL: Final = f"""
WITH heard AS (
  SELECT {KEYS}, node, time, seq, kind, cause,
    explode(if(job <> '', array(job),
      split(regexp_extract(detail, 'jobs=([^ ]+)', 1), ','))) AS job
  FROM rows
  WHERE kind IN ('hold', 'drop', 'queue', 'unqueue', 'dead', 'redrive', 'acked') AND job <> ''
    OR kind = 'recv' AND (job <> '' OR detail LIKE '%jobs=%')
), stood AS (
  SELECT *, last_value(CASE kind
      WHEN 'hold' THEN if(cause = 'dummy', 'acked', 'held') WHEN 'drop' THEN 'unknown'
      WHEN 'queue' THEN 'queued' WHEN 'unqueue' THEN 'held' WHEN 'dead' THEN 'dead'
      WHEN 'redrive' THEN 'held' WHEN 'acked' THEN 'acked' END, true)
    OVER (PARTITION BY {KEYS}, node, job ORDER BY time, seq) AS state
  FROM heard
)
SELECT scenario, cause AS message, coalesce(state, 'unknown') AS state, count(*) AS times,
  count(DISTINCT run) AS runs
FROM stood WHERE kind = 'recv' GROUP BY scenario, cause, coalesce(state, 'unknown')
"""
