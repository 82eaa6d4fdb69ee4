"""Two figures of the report: where the time of jobs goes, and duplicates by kind of fault."""

from collections.abc import Callable
from typing import Any, Final

from disque_trio.sim.scenarios import fault_kinds

Facts = dict[str, Any]
"""One row: values by column."""
Rows = Callable[[str], list[Facts]]
"""What a query finds."""

STAGES: Final = {
    "adding": "until a node has queued it, without DELAY",
    "delayed": "DELAY",
    "waiting": "in the queue",
    "repeating": "from the first delivery to the last",
    "working": "from the last delivery to the ack",
}
"""The parts of the time from ADDJOB to the ack, in this order."""

_PARTS: Final = {
    "delayed": "least(coalesce(delay, 0), coming)",
    "adding": "greatest(coming - coalesce(delay, 0), 0)",
    "waiting": "greatest(delivered - queued, 0)",
    "repeating": "greatest(again - delivered, 0)",
    "working": "greatest(acked - again, 0)",
}
TIMES: Final = f"""
WITH whole AS (
  SELECT scenario, delay, queued, delivered, acked,
    greatest(queued - coalesce(asked, born, queued), 0) AS coming,
    least(greatest(delivered, last_delivered), acked) AS again,
    acked - coalesce(asked, born, queued) AS took
  FROM jobs
  WHERE queued IS NOT NULL AND delivered IS NOT NULL AND acked IS NOT NULL
)
SELECT scenario, count(*) AS jobs, avg(took) / 1e3 AS took,
  {", ".join(f"avg({part}) / 1e3 AS {name}" for name, part in _PARTS.items())}
FROM whole GROUP BY scenario ORDER BY scenario
"""
"""For each scenario, mean milliseconds of its acknowledged jobs in each of `STAGES`."""

_OTHER_MARKS: Final = {
    "links slow or lossy": ("message.lost",),
    "disks": ("journal.torn", "journal.damaged"),
    "clients and workers die": ("producer.died", "worker.killed", "worker.stalled"),
}
"""Those that are not of one kind of fault."""
FAMILIES: Final = {
    family: (
        *(mark for kind in fault_kinds.KINDS if kind.family == family for mark in kind.marks),
        *_OTHER_MARKS.get(family, ()),
    )
    for family in dict.fromkeys((*(kind.family for kind in fault_kinds.KINDS), *_OTHER_MARKS))
}
"""Marks (`sim.scenarios.marks`) that tell of a fault, by kind."""
NO_FAULT: Final = "none of these"

_FAMILY: Final = " ".join(
    f"WHEN '{mark}' THEN '{family}'" for family, marks in FAMILIES.items() for mark in marks
)
RATES: Final = f"""
WITH met AS (
  SELECT added, duplicates, array_distinct(filter(
    transform(filter(map_entries(marks), each -> each.value > 0),
      each -> CASE each.key {_FAMILY} END),
    family -> family IS NOT NULL)) AS families
  FROM results
), by_family AS (
  SELECT added, duplicates,
    explode(if(size(families) = 0, array('{NO_FAULT}'), families)) AS family
  FROM met
), counted AS (
  SELECT family, each.key AS cause, sum(each.value) AS duplicates
  FROM (SELECT family, explode(map_entries(duplicates)) AS each FROM by_family)
  GROUP BY family, each.key
)
SELECT family, seeds, cause, try_divide(1e6 * duplicates, jobs) AS per_million
FROM (SELECT family, count(*) AS seeds, sum(added) AS jobs FROM by_family GROUP BY family)
  LEFT JOIN counted USING (family)
ORDER BY family, cause
"""
"""For each kind of fault and cause, duplicates per million jobs of the seeds that had such a fault;
`cause` is null if there were none."""
