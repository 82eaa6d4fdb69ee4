"""How wrong each node's clocks were.

A simulation knows the true time. For live nodes the error is estimated as NTP does it, from the
REPLJOB and GOTJOB messages between two nodes: half of the difference between the shortest travel
times in both directions. The estimate of a node is the median over all other nodes.
"""

from typing import Final

from disque_trio.pipeline.lake.views.words import KEYS, OF_KEYS
from disque_trio.sim.model.clock import EPOCH_MS

COLUMNS: Final = {
    **OF_KEYS,
    "node": "the node",
    "events": "its rows that have clock values",
    "slowest": "the minimum of wall clock minus true time, milliseconds; null for live",
    "fastest": "the maximum of the same",
    "rate": "how much faster than true time the monotonic clock ran, parts per million; null for "
    "live. Imprecise for short runs: the clock is read in whole milliseconds",
    "stepped": "the range of wall clock minus monotonic clock, milliseconds",
    "against_others": "estimated offset of the wall clock from those of the other nodes, ms",
}

SQL: Final = f"""
WITH own AS (
  SELECT {KEYS}, node, count(*) AS events,
    min(wall - {EPOCH_MS} - time DIV 1000) AS slowest,
    max(wall - {EPOCH_MS} - time DIV 1000) AS fastest,
    max(mono) - min(mono) AS by_mono, max(time) - min(time) AS by_time,
    max(wall - mono) - min(wall - mono) AS stepped
  FROM rows WHERE node <> '' AND wall <> 0 GROUP BY {KEYS}, node
), ways AS (
  SELECT {KEYS}, job, cause, if(kind = 'send', node, peer) AS sender,
    if(kind = 'send', peer, node) AS receiver,
    min(CASE WHEN kind = 'recv' THEN wall END) - min(CASE WHEN kind = 'send' THEN wall END) AS took
  FROM rows
  WHERE kind IN ('send', 'recv') AND cause IN ('repljob', 'gotjob') AND job <> '' AND wall <> 0
  GROUP BY {KEYS}, job, cause, if(kind = 'send', node, peer), if(kind = 'send', peer, node)
), shortest AS (
  SELECT {KEYS}, sender, receiver, min(took) AS took
  FROM ways WHERE took IS NOT NULL GROUP BY {KEYS}, sender, receiver
), offsets AS (
  SELECT {KEYS}, t.receiver AS node, median((t.took - b.took) / 2) AS against_others
  FROM shortest t JOIN (
    SELECT {KEYS}, sender AS receiver, receiver AS sender, took FROM shortest
  ) b USING ({KEYS}, receiver, sender)
  GROUP BY {KEYS}, t.receiver
)
SELECT {KEYS}, node, o.events, if(r.is_live, NULL, slowest) AS slowest,
  if(r.is_live, NULL, fastest) AS fastest,
  if(r.is_live OR by_time = 0, NULL, 1e6 * (by_mono * 1000 - by_time) / nullif(by_time, 0)) AS rate,
  stepped, against_others
FROM own o JOIN runs r USING ({KEYS}) LEFT JOIN offsets USING ({KEYS}, node)
"""
