"""S7: a job is not served after its TTL, by the serving node's own monotonic clock.

At the node that created the job, the TTL starts with its record. A copy from another node has the
rest of the TTL that the sender computed from its own clock when it sent it, in whole seconds plus
one.
"""

from typing import Final

from disque_trio.pipeline.lake.views.words import KEYS

WEAKER: Final = (
    "Copies back from a disk, and those that were made of them, are not judged. Live nodes do not "
    "number their messages, so a copy from elsewhere counts as new there, and has a second more "
    "for each time that the job has moved."
)

_NUMBERS: Final = "CAST(map() AS MAP<STRING, BIGINT>)"
_COMING: Final = "STRUCT<time: BIGINT, base: BIGINT>"
_LATE: Final = "STRUCT<node: STRING, time: BIGINT, late: BIGINT>"

SQL: Final = f"""
WITH old AS (
  SELECT {KEYS}, job, ttl, moves, r.is_live FROM jobs j JOIN runs r USING ({KEYS})
  WHERE serves > 0 AND last_event - coalesce(born, asked) >= ttl * (1 - 2 * r.rho) - 5000000
), steps AS (
  SELECT {KEYS}, time, seq, kind, node, peer, cause, ref, mono, explode(
    CASE WHEN job <> '' THEN array(job) WHEN kind IN ('send', 'recv')
      THEN split(regexp_extract(detail, 'jobs=([^ ]+)', 1), ',') END) AS job
  FROM rows
  WHERE kind IN ('hold', 'drop', 'give', 'serve')
    OR kind IN ('send', 'recv') AND cause IN ('repljob', 'yourjobs')
), lives AS (
  SELECT /*+ BROADCAST(old) */ {KEYS}, job, first(ttl) DIV 1000 AS ttl, first(moves) AS moves,
    first(is_live) AS is_live,
    sort_array(collect_list(struct(time, seq, kind, node, peer, cause, ref, mono))) AS steps
  FROM steps JOIN old USING ({KEYS}, job) GROUP BY {KEYS}, job
), told AS (
  SELECT {KEYS}, job, aggregate(steps, struct(
      {_NUMBERS} AS bases, {_NUMBERS} AS gives, {_NUMBERS} AS flights,
      CAST(map() AS MAP<STRING, {_COMING}>) AS comings,
      CAST(array() AS ARRAY<{_LATE}>) AS late),
    (now, step) -> struct(
      CASE WHEN step.kind IN ('hold', 'drop') THEN map_concat(
          map_filter(now.bases, (node, base) -> node <> step.node),
          map(step.node, CASE WHEN step.kind = 'drop' THEN NULL
            WHEN step.cause = 'add' THEN step.mono
            WHEN step.cause IN ('repljob', 'yourjobs') THEN
              if(is_live, step.mono + 1000 * (1 + moves), now.comings[step.node].base) END))
        ELSE now.bases END AS bases,
      CASE WHEN step.kind = 'give' THEN map_concat(
          map_filter(now.gives, (way, base) -> way <> concat(step.node, '>', step.peer)),
          map(concat(step.node, '>', step.peer), now.bases[step.node]))
        ELSE now.gives END AS gives,
      CASE WHEN step.kind = 'send' THEN map_concat(
          map_filter(now.flights, (ref, age) -> ref <> CAST(step.ref AS STRING)),
          map(CAST(step.ref AS STRING), 1000 + 1000 * floor((coalesce(now.bases[step.node],
            now.gives[concat(step.node, '>', step.peer)]) - step.mono) / 1000)))
        ELSE now.flights END AS flights,
      CASE WHEN step.kind = 'recv' AND NOT now.comings[step.node].time <=> step.time
        THEN map_concat(map_filter(now.comings, (node, coming) -> node <> step.node),
          map(step.node, struct(step.time,
            step.mono + now.flights[CAST(step.ref AS STRING)] AS base)))
        ELSE now.comings END AS comings,
      CASE WHEN step.kind = 'serve' AND step.mono - now.bases[step.node] - ttl >= 0
        THEN array_append(now.late,
          struct(step.node, step.time, step.mono - now.bases[step.node] - ttl AS late))
        ELSE now.late END AS late),
    now -> now.late) AS late
  FROM lives
)
SELECT 'S7' AS property, {KEYS}, job, served.node AS node, served.time AS time,
  concat('served ', served.late, ' ms after it had expired here') AS detail
FROM (SELECT {KEYS}, job, explode(late) AS served FROM told)
"""
