"""One row for each run that the lake has a trace of: the judge's verdict, as of `sim replay`.

A sweep stores the verdicts on the runs whose traces it keeps. Other runs are judged when a query
first needs their verdicts, and again if rows are added or the judge changes.
"""

from typing import Final

from disque_trio.pipeline.lake.views.words import KEYS, OF_KEYS

COLUMNS: Final = {
    **OF_KEYS,
    "ok": "whether no property was violated",
    "lost": "jobs lost",
    "delivered": "deliveries, repeated ones included",
    "violations": "what was violated (view `violations`)",
    "duplicates": "repeated deliveries: job, number, cause, leased, after_ack (view `deliveries`)",
    "not_judged": "by property, why it was not judged, or not in all cases",
    "notes": "what the trace lacks, so that weaker rules were applied",
    "judge": "a digest of the judge's code",
    "at": "when it was judged, microseconds since 1970",
}

SQL: Final = f"""
SELECT * EXCEPT (place) FROM (
  SELECT {KEYS}, ok, lost, delivered, violations, repeats AS duplicates, not_judged, notes, judge,
    unix_micros(at) AS at,
    row_number() OVER (PARTITION BY {KEYS} ORDER BY v.at DESC) AS place
  FROM verdicts v JOIN runs USING ({KEYS})
) WHERE place = 1
"""
