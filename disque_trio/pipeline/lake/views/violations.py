"""One row for each violation that the judge has found in a trace (view `verdicts`)."""

from typing import Final

from disque_trio.pipeline.lake.views.words import KEYS, OF_KEYS

COLUMNS: Final = {
    "property": "the violated property (docs/guarantees.md)",
    **OF_KEYS,
    "job": "the job; empty if it is about none",
    "node": "the node that violated it; empty if unknown",
    "time": "when, microseconds; of live nodes since 1970",
    "detail": "what was observed, and what was required",
}

SQL: Final = f"""
SELECT each.property, {KEYS}, each.job, each.node, each.time, each.detail
FROM (SELECT {KEYS}, explode(violations) AS each FROM verdicts)
"""
