"""One row for each time during which a pending job had fewer copies than were promised.

It covers jobs that must not be lost (`jobs.is_promised`), from their confirmation to their end (an
acknowledgement, deletion or expiry). Copies on nodes that are down do not count.
"""

from typing import Final

from disque_trio.pipeline.lake.views.words import KEYS, OF_KEYS

COLUMNS: Final = {
    **OF_KEYS,
    "job": "the id",
    "queue": "its queue",
    "wanted": "REPLICATE",
    "copies": "the fewest copies that it had in this time",
    "since": "when it began, microseconds",
    "until": "when there were enough copies or the job ended; else the end of the trace",
    "seconds": "how long it lasted",
    "is_over": "it ended before the end of the trace",
}

_W: Final = f"PARTITION BY {KEYS}, job ORDER BY time, change DESC"

SQL: Final = f"""
WITH stays AS (
  SELECT {KEYS}, job, collect_list(struct(since, until)) AS stays
  FROM copies WHERE NOT is_dummy GROUP BY {KEYS}, job
), alive AS (
  SELECT {KEYS}, job, j.queue, j.confirmed, replicate AS wanted, r.last,
    coalesce(ended, r.last) AS ended
  FROM jobs j JOIN runs r USING ({KEYS})
  WHERE is_promised AND r.has_node_rows AND coalesce(ended, r.last) > j.confirmed
), spans AS (
  SELECT *, transform(coalesce(stays, array()), stay -> struct(
      greatest(stay.since, confirmed) AS since, least(coalesce(stay.until, ended), ended) AS until
    )) AS spans
  FROM alive LEFT JOIN stays USING ({KEYS}, job)
), steps AS (
  SELECT {KEYS}, job, queue, wanted, ended, last, each.* FROM (
    SELECT *, explode(concat(
      flatten(transform(filter(spans, span -> span.since < span.until), span -> array(
        struct(span.since AS time, 1 AS change), struct(span.until AS time, -1 AS change)))),
      array(struct(confirmed AS time, 0 AS change)))) AS each
    FROM spans
  )
), counted AS (
  SELECT *, sum(change) OVER ({_W}) AS copies, lead(time) OVER ({_W}) AS next FROM steps
), stretches AS (
  SELECT *, copies < wanted AS is_low, coalesce(next, ended) AS until
  FROM counted WHERE time < coalesce(next, ended)
), islands AS (
  SELECT *, count_if(NOT is_low) OVER (PARTITION BY {KEYS}, job ORDER BY time) AS island
  FROM stretches
)
SELECT {KEYS}, job, first(queue) AS queue, max(wanted) AS wanted, min(copies) AS copies,
  min(time) AS since, max(until) AS until, (max(until) - min(time)) / 1000000 AS seconds,
  max(until) < max(last) AS is_over
FROM islands WHERE is_low
GROUP BY {KEYS}, job, island
"""
