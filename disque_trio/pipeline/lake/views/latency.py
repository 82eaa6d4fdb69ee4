"""How long jobs take from stage to stage, by queue: percentiles in milliseconds.

Stages: `answered`, from ADDJOB to its answer; `queued`, from the end of DELAY to the first
queueing, which may be before the answer; `delivered`, from there to the first delivery; `acked`,
from there to the first note of an ACKJOB; `whole`, from ADDJOB to that note. Of live nodes, whose
clocks differ, stages that two nodes have a part in are as true as their clocks.
"""

from typing import Final

COLUMNS: Final = {
    "scenario": "the scenario's name; `live` for live nodes",
    "queue": "the queue",
    "stage": "the stage",
    "step": "its number, from 1",
    "jobs": "how many went through it",
    "p50": "half of them took no longer, milliseconds; this and the others within 0.1 %",
    "p90": "nine of ten",
    "p99": "99 of a hundred",
    "p999": "999 of a thousand",
    "longest": "the longest, exact",
}

SQL: Final = """
WITH stages AS (
  SELECT scenario, queue, stack(5,
      1, 'answered', confirmed - asked,
      2, 'queued', queued - asked - delay,
      3, 'delivered', delivered - queued,
      4, 'acked', acked - delivered,
      5, 'whole', acked - asked) AS (step, stage, took)
  FROM jobs
), spread AS (
  SELECT scenario, queue, stage, step, count(*) AS jobs, max(took) AS longest,
    percentile_approx(took, array(0.5, 0.9, 0.99, 0.999), 1000) AS at
  FROM stages WHERE took IS NOT NULL GROUP BY scenario, queue, stage, step
)
SELECT scenario, queue, stage, step, jobs, at[0] / 1000 AS p50, at[1] / 1000 AS p90,
  at[2] / 1000 AS p99, at[3] / 1000 AS p999, longest / 1000 AS longest
FROM spread
"""
