"""L3: after the heal every node drops an acknowledged job within the bound.

It is checked only where all nodes were healed, since the collection may wait for a node outside the
core. The bound is the longest pause between two attempts to collect; it is ten seconds if the last
fault ended well before the last event of the job.
"""

from typing import Final

from disque_trio.pipeline.lake.views.words import KEYS
from disque_trio.sim.checkers.obligations import SECOND

WEAKER: Final = (
    "Runs that heal a core alone, and those in which a node leaves, comes, goes for good or is "
    "forgotten, are not judged, nor are jobs with RETRY 0 that have moved. In a live cluster "
    "nobody says when it was healed, so neither the query nor the judge looks at it there."
)

SQL: Final = f"""
WITH restless AS (
  SELECT DISTINCT {KEYS} FROM rows
  WHERE kind IN ('leave', 'forget', 'wipe', 'remove')
    OR kind = 'start' AND cause = 'fresh' AND time > 0
), kept AS (
  SELECT {KEYS}, c.job, c.node, j.last_event, r.last, r.settle, r.collection, r.latency, r.healed,
    j.ttl, j.born, r.rho, r.troubles > 0 AND r.last_trouble > j.last_event - r.settle AS is_troubled
  FROM copies c JOIN jobs j USING ({KEYS}, job) JOIN runs r USING ({KEYS})
    LEFT ANTI JOIN restless USING ({KEYS})
  WHERE c.until IS NULL AND (j.at_least_once OR c.cause <> 'yourjobs')
    AND j.acked IS NOT NULL AND r.healed IS NOT NULL AND r.is_stream
    AND (r.core IS NULL OR size(r.core) >= r.nodes)
), waited AS (
  SELECT *, last - greatest(healed, last_event) AS waited,
    if(is_troubled, collection, 10 * {SECOND} + 4 * latency) AS bound
  FROM kept
)
SELECT 'L3' AS property, {KEYS}, job, node, CAST(NULL AS BIGINT) AS time,
  concat(node, ' still has it ', waited / 1000000,
    ' s after the last thing that happened to it; the bound is ', bound / 1000000, ' s') AS detail
FROM waited
WHERE waited > bound
  AND (ttl IS NULL OR born IS NULL OR last < born + floor(ttl / (1 + rho)) - 2000)
"""
