"""The history of an app, from rows."""

from collections import defaultdict
from collections.abc import Callable
from typing import Final

import attrs

from disque_trio.sim.checkers.case import Violation
from disque_trio.sim.scenarios.apps import AppCall, AppJob, AppsPlan, AppTask, Micros
from disque_trio.sim.scenarios.fault_kinds import WITH_ROWS
from disque_trio.tracing.details import fields
from disque_trio.tracing.rows import Row

NEVER: Final[Micros] = 1 << 61
REUNION: Final[Micros] = 4_000_000
"""How long nodes may take to restore links, and to exchange missed messages."""
SLACK: Final[Micros] = 60_000
"""The tolerance of times: clocks of nodes count milliseconds, and rows of handlers follow those of
nodes."""


@attrs.define(eq=False)
class RunRecord:
    """One run of a job."""

    at: Micros
    process: str
    job: str
    number: int
    action: str
    attempt: int
    delivery: int
    snoozes: int
    interrupted: int
    place: int
    """The number of earlier runs of the job."""
    acted_at: Micros | None = None
    """When the handler carried out the action of its plan."""
    ended_at: Micros | None = None
    outcome: str = ""
    text: str = ""
    """The delay in microseconds, or the reason."""
    why: str = ""
    """Why it was cancelled."""
    is_cut_off: bool = False
    """Was its process killed?"""
    delivered_at: Micros = NEVER
    """When its worker received the job, which it may have held before it began."""

    @property
    def delay(self) -> Micros | None:
        """The delay of its outcome."""
        return int(self.text) if self.text.isdigit() else None


@attrs.define(eq=False)
class JobRecord:
    """A job of the app, with all of its ids."""

    number: int
    plan: AppJob
    task: AppTask
    call: AppCall
    added_at: Micros | None = None
    id: str = ""
    """The id that its producer received."""
    refused: str = ""
    runs: list[RunRecord] = attrs.Factory(list)
    reported: dict[str, int] = attrs.Factory(dict)
    """For the continuation of a batch: the number of members by outcome, as it received them."""

    is_own: bool = False
    """Was it added? Not if its key was reserved: then its id is that of another job."""

    @property
    def is_step(self) -> bool:
        """Is it a later step of a chain, the continuation of a batch, or a member of a flow?"""
        jobs = self.call.jobs
        places = {"chain": jobs[1:], "then": jobs[-1:], "flow": jobs}
        return self.plan in places.get(self.call.kind, ())

    @property
    def ids(self) -> list[str]:
        """All of its ids."""
        first = [self.id] if self.is_own else []
        return list(dict.fromkeys([*first, *(run.job for run in self.runs)]))

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"job {self.number} of {self.task.name}"


@attrs.define(eq=False)
class Wait:
    """A wait for a result."""

    at: Micros
    number: int
    kind: str
    process: str
    reported_at: Micros | None = None
    how: str = ""
    is_gone: bool = False
    """The wait has ended because the process was killed."""


_Span = tuple[Micros, Micros]
_CLOSES: Final = {
    **{kind.end_row: kind.row for kind in WITH_ROWS if kind.end_row},
    "app.resume": "app.pause",
    "app.mend": "app.cut",
}
_OPENS: Final = tuple(_CLOSES.values())
_POINTS: Final = (
    "app.kill", "app.reset", "app.stop", "app.ended", "app.start",
    *(kind.row for kind in WITH_ROWS if not kind.end_row),
)  # fmt: skip


