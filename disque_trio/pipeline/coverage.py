"""Coverage: which messages about a job nodes have received in which state of that job.

A pair of message and state that no seed has covered is a part of the protocol that no sweep tested.
"""

from collections import Counter
from typing import Final

from disque_trio.tracing.details import jobs_in
from disque_trio.tracing.rows import Row

UNKNOWN: Final = "unknown"
"""The node has no copy."""
_STATES: Final = {
    "hold": "held",
    "queue": "queued",
    "unqueue": "held",
    "dead": "dead",
    "redrive": "held",
    "acked": "acked",
    "drop": UNKNOWN,
}
"""By kind of row: the state that the job is in at this node from then on."""
_ENDS: Final = ("crash", "wipe", "remove")
"""Kinds of rows after which a node has no jobs in memory."""


class Coverage:
    """Counts, by ``message/state``."""

    def __init__(self) -> None:
        self._states: dict[str, dict[str, str]] = {}
        self.counts: Counter[str] = Counter()

    def see(self, row: Row) -> None:
        """The next row of the run."""
        state = _STATES.get(row.kind)
        if state is not None:
            jobs = self._states.setdefault(row.node, {})
            if state is UNKNOWN:
                jobs.pop(row.job, None)
            else:
                jobs[row.job] = "acked" if row.cause == "dummy" else state
        elif row.kind == "recv":
            self._receive(row)
        elif row.kind in _ENDS:
            self._states.pop(row.node, None)

    def _receive(self, row: Row) -> None:
        jobs = self._states.get(row.node, {})
        for job in jobs_in(row):
            self.counts[f"{row.cause}/{jobs.get(job, UNKNOWN)}"] += 1
