"""One row for each job: its options, and when each stage of its life began."""

from typing import Final

from disque_trio.pipeline.lake.views.words import (
    AT_LEAST_ONCE,
    KEYS,
    OF_KEYS,
    RETRY_S,
    TTL_S,
    number,
)

COLUMNS: Final = {
    **OF_KEYS,
    "job": "the id",
    "queue": "its queue",
    "producer": "the client that added it; null if the trace has no ADDJOB answered with the id",
    "origin": "the node that made its first record",
    "at_least_once": "as its id says; false for RETRY 0, which is at most once",
    "replicate": "REPLICATE, null like all options if the ADDJOB is not known",
    "retry": "RETRY in microseconds",
    "ttl": "TTL in microseconds",
    "delay": "DELAY in microseconds",
    "is_async": "ASYNC was given",
    "is_promised": "confirmed, with RETRY and without ASYNC: it must not be lost",
    "asked": "when the producer asked; this and all times below are microseconds",
    "confirmed": "when the producer received the id",
    "born": "when its first record was made",
    "queued": "when it first came into a queue",
    "queued_on": "the node that queued it first",
    "queued_by": "why it was queued first: first, delay-over, retry …",
    "served": "when a node first served it",
    "delivered": "when a consumer first received it; of live nodes, when it was served",
    "last_delivered": "when a consumer last received it",
    "deliveries": "how often consumers received it",
    "serves": "how often nodes served it, whether or not it arrived",
    "ack_asked": "when a client first sent ACKJOB or FASTACK",
    "acked": "when the first node noted the acknowledgement",
    "ended": "when it was first acknowledged, deleted or expired",
    "ended_by": "which of these, as the row says it",
    "retries": "how often it was queued again because its RETRY time had passed",
    "nacks": "how often it was queued again by NACK",
    "moves": "how often it was given to another node",
    "held": "how many records of it nodes have made, dummy acknowledgements included",
    "last_event": "when a record of it was last made, queued, served or acknowledged",
}

SQL: Final = f"""
WITH facts AS (
  SELECT {KEYS}, job, time, seq, kind, node, queue, cause, client, '' AS words
  FROM rows
  WHERE job <> '' AND kind IN ('hold', 'drop', 'queue', 'serve', 'give', 'acked', 'get.deliver',
    'add.ok', 'ack.invoke', 'fastack.invoke', 'fastack.ok', 'ack.ok')
  UNION ALL
  SELECT {KEYS}, job, asked, 0, 'asked', node, queue, '', client, words
  FROM adds WHERE job <> '' AND asked IS NOT NULL
), told AS (
  SELECT {KEYS}, job,
    max(queue) AS queue,
    max(CASE WHEN kind = 'asked' THEN client END) AS producer,
    max(CASE WHEN kind = 'asked' THEN words END) AS words,
    min(CASE WHEN kind = 'asked' THEN time END) AS asked,
    min(CASE WHEN kind = 'add.ok' THEN time END) AS confirmed,
    min(CASE WHEN kind = 'hold' AND cause = 'add' THEN struct(time, seq, node) END) AS birth,
    min(CASE WHEN kind = 'queue' THEN struct(time, seq, node, cause) END) AS queueing,
    min(CASE WHEN kind = 'serve' THEN time END) AS served,
    count_if(kind = 'serve') AS serves,
    min(CASE WHEN kind = 'get.deliver' THEN time END) AS got,
    max(CASE WHEN kind = 'get.deliver' THEN time END) AS last_got,
    count_if(kind = 'get.deliver') AS gets,
    max(CASE WHEN kind = 'serve' THEN time END) AS last_served,
    min(CASE WHEN kind IN ('ack.invoke', 'fastack.invoke') THEN time END) AS ack_asked,
    min(CASE WHEN kind = 'acked' AND cause = 'ackjob' OR kind = 'hold' AND cause = 'dummy'
      OR kind = 'drop' AND cause = 'fastack' THEN time END) AS noted,
    min(CASE WHEN kind IN ('ack.ok', 'fastack.ok') THEN time END) AS ack_answered,
    min(CASE WHEN kind = 'acked' OR kind = 'fastack.ok' OR kind = 'hold' AND cause = 'dummy'
      OR kind = 'drop' AND cause IN ('fastack', 'client-deljob', 'expired')
      THEN struct(time, seq, kind, cause) END) AS finish,
    count_if(kind = 'queue' AND cause = 'retry') AS retries,
    count_if(kind = 'queue' AND cause = 'nack') AS nacks,
    count_if(kind = 'give') AS moves,
    count_if(kind = 'hold') AS held,
    max(CASE WHEN kind IN ('hold', 'queue', 'serve', 'acked') THEN time END) AS last_event
  FROM facts GROUP BY {KEYS}, job
), known AS (
  SELECT *, {TTL_S} AS ttl_s FROM told
)
SELECT {KEYS}, job, queue, producer, birth.node AS origin, {AT_LEAST_ONCE} AS at_least_once,
  if(words IS NULL, NULL, {number("replicate", "least(3, r.nodes)")}) AS replicate,
  if(words IS NULL, NULL,
    1000000 * {RETRY_S}) AS retry,
  if(words IS NULL, NULL, 1000000 * ttl_s) AS ttl,
  if(words IS NULL, NULL, 1000000 * {number("delay", "0")}) AS delay,
  words RLIKE '\\\\basync\\\\b' AS is_async,
  coalesce(confirmed IS NOT NULL AND words IS NOT NULL AND {number("retry", "1")} > 0
    AND NOT words RLIKE '\\\\basync\\\\b', false) AS is_promised,
  asked, confirmed, birth.time AS born,
  queueing.time AS queued, queueing.node AS queued_on, queueing.cause AS queued_by, served,
  if(r.is_live, served, got) AS delivered, if(r.is_live, last_served, last_got) AS last_delivered,
  if(r.is_live, serves, gets) AS deliveries, serves, ack_asked,
  if(r.has_node_rows, noted, ack_answered) AS acked,
  if(r.has_node_rows, finish.time, ack_answered) AS ended,
  if(r.has_node_rows, coalesce(nullif(finish.cause, ''), finish.kind), 'acked') AS ended_by,
  retries, nacks, moves, held, last_event
FROM known LEFT JOIN runs r USING ({KEYS})
"""
