"""S5: a job with RETRY 0 is served at most once, across nodes, moves and crashes."""

from typing import Final

from disque_trio.pipeline.lake.views.words import KEYS

WEAKER: Final = (
    "That such a job was lost without a cause is not asked: it takes the fates of its messages."
)

SQL: Final = f"""
SELECT 'S5' AS property, {KEYS}, job, CAST(NULL AS STRING) AS node, served AS time,
  concat('served ', serves, ' times with RETRY 0') AS detail
FROM jobs JOIN runs r USING ({KEYS})
WHERE NOT at_least_once AND serves > 1 AND r.is_stream
"""
