"""L1: after the heal every job is delivered within the bound, and none is lost.

A job is lost if it was confirmed, was never delivered, acknowledged, deleted or expired, and no
node has a record of it, although faults have destroyed fewer copies than were promised. A job is
late if it exists and was not delivered within the bound B of its plan: RETRY, the longest waits of
the protocol, the consumers' polls, and the work on all jobs of the run.
"""

from typing import Final

from disque_trio.pipeline.lake.views.words import KEYS
from disque_trio.sim.checkers.obligations import DESYNC, DISCOVERY, GRAIN, TRANSFER

WEAKER: Final = (
    "Every copy that a fault has destroyed excuses, even if it was made again since. Jobs of nodes "
    "that leave, of queues that are paused and of clusters that change are not judged. In a live "
    "cluster nothing is late, for nobody says when it was healed, nor who works on a queue; the "
    "judge, too, judges only who is lost there."
)

_FAULTS: Final = "'crash', 'start', 'wipe', 'remove', 'flush'"

SQL: Final = f"""
WITH tables AS (
  SELECT {KEYS}, job, count_if(until IS NULL) AS records,
    count_if(NOT is_dummy AND ended_by IN ({_FAULTS})) AS destroyed,
    collect_set(CASE WHEN until IS NULL THEN node END) AS holders
  FROM copies GROUP BY {KEYS}, job
), restless AS (
  SELECT DISTINCT {KEYS}, true AS is_restless FROM rows
  WHERE kind IN ('leave', 'forget', 'pause-queue', 'wipe', 'remove')
    OR kind = 'start' AND cause = 'fresh' AND time > 0
), crews AS (
  SELECT {KEYS}, worker.queue AS queue, count(*) AS workers, max(worker.poll) AS poll,
    max(worker.work) AS work
  FROM (SELECT {KEYS}, explode(workers) AS worker FROM traces) JOIN runs r USING ({KEYS})
  WHERE r.core IS NULL OR array_contains(r.core, worker.node)
  GROUP BY {KEYS}, worker.queue
), known AS (
  SELECT j.*, coalesce(records, 0) AS records, coalesce(destroyed, 0) AS destroyed, holders,
    r.last, r.healed, r.rho, r.core, r.latency, r.reconnect, r.has_node_rows, r.made,
    r.last >= coalesce(born, asked) + floor(ttl / (1 + r.rho)) - 2000 AS is_expired
  FROM jobs j JOIN runs r USING ({KEYS}) LEFT JOIN tables USING ({KEYS}, job)
  WHERE j.confirmed IS NOT NULL AND j.retry > 0
), expected AS (
  SELECT k.*, greatest(healed, confirmed) AS since,
    has_node_rows AND deliveries = 0 AND ended IS NULL AND records = 0 AND NOT is_expired
      AND destroyed < if(is_async, 1, replicate) AS is_lost,
    floor(greatest(born + delay - greatest(healed, confirmed), 0) / (1 - rho))
      + floor((retry + {DESYNC}) / (1 - rho)) + floor({DISCOVERY} / (1 - rho)) + 3 * {GRAIN}
      + reconnect + 4 * latency + 100000 + c.poll
      + made * (c.work + {TRANSFER}) DIV c.workers AS bound,
    if(delivered IS NULL, last, served) - greatest(healed, confirmed) AS waited,
    (ended IS NULL OR ended >= served) AND (delivered IS NOT NULL
      OR ended IS NULL AND NOT is_expired AND records > 0
        AND (core IS NULL OR arrays_overlap(core, holders)))
      AND is_restless IS NULL AS may_be_late
  FROM known k LEFT JOIN crews c USING ({KEYS}, queue) LEFT JOIN restless USING ({KEYS})
)
SELECT 'L1' AS property, {KEYS}, job, queued_on AS node, if(is_lost, NULL, delivered) AS time,
  if(is_lost,
    concat('lost: confirmed, never delivered, on no node; faults have destroyed ', destroyed,
      ' copies of ', replicate),
    concat(if(delivered IS NULL, 'not delivered for ', 'delivered after '), waited / 1000000,
      ' s, the bound is ', bound / 1000000, ' s')) AS detail
FROM expected WHERE is_lost OR may_be_late AND waited > bound
"""
