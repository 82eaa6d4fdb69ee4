"""One row for each job: its life in one line, by a single rollup of its rows."""

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
    "producer": "who added it; null if the trace has no ADDJOB that was answered with the id",
    "origin": "the node that made its first record",
    "at_least_once": "what the id says; RETRY 0 is at most once",
    "replicate": "REPLICATE, null like all options if the ADDJOB is not known",
    "retry": "RETRY in microseconds",
    "ttl": "TTL in microseconds",
    "delay": "DELAY in microseconds",
    "is_async": "ASYNC was given",
    "is_promised": "confirmed, with RETRY and without ASYNC: not to be lost",
    "asked": "when the producer asked; this and all times below are microseconds",
    "confirmed": "when the producer knew of it",
    "born": "when its first record was made",
    "queued": "when it first came into a queue",
    "queued_on": "on which node",
    "queued_by": "and why: first, delay-over, retry …",
    "served": "when a node first handed it out",
    "delivered": "when a consumer first had it in hand; of live nodes, when it was served",
    "last_delivered": "when one last had",
    "deliveries": "how often",
    "serves": "how often nodes handed it out, whether or not it arrived",
    "ack_asked": "when a client first said ACKJOB or FASTACK",
    "acked": "when the first node took note",
    "ended": "when nobody need work on it any more: acknowledged, deleted, expired",
    "ended_by": "by what",
    "retries": "how often it was queued because nobody had acknowledged it",
    "nacks": "how often by NACK",
    "moves": "how often it was given to another node",
    "held": "how many records of it nodes have made, those of mere acks included",
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
