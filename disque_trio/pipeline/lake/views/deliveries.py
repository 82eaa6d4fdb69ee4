"""One row for each delivery: its number among those of the job, and why the job was queued.

The causes of duplicates are the judge's (view `verdicts`).
"""

from typing import Final

from disque_trio.pipeline.lake.views.words import KEYS, OF_KEYS

COLUMNS: Final = {
    **OF_KEYS,
    "job": "the id",
    "queue": "its queue",
    "node": "the node that delivered it",
    "client": "the client that received it",
    "time": "when the consumer received it, microseconds; of live nodes, when it was served",
    "number": "1 for the first delivery; every other is a duplicate",
    "queued": "when it was queued for this delivery; if it has moved, before the move",
    "queued_by": "why it was queued then",
    "leased": "of a duplicate: when its lease last began or was renewed before",
    "after_ack": "of a duplicate: it had been acknowledged before it was served",
    "cause": "of a duplicate: D0 to D13 or DX (docs/guarantees.md)",
}

_BY_JOB: Final = f"PARTITION BY {KEYS}, job ORDER BY time, seq"
_BY_NODE: Final = f"PARTITION BY {KEYS}, job, node ORDER BY time, seq"
_BY_CLIENT: Final = f"PARTITION BY {KEYS}, job, node, client ORDER BY time, seq"
_ALL: Final = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"

SQL: Final = f"""
WITH steps AS (
  SELECT {KEYS}, job, queue, time, seq, kind, node, client, cause
  FROM rows WHERE job <> '' AND kind IN ('queue', 'serve', 'get.deliver')
), stays AS (
  SELECT *,
    last_value(CASE WHEN kind = 'queue' THEN struct(time, cause) END, true)
      OVER ({_BY_NODE} {_ALL}) AS stay,
    last_value(CASE WHEN kind = 'queue' AND cause <> 'import' THEN struct(time, cause) END, true)
      OVER ({_BY_JOB} {_ALL}) AS own
  FROM steps
), served AS (
  SELECT *,
    last_value(CASE WHEN kind = 'serve' THEN if(stay.cause = 'import', own, stay) END, true)
      OVER ({_BY_CLIENT} {_ALL}) AS root
  FROM stays
), got AS (
  SELECT s.*, row_number() OVER ({_BY_JOB}) AS number
  FROM served s JOIN runs r USING ({KEYS})
  WHERE kind = if(r.is_live, 'serve', 'get.deliver')
), duplicates AS (
  SELECT {KEYS}, each.* FROM (SELECT {KEYS}, explode(duplicates) AS each FROM verdicts)
)
SELECT {KEYS}, job, queue, node, client, time, number,
  root.time AS queued, root.cause AS queued_by, leased, after_ack, d.cause
FROM got LEFT JOIN duplicates d USING ({KEYS}, job, number)
"""
