"""Rows as columns of small numbers, for the page's JavaScript."""

from collections.abc import Sequence

import attrs

from disque_trio.sim.picture.curves import Curves
from disque_trio.sim.picture.job_states import JobStates
from disque_trio.sim.picture.links import (
    CLIENT_KINDS,
    NO_MATE,
    Links,
    is_client,
    lifeline,
    numbers,
    other,
)
from disque_trio.tracing.rows import Row

DETAIL_MOST = 160
OUTCOMES = {"ok": 0, "refused": 1, "unknown": 2}
UNKNOWN = 2


@attrs.define
class Names:
    """Numbers for strings, in order of appearance."""

    numbers: dict[str, int] = attrs.Factory(dict)

    def number(self, name: str) -> int:
        """The number of a name; a new name gets the next one."""
        return self.numbers.setdefault(name, len(self.numbers))

    def all(self) -> list[str]:
        """The names, by number."""
        return list(self.numbers)


@attrs.define
class Table:
    """The rows of a run as columns. In `lifeline`, `peer` and `job`, -1 is none."""

    lifelines: dict[str, int]
    words: Names = attrs.Factory(Names)
    jobs: Names = attrs.Factory(Names)
    queues: dict[str, str] = attrs.Factory(dict)
    columns: dict[str, list[int]] = attrs.field(
        factory=lambda: {
            name: []
            for name in ("time", "kind", "lifeline", "peer", "job", "cause", "detail", "mate")
        }
    )
    """`time` is the time since the row before, `mate` how many rows back it is, 0 for none."""
    moves: list[int] = attrs.Factory(list)
    """Flat: row, job, lifeline, state before, state after."""
    shared: list[int] = attrs.Factory(list)
    """Flat: row, job, for rows about several jobs."""
    operations: list[int] = attrs.Factory(list)
    """Flat: lifeline, begin, end, outcome, word of the command."""

    def fill(self, rows: Sequence[Row], links: Links, curves: Curves) -> None:
        """Add all rows, once."""
        self.jobs.numbers = numbers(links)
        self.shared = [
            number for index, job in links.shared for number in (index, self.jobs.number(job))
        ]
        states = JobStates()
        before = 0
        for index, row in enumerate(rows):
            moves = states.see(row)
            curves.see(row, moves)
            self._row(index, row, row.time - before, links)
            before = row.time
            for move in moves:
                job = self.jobs.number(move.job)
                self.moves += (index, job, self.lifelines[move.node], move.before, move.after)
        self._operations(rows, links)

    def _row(self, index: int, row: Row, since: int, links: Links) -> None:
        job, mate = links.jobs[index], links.mates[index]
        if job and row.queue:
            self.queues.setdefault(job, row.queue)
        columns, word = self.columns, self.words.number
        columns["time"].append(since)
        columns["kind"].append(word(row.kind))
        columns["lifeline"].append(self.lifelines.get(lifeline(row), -1))
        columns["peer"].append(self.lifelines.get(other(row), -1))
        columns["job"].append(self.jobs.number(job) if job else -1)
        columns["cause"].append(word(row.cause))
        columns["detail"].append(word(row.detail[:DETAIL_MOST]))
        columns["mate"].append(0 if mate == NO_MATE else index - mate)

    def _operations(self, rows: Sequence[Row], links: Links) -> None:
        """Invocations with their outcomes, deliveries, and invocations without an answer."""
        is_open = {index: row for index, row in enumerate(rows) if row.kind.endswith(".invoke")}
        end = rows[-1].time if rows else 0
        for index, row in enumerate(rows):
            if not is_client(row) or row.kind.endswith(".invoke"):
                continue
            command, _, outcome = row.kind.partition(".")
            invocation = is_open.pop(links.mates[index], row)
            self._operation(row, invocation.time, row.time, OUTCOMES.get(outcome, 0), command)
        for row in is_open.values():
            self._operation(row, row.time, end, UNKNOWN, row.kind.partition(".")[0])

    def _operation(self, row: Row, begin: int, end: int, outcome: int, command: str) -> None:
        assert command in CLIENT_KINDS, command
        self.operations += (
            self.lifelines[row.client],
            begin,
            end,
            outcome,
            self.words.number(command),
        )
