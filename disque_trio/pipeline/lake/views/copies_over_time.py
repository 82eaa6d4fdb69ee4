"""For each second of a run: how many confirmed jobs were pending, and how many copies they had.

It counts jobs that must not be lost (`jobs.is_promised`), from their confirmation to their end (an
acknowledgement, deletion or expiry). Seconds without a change have no row: the previous row's
values still hold.
"""

from typing import Final

from disque_trio.pipeline.lake.views.words import KEYS, OF_KEYS

COLUMNS: Final = {
    **OF_KEYS,
    "second": "seconds since the run began, of live nodes since 1970; values are as of its end",
    "jobs": "pending jobs",
    "copies": "copies of these jobs on nodes that were up",
    "wanted": "copies that they should have: the sum of REPLICATE",
    "per_job": "copies per job; null without jobs",
}

_EVER: Final = "9223372036854775807"

SQL: Final = f"""
WITH stays AS (
  SELECT {KEYS}, job, collect_list(struct(since, coalesce(until, {_EVER}) AS until)) AS stays
  FROM copies WHERE NOT is_dummy GROUP BY {KEYS}, job
), alive AS (
  SELECT {KEYS}, job, confirmed, replicate, coalesce(ended, {_EVER}) AS ended
  FROM jobs WHERE is_promised AND (ended IS NULL OR ended > confirmed)
), spans AS (
  SELECT {KEYS}, each.* FROM (
    SELECT {KEYS}, explode(concat(
      transform(coalesce(stays, array()), stay -> struct(greatest(stay.since, confirmed) AS since,
        least(stay.until, ended) AS until, 0 AS jobs, 1 AS copies, 0L AS wanted)),
      array(struct(confirmed AS since, ended AS until, 1 AS jobs, 0 AS copies, replicate AS wanted))
    )) AS each
    FROM alive LEFT JOIN stays USING ({KEYS}, job)
  )
), steps AS (
  SELECT {KEYS}, each.* FROM (
    SELECT {KEYS}, explode(array(
      struct(since AS time, jobs AS jobs, copies AS copies, wanted AS wanted),
      struct(until AS time, -jobs AS jobs, -copies AS copies, -wanted AS wanted))) AS each
    FROM spans WHERE since < until
  )
), seconds AS (
  SELECT {KEYS}, time DIV 1000000 AS second, sum(jobs) AS jobs, sum(copies) AS copies,
    sum(wanted) AS wanted
  FROM steps WHERE time < {_EVER} GROUP BY {KEYS}, time DIV 1000000
)
SELECT *, try_divide(copies, jobs) AS per_job FROM (
  SELECT {KEYS}, second, sum(jobs) OVER w AS jobs, sum(copies) OVER w AS copies,
    sum(wanted) OVER w AS wanted
  FROM seconds WINDOW w AS (PARTITION BY {KEYS} ORDER BY second)
)
"""
