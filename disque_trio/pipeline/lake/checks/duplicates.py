"""Duplicates: in a run without faults, every delivery after the first was requested, or its lease
had expired.

These causes are D0 and D1 (view `deliveries`). All others need a fault, except D5, two holders that
queue the job at the same time; only the checkers in Python can tell it from an unexplained one.
"""

from typing import Final

from disque_trio.pipeline.lake.views.words import KEYS

WEAKER: Final = (
    "The judge holds each duplicate against what the plan expects, and has a rule for each cause. "
    "How many there are, and how many of them are D0 and D1, agrees with it; which of the "
    "other causes it was, rows alone do not tell, so runs with faults are not judged here."
)

SQL: Final = f"""
SELECT 'duplicates' AS property, {KEYS}, job, node, time,
  concat('delivered again after ', (time - leased) / 1000000, ' s: neither asked for nor over its ',
    'lease, and nothing went wrong') AS detail
FROM deliveries JOIN runs r USING ({KEYS})
WHERE cause = 'D2-D12' AND r.troubles = 0 AND NOT r.is_live
"""
