"""One row for each run that the lake has a trace of: its extent, its nodes, its faults, and the
bounds that its plan gives (`sim.checkers.obligations`)."""

from typing import Final

from disque_trio.pipeline.lake.views.words import KEYS, OF_KEYS, TROUBLES

COLUMNS: Final = {
    **OF_KEYS,
    "is_live": "the rows are of live nodes, which cannot tell whether replies arrive",
    "events": "how many rows it has",
    "first": "time of the first row, microseconds; of live nodes since 1970",
    "last": "time of the last row",
    "nodes": "how many nodes have written rows; of a simulation, how many it began with",
    "has_node_rows": "there are rows about the state of jobs in nodes",
    "has_messages": "there are rows about messages",
    "made": "jobs that nodes created",
    "added": "ids that were given to producers",
    "healed": "when all faults were healed; null if the trace does not say",
    "core": "the nodes that were healed; null for all",
    "troubles": "rows about a fault, or the end of one",
    "last_trouble": "time of the last such row, or of the last start of a node",
    "is_stream": "links keep order, and lose only what is under way when they break",
    "has_lease": "`delivery-lease` is on",
    "rho": "how far any clock's rate may deviate from true time, as a fraction",
    "latency": "how long a message may take without faults, microseconds",
    "settle": "how long after the last fault the cluster counts as undisturbed",
    "reconnect": "how long links may be down after a cut or a start",
    "collection": "how long the collection of an acknowledged job's copies may take",
}

SQL: Final = f"""
WITH by_kind AS (
  SELECT {KEYS}, node, kind, cause = 'add' AS is_add,
    count(*) AS events, min(time) AS first, max(time) AS last
  FROM rows GROUP BY {KEYS}, node, kind, cause = 'add'
), by_run AS (
  SELECT {KEYS},
    sum(events) AS events, min(first) AS first, max(last) AS last,
    count(DISTINCT nullif(node, '')) AS nodes,
    coalesce(sum(CASE WHEN kind = 'hold' AND is_add THEN events END), 0) AS made,
    coalesce(sum(CASE WHEN kind = 'add.ok' THEN events END), 0) AS added,
    count_if(kind = 'hold') > 0 AS has_node_rows, count_if(kind = 'send') > 0 AS has_messages,
    coalesce(max(CASE WHEN kind = 'heal.end' THEN last END),
      max(CASE WHEN kind = 'chaos.end' THEN last END)) AS healed,
    coalesce(sum(CASE WHEN kind IN ({TROUBLES}) THEN events END), 0) AS troubles,
    max(CASE WHEN kind IN ({TROUBLES}) OR kind = 'start' THEN last END) AS last_trouble
  FROM by_kind GROUP BY {KEYS}
), cores AS (
  SELECT {KEYS},
    max_by(nullif(regexp_extract_all(detail, 'n[0-9]+', 0), array()), struct(kind, time)) AS core
  FROM rows WHERE kind IN ('heal.end', 'chaos.end') GROUP BY {KEYS}
)
SELECT {KEYS}, coalesce(is_live, true) AS is_live, events, first, last,
  if(coalesce(is_live, true), r.nodes, t.nodes) AS nodes, has_node_rows, has_messages,
  made, added, healed, core, troubles, last_trouble,
  coalesce(is_stream, true) AS is_stream, coalesce(has_lease, true) AS has_lease,
  coalesce(rho, 0D) AS rho, latency, settle, reconnect, collection
FROM by_run r LEFT JOIN cores USING ({KEYS}) LEFT JOIN traces t USING ({KEYS})
"""
