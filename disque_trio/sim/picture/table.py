"""Rows as columns of small numbers, in slices: what the timeline's JavaScript takes.

The saved picture of a run has a single slice; a run in progress sends several, and `Run.extend` in
`timeline/run.js` takes each. A `Slice` is a JSON object with

- ``nodes``, ``agents``: names of new lifelines. A lifeline's number is its place in the order in
  which they came: within a slice nodes first.
- ``words``: new strings, to which ``kind``, ``cause`` and ``detail`` are numbers.
- ``rows``: columns of the new rows: ``time`` (since the row before, microseconds), ``kind``,
  ``lifeline``, ``peer``, ``job``, ``cause``, ``detail``, and ``mate`` (how many rows back the row
  is that this one answers, 0 for none). -1 is no lifeline, or no job.
- ``jobs``: new jobs: id, queue, and how many copies are wanted (0 if that is not known).
- ``moves``: flat: row, job, lifeline, state before, state after (`job_states.JobState`).
- ``shared``: flat: row, job, for rows about several jobs.
- ``operations``: flat: lifeline, begin, end, outcome, word of the command.
- ``repeats``: deliveries after a job's first: job, row, row of the delivery before, cause.
- ``known_rows``: flat: row, job, of earlier rows whose job is known only now.
- ``known_jobs``: of earlier jobs: number, queue, copies wanted, as they are known now.
- ``bars``: all faults of the run so far, instead of those of the slice before (`strips.Bar`).
- ``link_rows``: new kinds of rows about faults of links, and whether such a row ends one.
- ``end``: until when the run is told.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from disque_trio.sim.checkers.obligations import read_options
from disque_trio.sim.picture import strips
from disque_trio.sim.picture.curves import Curves
from disque_trio.sim.picture.findings import Repeats
from disque_trio.sim.picture.job_states import JobStates, Move
from disque_trio.sim.picture.links import (
    CLIENT_KINDS,
    MESSAGES,
    NO_MATE,
    Links,
    is_client,
    lifeline,
    other,
)
from disque_trio.sim.scenarios.fault_kinds import LINK_ROWS, ROWS
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.tracing.rows import Row

Slice = dict[str, Any]

DETAIL_MOST = 160
OUTCOMES = {"ok": 0, "refused": 1, "unknown": 2}
UNKNOWN = 2
COLUMNS = ("time", "kind", "lifeline", "peer", "job", "cause", "detail", "mate")
A_YEAR = 31_536_000_000_000


def from_zero(rows: Sequence[Row]) -> tuple[Micros, Sequence[Row]]:
    """Rows of live nodes have calendar time: return that of the first row, and the rows with the
    first one at time 0."""
    zero = rows[0].time if rows and rows[0].time > A_YEAR else 0
    return zero, [attrs.evolve(row, time=row.time - zero) for row in rows] if zero else rows


@attrs.define
class Names:
    """Numbers for strings, in order of appearance."""

    numbers: dict[str, int] = attrs.Factory(dict)

    def number(self, name: str) -> int:
        """Return the number of a name; a new name gets the next one."""
        return self.numbers.setdefault(name, len(self.numbers))

    def since(self, number: int) -> list[str]:
        """Return the names from this number on."""
        return list(self.numbers)[number:]


@attrs.define
class _Job:
    queue: str = ""
    wanted: int = 0


@attrs.define
class Table:
    """A run in progress, as slices. Rows are added in the order of their times."""

    size: int = 0
    """The number of nodes: the default number of copies is limited by it."""
    nodes: Sequence[str] = ()
    """The initial lifelines, in this order; others are added with their rows."""
    agents: Sequence[str] = ()
    repeats: Repeats = attrs.Factory(Repeats)
    curves: Curves = attrs.Factory(Curves)
    words: Names = attrs.Factory(Names)
    jobs: Names = attrs.Factory(Names)
    links: Links = attrs.Factory(Links)
    _known: list[_Job] = attrs.Factory(list)
    """By number: the jobs."""
    _lifelines: Names = attrs.Factory(Names)
    _all_nodes: list[str] = attrs.Factory(list)
    _states: JobStates = attrs.Factory(JobStates)
    _open: dict[int, Row] = attrs.Factory(dict)
    """By index: invocations without an outcome."""
    _world: list[Row] = attrs.Factory(list)
    """Rows that make bars."""
    _count: int = 0
    _time: Micros = 0

    def extend(self, rows: Sequence[Row], end: Micros = 0) -> Slice:
        """Return the slice for further rows. `end` is the time until which no other row exists, if
        that is later than the last row."""
        first, words, jobs = self._count, len(self.words.numbers), len(self.jobs.numbers)
        named = self.links.extend(rows)
        nodes, agents = self._new_lifelines(rows)
        self._number_jobs(first)
        known = self._learn(first, rows, named)
        columns, moves = self._columns(first, rows)
        self._count += len(rows)
        end = max(end, self._time)
        operations = self._operations(first, rows)
        return {
            "nodes": nodes,
            "agents": agents,
            "rows": columns,
            "jobs": [
                (job, self._known[number].queue, self._known[number].wanted)
                for number, job in enumerate(self.jobs.since(jobs), jobs)
            ],
            "moves": moves,
            "shared": self._shared(first),
            "operations": operations,
            "repeats": [
                (self.jobs.number(repeat.job), repeat.row, repeat.first, repeat.cause)
                for index, row in enumerate(rows, first)
                if (repeat := self.repeats.see(index, row))
            ],
            "known_rows": [
                number
                for index in named
                for number in (index, self.jobs.number(self.links.jobs[index]))
            ],
            "known_jobs": [
                (number, self._known[number].queue, self._known[number].wanted)
                for number in known
                if number < jobs
            ],
            "bars": [attrs.astuple(bar) for bar in strips.bars(self._world, self._all_nodes, end)],
            "link_rows": [
                (kind, LINK_ROWS[kind]) for kind in self.words.since(words) if kind in LINK_ROWS
            ],
            "words": self.words.since(words),
            "end": end,
        }

    def open_operations(self, end: Micros) -> list[int]:
        """Return the invocations without an outcome so far, as ``operations`` of a slice."""
        found: list[int] = []
        for row in self._open.values():
            found += self._operation(row, row.time, end, UNKNOWN, row.kind.partition(".")[0])
        return found

    def _new_lifelines(self, rows: Iterable[Row]) -> tuple[list[str], list[str]]:
        known = self._lifelines.numbers
        nodes = dict.fromkeys(name for name in self.nodes if name not in known)
        agents = dict.fromkeys(name for name in self.agents if name not in known)
        for row in rows:
            ends = (row.node, row.peer if row.kind in MESSAGES else "")
            nodes.update(dict.fromkeys(name for name in ends if name and name not in known))
            if row.client and row.client not in known:
                agents[row.client] = None
        for name in (*nodes, *agents):
            self._lifelines.number(name)
        self._all_nodes += nodes
        return list(nodes), list(agents)

    def _number_jobs(self, first: int) -> None:
        """Number jobs in the order of their appearance; then those that messages list."""
        for job in self.links.jobs[first:]:
            if job:
                self.jobs.number(job)
        for index, job in self.links.shared:
            if index >= first:
                self.jobs.number(job)
        self._known += [_Job() for _ in range(len(self.jobs.numbers) - len(self._known))]

    def _learn(self, first: int, rows: Sequence[Row], named: Iterable[int]) -> list[int]:
        """Record queues of jobs, and their numbers of copies. Return the jobs with new facts."""
        learned: dict[int, None] = {}
        jobs = self.links.jobs
        late = [(index, self._open[index]) for index in named if index in self._open]
        for index, row in (*late, *enumerate(rows, first)):
            if not jobs[index]:
                continue
            number = self.jobs.number(jobs[index])
            known = self._known[number]
            if row.queue and not known.queue:
                known.queue = row.queue
                learned[number] = None
            if not known.wanted and (wanted := _wanted(row, self.size)):
                known.wanted = wanted
                learned[number] = None
        return list(learned)

    def _columns(
        self, first: int, rows: Sequence[Row]
    ) -> tuple[Mapping[str, list[int]], list[int]]:
        columns: dict[str, list[int]] = {name: [] for name in COLUMNS}
        moves: list[int] = []
        for index, row in enumerate(rows, first):
            changes = self._states.see(row)
            self.curves.see(row, changes)
            for name, value in zip(COLUMNS, self._row(index, row), strict=True):
                columns[name].append(value)
            moves += [number for move in changes for number in self._move(index, move)]
            if row.kind in ROWS:
                self._world.append(row)
        return columns, moves

    def _row(self, index: int, row: Row) -> tuple[int, ...]:
        job, mate = self.links.jobs[index], self.links.mates[index]
        since, self._time = row.time - self._time, row.time
        word, number = self.words.number, self._lifelines.numbers
        return (
            since,
            word(row.kind),
            number.get(lifeline(row), -1),
            number.get(other(row), -1),
            self.jobs.number(job) if job else -1,
            word(row.cause),
            word(row.detail[:DETAIL_MOST]),
            0 if mate == NO_MATE else index - mate,
        )

    def _move(self, index: int, move: Move) -> tuple[int, ...]:
        node = self._lifelines.numbers[move.node]
        return index, self.jobs.number(move.job), node, move.before, move.after

    def _shared(self, first: int) -> list[int]:
        return [
            number
            for index, job in self.links.shared
            if index >= first
            for number in (index, self.jobs.number(job))
        ]

    def _operations(self, first: int, rows: Sequence[Row]) -> list[int]:
        """Return invocations with their outcomes, and deliveries."""
        found: list[int] = []
        for index, row in enumerate(rows, first):
            if not row.client:
                continue
            if row.kind.endswith(".invoke"):
                self._open[index] = row
            elif is_client(row):
                command, _, outcome = row.kind.partition(".")
                invocation = self._open.pop(self.links.mates[index], row)
                ended = OUTCOMES.get(outcome, 0)
                found += self._operation(row, invocation.time, row.time, ended, command)
        return found

    def _operation(
        self, row: Row, begin: int, end: int, outcome: int, command: str
    ) -> tuple[int, ...]:
        assert command in CLIENT_KINDS, command
        return self._lifelines.numbers[row.client], begin, end, outcome, self.words.number(command)


def _wanted(row: Row, size: int) -> int:
    """Return the number of copies of an ADDJOB, from its invocation or from the record at a
    node."""
    if row.kind == "add.invoke":
        return read_options(row.detail, size).replicate
    if row.kind == "hold" and row.detail.startswith("replicate="):
        return read_options(row.detail, size).replicate
    return 0
