"""One row for each node and second: how often it did what."""

from typing import Final

from disque_trio.pipeline.lake.views.words import KEYS, OF_KEYS

_COUNTED: Final = {
    "added": ("add.ok", "ADDJOB requests that it answered with an id"),
    "served": ("serve", "jobs that it served to clients"),
    "acked": ("acked", "acknowledgements that it noted, from clients or other nodes"),
    "given": ("give", "jobs that it gave to other nodes"),
    "held": ("hold", "records that it made"),
    "dropped": ("drop", "records that it dropped"),
    "sent": ("send", "messages that it sent"),
    "received": ("recv", "messages that it received"),
    "lost": ("lost", "messages that it sent and that were lost"),
}
COLUMNS: Final = {
    **OF_KEYS,
    "node": "the node",
    "second": "seconds since the run began, of live nodes since 1970",
    **{name: meaning for name, (_, meaning) in _COUNTED.items()},
}

_COUNTS: Final = ", ".join(
    f"count_if(kind = '{kind}') AS {name}" for name, (kind, _) in _COUNTED.items()
)
_KINDS: Final = ", ".join(f"'{kind}'" for kind, _ in _COUNTED.values())

SQL: Final = f"""
SELECT {KEYS}, node, time DIV 1000000 AS second, {_COUNTS}
FROM rows WHERE kind IN ({_KINDS})
GROUP BY {KEYS}, node, time DIV 1000000
"""
