"""S7: a job is not served after its TTL, as the node's own monotonic clock tells.

At the node that made the job its life begins with its record. A copy that came from elsewhere is
given its whole TTL from when it came, and a second for each time that the job has moved.
"""

from typing import Final

from disque_trio.pipeline.lake.views.words import KEYS

WEAKER: Final = (
    "The judge knows from the message how old a copy was when it came; here it counts as new. "
    "Copies back from a disk are not judged."
)

SQL: Final = f"""
WITH steps AS (
  SELECT {KEYS}, job, node, time, kind, mono,
    last_value(CASE WHEN kind = 'hold' THEN struct(cause, mono) END, true)
      OVER (PARTITION BY {KEYS}, job, node ORDER BY time, seq) AS made
  FROM rows WHERE kind IN ('hold', 'serve') AND job <> ''
), served AS (
  SELECT s.{KEYS.replace(", ", ", s.")}, s.job, s.node, s.time,
    s.mono - made.mono - j.ttl DIV 1000
      - if(made.cause = 'add', 0, 1000 * (1 + j.moves)) AS late
  FROM steps s JOIN jobs j USING ({KEYS}, job)
  WHERE s.kind = 'serve' AND made.cause IN ('add', 'repljob', 'yourjobs')
)
SELECT 'S7' AS property, {KEYS}, job, node, time,
  concat('served ', late, ' ms after it had expired here') AS detail
FROM served WHERE late >= 0
"""