class History:
    """Collects rows in order."""

    def __init__(self, plan: AppsPlan) -> None:
        self.plan = plan
        tasks = {task.name: task for task in plan.tasks}
        self.jobs = {
            job.number: JobRecord(job.number, job, tasks[job.task], call)
            for call in plan.calls
            for job in call.jobs
        }
        self.violations: list[Violation] = []
        self.acked: dict[str, Micros] = {}
        """By id: when a node first regarded it as acknowledged."""
        self.dead: dict[str, Micros] = {}
        self.expired: dict[str, Micros] = {}
        self.taken_back: dict[str, list[Micros]] = defaultdict(list)
        """By id: when nodes requeued it because its worker had not answered in time."""
        self.held: dict[str, Micros] = {}
        """By id: when a node first had it."""
        self.flows: dict[int, Micros] = {}
        """By the number of the first member: when the flow was added."""
        self.cancelled: dict[int, Micros] = {}
        """Likewise: when its producer received the confirmation that it is cancelled."""
        self.left: dict[str, tuple[str, str]] = {}
        """By id: the state and the queue."""
        self.waits: list[Wait] = []
        self.ticks: dict[tuple[str, str], dict[str, Micros]] = defaultdict(dict)
        self.lines: dict[str, int] = defaultdict(int)
        self.other_lines = 0
        self.lives = 0
        self.troubles: list[_Span] = []
        self.at_nodes: list[_Span] = []
        """Faults other than ends of processes of the app."""
        self.drift = 0.0
        """The greatest fraction by which the clock of a node ran faster than true time."""
        self.over_at: Micros = 0
        self._open: dict[tuple[str, ...], list[tuple[Micros, bool]]] = defaultdict(list)
        self._running: dict[tuple[str, str], RunRecord] = {}
        self._owners: dict[str, int] = {}
        self._delivered: dict[tuple[str, str], Micros] = {}
        """By worker and job: the last time."""

    def violate(self, name: str, text: str, at: Micros, job: str = "") -> None:
        """Record that a property does not hold."""
        self.violations.append(Violation(property=name, time=at, job=job, node="", detail=text))

    def owner(self, job: JobRecord) -> JobRecord:
        """The job with this id: the one that runs under it, or else the first one that received
        it."""
        return self.jobs[self._owners.get(job.id, job.number)]

    def is_calm(self, since: Micros, until: Micros, *, at_nodes: bool = False) -> bool:
        """Was there no fault in this time? With `at_nodes` ends of the app's processes do not
        count."""
        spans = self.at_nodes if at_nodes else self.troubles
        still = [began for opened in self._open.values() for began, is_node in opened
                 if is_node or not at_nodes]  # fmt: skip
        return not any(begin <= until and end >= since for begin, end in spans) and not any(
            begin <= until for begin in still
        )

    def shortest(self, wait: Micros) -> Micros:
        """The shortest true time of a wait that has this length by the clock of a node."""
        return int(wait * (1 - self.drift)) - SLACK

    def finish(self) -> None:
        """Finish after the last row."""
        for job in self.jobs.values():
            job.is_own = job.added_at is not None and self.owner(job) is job

    # Rows.

    def see(self, row: Row) -> None:
        """Process the next row."""
        kind = row.kind
        if (take := _TAKES.get(kind)) is not None:
            take(self, row)
        if kind in _OPENS and row.time >= 0:
            is_node = not kind.startswith("app.")
            self._open[_place(kind, row)].append((row.time, is_node))
        elif kind in _CLOSES:
            self._close(_place(_CLOSES[kind], row), row.time)
        elif kind in _POINTS and row.time >= 0:
            self.troubles.append((row.time, row.time))
            if kind not in ("app.kill", "app.stop", "app.ended", "app.start"):
                self.at_nodes.append((row.time, row.time))

    def _close(self, place: tuple[str, ...], at: Micros) -> None:
        for began, is_node in self._open.pop(place, ()):
            at += REUNION if is_node else 0
            self.troubles.append((began, at))
            if is_node or place[0] != "app.pause":
                self.at_nodes.append((began, at))

    def _added(self, row: Row) -> None:
        job = self.jobs[row.ref]
        job.added_at, job.id = row.time, row.job
        self._owners.setdefault(row.job, row.ref)

    def _refused(self, row: Row) -> None:
        facts = fields(row.detail)
        for number in facts.get("jobs", str(row.ref)).split(","):
            self.jobs[int(number)].refused = row.cause

    def _begin(self, row: Row) -> None:
        job, facts = self.jobs[row.ref], fields(row.detail)
        self._owners[row.job] = row.ref  # now it is certain
        run = RunRecord(
            at=row.time,
            process=row.client,
            job=row.job,
            number=row.ref,
            action=row.cause,
            attempt=int(facts["attempt"]),
            delivery=int(facts["delivery"]),
            snoozes=int(facts["snoozes"]),
            interrupted=int(facts["interrupted"]),
            place=len(job.runs),
            delivered_at=self._delivered.get((row.client, row.job), row.time),
        )
        job.runs.append(run)
        self._running[row.client, row.job] = run

    def _deliver(self, row: Row) -> None:
        self._delivered[row.client, row.job] = row.time

    def _action(self, row: Row) -> None:
        if (run := self._running.get((row.client, row.job))) is not None:
            run.acted_at = row.time

    def _end(self, row: Row) -> None:
        run = self._running.get((row.client, row.job))
        if run is None:
            return
        facts = fields(row.detail, "is_")
        run.ended_at, run.outcome = row.time, row.cause
        run.why, run.text = facts.get("why", ""), facts.get("is_", "")
        if row.cause not in ("interrupted", "raised"):  # otherwise the outcome is not final yet
            del self._running[row.client, row.job]

    def _ends(self, row: Row) -> None:
        counts = fields(row.detail).get("counts", "").split(",")
        pairs = (each.partition(":") for each in counts if each)
        self.jobs[row.ref].reported = {state: int(count) for state, _, count in pairs}

    def _gone(self, row: Row) -> None:
        for process, job in list(self._running):
            if process == row.client:
                run = self._running.pop((process, job))
                run.is_cut_off = run.ended_at is None
        for wait in self.waits:
            wait.is_gone |= wait.process == row.client and wait.reported_at is None
        for place in [place for place in self._open if row.client in place]:
            self._close(place, row.time)

    def _start(self, row: Row) -> None:
        self.lives += row.client.startswith("w")

    def _acked(self, row: Row) -> None:
        self.acked.setdefault(row.job, row.time)

    def _dead(self, row: Row) -> None:
        self.dead.setdefault(row.job, row.time)

    def _drop(self, row: Row) -> None:
        if row.cause == "expired":
            self.expired.setdefault(row.job, row.time)

    def _queue(self, row: Row) -> None:
        if row.cause in ("retry", "untied"):
            self.taken_back[row.job].append(row.time)

    def _rate(self, row: Row) -> None:
        self.drift = max(self.drift, int(row.detail) / 1_000_000)

    def _left(self, row: Row) -> None:
        self.left[row.job] = row.cause, row.queue

    def _wait(self, row: Row) -> None:
        self.waits.append(Wait(row.time, row.ref, row.cause, row.client))

    def _reported(self, row: Row) -> None:
        for wait in self.waits:
            if wait.number == row.ref and wait.reported_at is None and not wait.is_gone:
                wait.reported_at, wait.how = row.time, row.cause

    def _hold(self, row: Row) -> None:
        self.held.setdefault(row.job, row.time)

    def _flow(self, row: Row) -> None:
        self.flows[row.ref] = row.time

    def _cancel(self, row: Row) -> None:
        if fields(row.detail)["done"] == "True":
            self.cancelled[row.ref] = row.time

    def _tick(self, row: Row) -> None:
        facts = fields(row.detail)
        self.ticks[facts["task"], facts["tick"]].setdefault(row.job, row.time)

    def _log(self, row: Row) -> None:
        facts = fields(row.detail)
        if facts.get("broken"):
            self.violate("A12", f"a line cannot be written: {facts['broken']}", row.time, row.job)
        if row.job:
            self.lines[row.job] += 1
        else:
            self.other_lines += 1

    def _over(self, row: Row) -> None:
        self.over_at = row.time


def _place(kind: str, row: Row) -> tuple[str, ...]:
    if kind.startswith("app."):
        nodes = row.detail if kind == "app.cut" else row.cause
        return kind, row.client, nodes
    return kind, row.node, row.peer


_TAKES: Final[dict[str, Callable[[History, Row], None]]] = {
    "app.added": History._added,
    "app.refused": History._refused,
    "app.begin": History._begin,
    "app.action": History._action,
    "app.deed": History._action,  # traces of 0.1.0
    "app.end": History._end,
    "app.ends": History._ends,
    "app.kill": History._gone,
    "app.ended": History._gone,
    "app.start": History._start,
    "app.left": History._left,
    "app.wait": History._wait,
    "app.told": History._reported,
    "app.flow": History._flow,
    "app.cancel": History._cancel,
    "app.tick": History._tick,
    "app.log": History._log,
    "app.over": History._over,
    "hold": History._hold,
    "acked": History._acked,
    "dead": History._dead,
    "get.deliver": History._deliver,
    "drop": History._drop,
    "queue": History._queue,
    "clock.rate": History._rate,
}
