"""How long jobs take from stage to stage, by queue: percentiles in milliseconds.

Stages: `answered`, from ADDJOB to its answer; `queued`, from the end of DELAY, which ENQUEUE may
end early, to the first queueing, which may precede the answer; `delivered`, from there to the first
delivery; `acked`, from there to the first acknowledgement that a node notes; `whole`, from ADDJOB
to that. For live nodes a stage that involves two nodes is as exact as their clocks.
"""

from typing import Final

from disque_trio.pipeline.lake.views.words import QUEUEING

COLUMNS: Final = {
    "scenario": "the scenario's name; `live` for live nodes",
    "queue": "the queue",
    "stage": "the stage",
    "step": "its number, from 1",
    "jobs": "how many jobs completed it",
    "p50": "the median, milliseconds; the percentiles are exact to 0.1 %",
    "p90": "the 90th percentile",
    "p99": "the 99th percentile",
    "p999": "the 99.9th percentile",
    "longest": "the maximum, exact",
}

SQL: Final = f"""
WITH stages AS (
  SELECT scenario, queue, each.* FROM (SELECT scenario, queue, explode(array(
      struct(1 AS step, 'answered' AS stage, confirmed - asked AS took),
      struct(2 AS step, 'queued' AS stage, {QUEUEING} AS took),
      struct(3 AS step, 'delivered' AS stage, delivered - queued AS took),
      struct(4 AS step, 'acked' AS stage, acked - delivered AS took),
      struct(5 AS step, 'whole' AS stage, acked - asked AS took))) AS each FROM jobs)
), spread AS (
  SELECT scenario, queue, stage, step, count(*) AS jobs, max(took) AS longest,
    percentile_approx(took, array(0.5, 0.9, 0.99, 0.999), 1000) AS at
  FROM stages WHERE took IS NOT NULL GROUP BY scenario, queue, stage, step
)
SELECT scenario, queue, stage, step, jobs, at[0] / 1000 AS p50, at[1] / 1000 AS p90,
  at[2] / 1000 AS p99, at[3] / 1000 AS p999, longest / 1000 AS longest
FROM spread ORDER BY scenario, queue, step
"""
