"""One row for each copy: from when to when a node had a record of a job, and what ended it.

A crash ends the copies of its node; a copy restored from the journal is a new row. Live nodes write
no row when they crash, so there the next start ends the copies.
"""

from typing import Final

from disque_trio.pipeline.lake.views.words import KEYS, OF_KEYS

COLUMNS: Final = {
    **OF_KEYS,
    "job": "the id",
    "node": "the holder",
    "since": "when the record was made, microseconds",
    "until": "when it was dropped or destroyed; null if it existed at the end",
    "cause": "why it was made: add, repljob, yourjobs, loaded, dummy",
    "ended_by": "the drop's cause, or crash, start, wipe, remove; null like `until`",
    "is_dummy": "it is a dummy acknowledgement: the node has no copy of the job itself",
}

SQL: Final = f"""
WITH steps AS (
  SELECT {KEYS}, job, node, time, seq, kind, cause, queue,
    lead(struct(time, seq, kind, cause)) OVER (PARTITION BY {KEYS}, job, node ORDER BY time, seq)
      AS next
  FROM rows WHERE kind IN ('hold', 'drop') AND job <> ''
), deaths AS (
  SELECT {KEYS}, node, sort_array(collect_list(struct(time, seq, kind))) AS deaths
  FROM rows
  WHERE kind IN ('crash', 'wipe', 'remove') OR kind = 'start' AND cause <> 'loaded'
  GROUP BY {KEYS}, node
), met AS (
  SELECT s.*, try_element_at(
      filter(deaths, death -> struct(death.time, death.seq) > struct(s.time, s.seq)), 1) AS death
  FROM steps s LEFT JOIN deaths USING ({KEYS}, node)
  WHERE kind = 'hold'
), ended AS (
  SELECT *, death IS NOT NULL
    AND (next IS NULL OR struct(death.time, death.seq) < struct(next.time, next.seq)) AS has_died
  FROM met
)
SELECT {KEYS}, job, node, time AS since, if(has_died, death.time, next.time) AS until, cause,
  CASE WHEN has_died THEN death.kind WHEN next.kind = 'drop' THEN next.cause
    WHEN next IS NOT NULL THEN 'made anew' END AS ended_by,
  cause = 'dummy' OR cause = 'loaded' AND queue = '' AS is_dummy
FROM ended
"""
