"""The state of each job on each node, row by row."""

import enum
from collections.abc import Iterable

import attrs

from disque_trio.tracing.rows import Row


class JobState(enum.IntEnum):
    """The state of a job on a node, in the order of a job's life."""

    NONE = 0
    DUMMY = 1
    """A dummy ack: no copy, only the record that a client has acknowledged the job at this node."""
    WAITING = 2
    """Added at this node; replicas are being created."""
    HELD = 3
    """The node has a copy, not queued."""
    QUEUED = 4
    DEAD = 5
    """Kept, and not delivered until it is redriven."""
    TOLD = 6
    """Acknowledged, as another node has announced."""
    ACKED = 7
    """Acknowledged by a client of this node."""

    @property
    def is_copy(self) -> bool:
        """Does the node have a copy?"""
        return self > JobState.DUMMY


LETTERS = ".dwhQxkK"
"""One letter for each state, in order; upper case if the node acts on its own."""

HOLDS = {"add": JobState.WAITING, "dummy": JobState.DUMMY}
"""By the cause of a `hold`; any other cause gives HELD."""
_LEAVES = {
    "unqueue": JobState.QUEUED,
    "add.ok": JobState.WAITING,
    "redrive": JobState.DEAD,
}
"""By the kind of a row: the state that it ends; the job is then HELD."""


@attrs.frozen
class Move:
    """The change of a job's state on a node."""

    node: str
    job: str
    before: JobState
    after: JobState


@attrs.define
class JobStates:
    """The states of all jobs on all nodes after the rows so far."""

    nodes: dict[str, dict[str, JobState]] = attrs.Factory(dict)

    def see(self, row: Row) -> list[Move]:
        """Apply a row; return the changes."""
        if row.kind in {"crash", "wipe", "remove"}:
            return self._forget(row.node)
        jobs = self.nodes.setdefault(row.node, {}) if row.job else {}
        before = jobs.get(row.job, JobState.NONE)
        after = _after(row, before)
        if after is before:
            return []
        if after is JobState.NONE:
            del jobs[row.job]
        else:
            jobs[row.job] = after
        return [Move(row.node, row.job, before, after)]

    def of(self, job: str, nodes: Iterable[str]) -> str:
        """Return the job's state as one letter for each node."""
        return "".join(LETTERS[self.nodes.get(node, {}).get(job, JobState.NONE)] for node in nodes)

    def _forget(self, node: str) -> list[Move]:
        jobs = self.nodes.pop(node, {})
        return [Move(node, job, before, JobState.NONE) for job, before in jobs.items()]


def _after(row: Row, before: JobState) -> JobState:
    match row.kind:
        case "hold":
            return max(before, HOLDS.get(row.cause, JobState.HELD))
        case "drop":
            return JobState.NONE
        case "queue":
            return JobState.QUEUED
        case "unqueue" | "add.ok" | "redrive" if before is _LEAVES[row.kind]:
            return JobState.HELD
        case "dead" if not row.detail.endswith("wait-repl"):
            return JobState.DEAD
        case "acked":
            return JobState.ACKED if row.cause == "ackjob" else max(before, JobState.TOLD)
        case _:
            return before
