"""S6: a job is not queued before its DELAY, nor taken back into, or served from, a paused queue.

A node must obey a pause from one second after the row of the pause.
"""

from typing import Final

from disque_trio.pipeline.lake.views.words import AT_LEAST_ONCE, KEYS

WEAKER: Final = (
    "A delay is known only of a job whose producer was told its id. A node that was down, or had "
    "trouble with its disk, at any time of the run is not held to pauses."
)

SQL: Final = f"""
WITH hasty AS (
  SELECT {KEYS}, job, queued_on AS node, queued AS time, queued - born AS took, delay
  FROM jobs JOIN runs r USING ({KEYS})
  WHERE queued_by IN ('first', 'delay-over', 'retry', 'import', 'enqueue-message') AND delay > 0
    AND queued - born < floor(delay / (1 + r.rho)) - 2000
), pauses AS (
  SELECT {KEYS}, node, queue, sort_array(collect_list(struct(time, seq, mode))) AS pauses
  FROM (
    SELECT {KEYS}, node, time, seq, substring_index(detail, ' ', -1) AS mode,
      substring(detail, 1, length(detail) - length(substring_index(detail, ' ', -1)) - 1) AS queue
    FROM rows WHERE kind = 'pause-queue'
  ) GROUP BY {KEYS}, node, queue
), unwell AS (
  SELECT DISTINCT {KEYS}, node FROM rows
  WHERE kind IN ('crash', 'wipe', 'remove', 'disk.full', 'disk.error', 'disk.stall')
    OR kind = 'start' AND time > 0
), moved AS (
  SELECT {KEYS}, job, node, queue, time, seq, kind, cause FROM rows
  WHERE (kind = 'serve' OR kind = 'queue' AND cause IN ('retry', 'delay-over')) AND {AT_LEAST_ONCE}
), met AS (
  SELECT m.*, try_element_at(filter(pauses,
    pause -> struct(pause.time, pause.seq) < struct(m.time, m.seq)), -1) AS pause
  FROM moved m JOIN pauses USING ({KEYS}, node, queue)
)
SELECT 'S6' AS property, {KEYS}, job, node, time,
  concat('queued ', took / 1000000, ' s after its birth, DELAY is ', delay DIV 1000000, ' s')
    AS detail
FROM hasty
UNION ALL
SELECT 'S6', {KEYS}, job, node, time,
  concat(kind, ' (', cause, ') though ', queue, ' is paused there')
FROM met LEFT ANTI JOIN unwell USING ({KEYS}, node)
WHERE pause.mode IN ('all', if(kind = 'serve', 'out', 'in')) AND time - pause.time > 1000000
"""
