"""Jobs moved between each pair of nodes, by queue, and how long the moves take."""

from typing import Final

from disque_trio.pipeline.lake.views.words import KEYS, OF_KEYS

COLUMNS: Final = {
    **OF_KEYS,
    "queue": "the queue",
    "giver": "the node that had them",
    "taker": "the node that asked",
    "given": "how many jobs the giver sent",
    "taken": "how many the taker queued; the others were lost, or acknowledged there already",
    "p50": "the median time of a move, milliseconds",
    "p99": "the 99th percentile of it",
}

SQL: Final = f"""
WITH steps AS (
  SELECT {KEYS}, job, queue, kind, node, time, if(kind = 'give', peer, node) AS taker,
    lead(struct(kind, time)) OVER (
      PARTITION BY {KEYS}, job, if(kind = 'give', peer, node) ORDER BY time, kind) AS next
  FROM rows WHERE job <> '' AND (kind = 'give' OR kind = 'queue' AND cause = 'import')
), moves AS (
  SELECT {KEYS}, queue, node AS giver, taker,
    if(next.kind = 'queue', next.time - time, NULL) AS took
  FROM steps WHERE kind = 'give'
)
SELECT {KEYS}, queue, giver, taker, count(*) AS given, count(took) AS taken,
  percentile_approx(took, 0.5) / 1000 AS p50, percentile_approx(took, 0.99) / 1000 AS p99
FROM moves GROUP BY {KEYS}, queue, giver, taker
"""
