"""One row for each delivery: its number among those of the job, and why the job was queued.

The cause of a duplicate is as exact as rows allow. D0 and D1 agree with the checkers
(`sim.checkers.causes`); all other causes are combined as `D2-D12`, because they depend on which
messages had reached which nodes. The view `causes` separates them where the checkers have seen the
run.
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
    "leased": "when its lease last began or was renewed by WORKING; null if never",
    "after_ack": "a node had noted an acknowledgement before it was served",
    "cause": "of a duplicate: D0 a client asked for it, D1 the lease had expired, or D2-D12",
}

_BY_JOB: Final = f"PARTITION BY {KEYS}, job ORDER BY time, seq"
_BY_NODE: Final = f"PARTITION BY {KEYS}, job, node ORDER BY time, seq"
_BY_CLIENT: Final = f"PARTITION BY {KEYS}, job, node, client ORDER BY time, seq"
_ALL: Final = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"

SQL: Final = f"""
WITH steps AS (
  SELECT {KEYS}, job, time, seq, kind, node, client, cause
  FROM rows
  WHERE job <> '' AND kind IN
    ('queue', 'serve', 'get.deliver', 'working.invoke', 'working.ok')
), stays AS (
  SELECT *,
    last_value(CASE WHEN kind = 'queue' THEN struct(time, cause) END, true)
      OVER ({_BY_NODE} {_ALL}) AS stay,
    last_value(CASE WHEN kind = 'queue' AND cause <> 'import' THEN struct(time, cause) END, true)
      OVER ({_BY_JOB} {_ALL}) AS own,
    last_value(CASE WHEN kind = 'working.invoke' THEN time END, true)
      OVER ({_BY_CLIENT} {_ALL}) AS working
  FROM steps
), leased AS (
  SELECT *,
    CASE WHEN stay.cause = 'import' THEN own ELSE stay END AS root,
    collect_list(CASE WHEN kind IN ('serve', 'working.ok') THEN struct(
        if(kind = 'serve', time, working) AS time, kind = 'serve' AS is_serve
      ) END) OVER ({_BY_JOB} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS leases
  FROM stays
), served AS (
  SELECT *,
    last_value(CASE WHEN kind = 'serve' THEN struct(time, root, leases) END, true)
      OVER ({_BY_CLIENT} {_ALL}) AS serve
  FROM leased
), got AS (
  SELECT s.*, row_number() OVER ({_BY_JOB}) AS number
  FROM served s JOIN runs r USING ({KEYS})
  WHERE kind = if(r.is_live, 'serve', 'get.deliver')
), judged AS (
  SELECT g.*, j.acked, j.retry, j.queue AS of_job, r.has_lease, r.rho,
    try_element_at(serve.leases, -1) AS before, try_element_at(serve.leases, -2) AS before_that
  FROM got g JOIN jobs j USING ({KEYS}, job) JOIN runs r USING ({KEYS})
), timed AS (
  SELECT *,
    CASE WHEN NOT before.is_serve AND before.time > serve.root.time AND before_that IS NOT NULL
      THEN before_that.time ELSE before.time END AS lease
  FROM judged
)
SELECT {KEYS}, job, of_job AS queue, node, client, time, number,
  serve.root.time AS queued, serve.root.cause AS queued_by, before.time AS leased,
  coalesce(acked <= serve.time, false) AS after_ack,
  CASE WHEN number = 1 THEN NULL
    WHEN serve.root.cause IN ('nack', 'enqueue') AND serve.root.time >= before.time THEN 'D0'
    WHEN serve.root.cause IN ('retry', 'delay-over')
      AND (acked IS NULL OR acked >= serve.root.time)
      AND (NOT has_lease AND before.is_serve
        OR serve.root.time - lease
          >= floor((coalesce(retry, 0) - 250000) / (1 + rho)) - 2000) THEN 'D1'
    ELSE 'D2-D12' END AS cause
FROM timed
"""
