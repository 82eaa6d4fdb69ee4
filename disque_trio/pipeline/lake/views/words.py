"""SQL and column meanings that several views share."""

from typing import Final

from disque_trio.sim.scenarios import fault_kinds

KEYS: Final = "scenario, run, seed"
"""The columns that identify a run; most views begin with them."""

OF_KEYS: Final = {
    "scenario": "the scenario's name; `live` for live nodes",
    "run": "the run: the beginning of a digest, or the name given to a live cluster",
    "seed": "the seed; 0 for live nodes",
}

AT_LEAST_ONCE: Final = (
    "(job NOT LIKE 'D-%' OR NOT right(job, 4) RLIKE '^[0-9a-fA-F]{4}$'"
    " OR right(job, 1) RLIKE '[13579bdfBDF]')"
)
"""Whether the job's id says at least once (`sim.checkers.obligations.is_at_least_once`)."""

TROUBLES: Final = ", ".join(f"'{row}'" for row in fault_kinds.ROWS if row != "start")
"""Kinds of rows about a fault, or the end of one."""


QUEUEING: Final = "queued - asked - if(queued_by = 'enqueue', least(delay, queued - asked), delay)"
"""How long a job of `jobs` took to be queued after its DELAY, which ENQUEUE may end early."""


def number(name: str, default: str) -> str:
    """SQL that reads an option of ADDJOB from the column `words`."""
    found = f"try_cast(nullif(regexp_extract(words, '\\\\b{name}[= ]([0-9]+)', 1), '') AS BIGINT)"
    return f"coalesce({found}, {default})"


TTL_S: Final = number("ttl", "86400")
RETRY_S: Final = number("retry", "least(greatest(ttl_s DIV 10, 1), 300)")
"""RETRY in seconds, or the default of Disque; the query must have `TTL_S` as `ttl_s`."""
