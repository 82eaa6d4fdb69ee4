"""How each job stands on each node, row by row. The one place where rows become states."""

import enum
from collections.abc import Iterable

import attrs

from disque_trio.tracing.rows import Row


class Stand(enum.IntEnum):
    """How a job stands on a node. The order is that of a job's life."""

    NONE = 0
    DUMMY = 1
    """No copy: only that a client has acknowledged it here."""
    WAITING = 2
    """Added here; copies are being made."""
    HELD = 3
    """There is a record, not in the queue."""
    QUEUED = 4
    TOLD = 5
    """Acknowledged, as another node said."""
    ACKED = 6
    """Acknowledged by a client of this node."""

    @property
    def is_copy(self) -> bool:
        """Does the node have the job itself?"""
        return self > Stand.DUMMY


LETTERS = ".dwhQkK"
"""One for each stand, in order; upper case where this node acts on its own."""


HOLDS = {"add": Stand.WAITING, "dummy": Stand.DUMMY}
"""By the cause of the record; for any other the copy is held."""


@attrs.frozen
class Move:
    """One job changes its stand on one node."""

    node: str
    job: str
    before: Stand
    after: Stand


@attrs.define
class Stands:
    """The stands of all jobs on all nodes after the rows seen so far."""

    nodes: dict[str, dict[str, Stand]] = attrs.Factory(dict)

    def see(self, row: Row) -> list[Move]:
        """Take in one row; say what it changed."""
        if row.kind in {"crash", "wipe", "remove"}:
            return self._forget(row.node)
        jobs = self.nodes.setdefault(row.node, {}) if row.job else {}
        before = jobs.get(row.job, Stand.NONE)
        after = _after(row, before)
        if after is before:
            return []
        if after is Stand.NONE:
            del jobs[row.job]
        else:
            jobs[row.job] = after
        return [Move(row.node, row.job, before, after)]

    def of(self, job: str, nodes: Iterable[str]) -> str:
        """One letter per node: how the job stands there."""
        return "".join(LETTERS[self.nodes.get(node, {}).get(job, Stand.NONE)] for node in nodes)

    def _forget(self, node: str) -> list[Move]:
        jobs = self.nodes.pop(node, {})
        return [Move(node, job, before, Stand.NONE) for job, before in jobs.items()]


def _after(row: Row, before: Stand) -> Stand:
    match row.kind:
        case "hold":
            return max(before, HOLDS.get(row.cause, Stand.HELD))
        case "drop":
            return Stand.NONE
        case "queue":
            return Stand.QUEUED
        case "unqueue" if before is Stand.QUEUED:
            return Stand.HELD
        case "add.ok" if before is Stand.WAITING:
            return Stand.HELD
        case "acked":
            return Stand.ACKED if row.cause == "ackjob" else max(before, Stand.TOLD)
        case _:
            return before
