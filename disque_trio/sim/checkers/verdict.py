"""The judge and its verdict.

`judge(plan)` returns a `Judge`, which checks each row as far as possible at once, and the rest in
`finish`. The verdict also lists the properties that were not judged, which would otherwise appear
to hold.
"""

import attrs

from disque_trio.sim.checkers import (
    client_events,
    cluster_liveness,
    counters,
    duplicates,
    durability,
    giving_back,
    held,
    liveness,
    queries,
    replies,
    request_options,
    returns,
    runs,
    safety,
    snoozes,
    stops,
    succession,
    tables,
    timers,
    unique,
    workers,
)
from disque_trio.sim.checkers.case import Violation, case_of
from disque_trio.sim.checkers.dispatch import OF_JOBS, OF_MESSAGES, OF_THE_WORLD
from disque_trio.sim.checkers.duplicates import CAUSES, Duplicate
from disque_trio.sim.checkers.findings import Findings
from disque_trio.sim.checkers.metrics import Metrics, measure
from disque_trio.sim.checkers.records import Job, Lease
from disque_trio.sim.checkers.unjudged import not_judged, notes
from disque_trio.sim.scenarios.plan import Micros, Plan
from disque_trio.terminal.counting import counted
from disque_trio.tracing.rows import Row


@attrs.frozen(kw_only=True)
class Verdict:
    """The result of judging a run."""

    ok: bool
    violations: tuple[Violation, ...]
    """Ordered by time."""
    deliveries: int
    distinct: int
    """The number of jobs that were delivered at least once."""
    lost: int
    """The number of jobs that were added, never delivered and are on no node, with nothing that
    excuses the loss."""
    lost_jobs: tuple[str, ...]
    excused: int
    """The number of lost jobs of which faults destroyed as many copies as were required."""
    lost_once: int
    """The number of jobs with at-most-once delivery that were never delivered, for a known
    cause."""
    duplicates: dict[str, int]
    """By cause: the number of duplicates."""
    records: tuple[Duplicate, ...]
    """Every duplicate."""
    marks: dict[str, int]
    """By mark (`marks.MARKS`): the number of its hits."""
    metrics: Metrics
    checks: dict[str, int]
    """By property: the number of its checks."""
    not_judged: dict[str, str]
    """By property: why it was not judged, or not in all cases."""
    notes: tuple[str, ...]
    """What the trace lacked, so that weaker rules were applied."""

    def missing(self, sometimes: tuple[str, ...]) -> tuple[str, ...]:
        """Return the marks among these that were not hit."""
        return tuple(name for name in sometimes if not self.marks.get(name))


def judge(plan: Plan, *, is_live: bool = False, no_processor: Micros = 0) -> "Judge":
    """Return a judge for a run of this plan. Live nodes do not know whether their replies arrive.
    In real time a process may wait for the processor, at most `no_processor`."""
    return Judge(plan, is_live=is_live, no_processor=no_processor)


class Judge:
    """Judges one run, row by row."""

    def __init__(self, plan: Plan, *, is_live: bool, no_processor: Micros) -> None:
        self.case = case_of(plan, is_live=is_live, no_processor=no_processor)
        self._findings = Findings()
        self._duplicates: list[Duplicate] = []
        self._deliveries = 0
        self._distinct = 0
        self._reach = max(
            [
                self.case.obligations.delivery(_retry(plan, number))
                for number in range(len(plan.adds))
            ],
            default=0,
        )

    @property
    def violated(self) -> Violation | None:
        """The first violation so far, or None."""
        found = self.case.violations
        return found[0] if found else None

    def see(self, row: Row) -> None:
        """Judge the next row."""
        case = self.case
        case.now = row.time
        kind = row.kind
        # Most rows are about messages.
        if (see_message := OF_MESSAGES.get(kind)) is not None:
            see_message(case, row)
        elif (steps := OF_JOBS.get(kind)) is not None:
            job = case.jobs.get(row.job) or case.job(row.job)
            for step in unique.steps(case, row, job, steps):
                step(case, row, job)
            if case.queries:
                queries.note(case, row, job)
            if kind == "serve" and case.is_live:
                self._deliver(row, job)
        elif kind == "get.deliver":
            self._deliver(row, case.job(row.job))
        elif row.cause not in cluster_liveness.GOSSIP:
            for each in OF_THE_WORLD.get(kind, ()):
                each(case, row)

    def _deliver(self, row: Row, job: Job) -> None:
        """A consumer has received a job."""
        case = self.case
        serve = client_events.on_deliver(case, row, job)
        self._deliveries += 1
        self._distinct += job.deliveries == 1
        safety.on_deliver(case, row, job)
        durability.on_deliver(case, row, job)
        replies.on_deliver(case, row, job)
        request_options.on_deliver(case, row)
        if serve is None:
            self._miss_serve(row)
            serve = duplicates.unseen_serve(case, row, job)
        workers.on_deliver(case, row, serve)
        held.on_deliver(case, row, serve)
        runs.on_deliver(case, row, serve)
        counters.check(case, row, job, serve)
        snoozes.on_deliver(case, row, job, serve)
        liveness.on_deliver(case, job, serve, self._findings)
        if job.deliveries == 1:
            client_events.note_recovery(case, job)
            duplicates.note_first(job, serve)
            unique.on_deliver(case, job)
        else:
            self._repeat(row, job, serve)

    def _miss_serve(self, row: Row) -> None:
        case = self.case
        if case.has_node_rows and not case.is_live:
            detail = f"{row.client} has it from {row.node}, which has not served it"
            case.violate("S3", detail, row.job, row.node)

    def _repeat(self, row: Row, job: Job, serve: Lease) -> None:
        """Record a duplicate and its cause."""
        case = self.case
        since = row.time if serve.before is None else serve.before.time
        cut = case.world.met_by(since, row.time, self._reach)
        found = duplicates.on_deliver(case, row, job, serve, cut)
        self._duplicates.append(found)
        if found.cause not in case.plan.expect.duplicates:
            case.violate(
                found.cause, duplicates.describe(found, case.plan.scenario), job.id, row.node
            )

    # The end of the run.

    def finish(self) -> Verdict:
        """Judge what needs the end of the run, and return the verdict."""
        case, findings = self.case, self._findings
        case.marks["cut.one_way"] = case.world.one_way_cuts()
        case.marks["reply.lost"] += sum(len(job.open_serves) for job in case.jobs.values())
        liveness.finish(case, findings)
        returns.finish(case)
        stops.judge_overdue(case)
        tables.finish(case, findings)
        timers.finish(case)
        succession.finish(case)
        workers.finish(case)
        runs.finish(case)
        giving_back.finish(case)
        self._judge_losses()
        counts = dict.fromkeys(CAUSES, 0)
        for found in self._duplicates:
            counts[found.cause] += 1
        return Verdict(
            ok=not case.violations,
            violations=tuple(case.violations),
            deliveries=self._deliveries,
            distinct=self._distinct,
            lost=len(findings.lost),
            lost_jobs=tuple(findings.lost),
            excused=len(findings.excused),
            lost_once=len(findings.lost_once),
            duplicates={cause: count for cause, count in counts.items() if count},
            records=tuple(self._duplicates),
            marks=dict(case.marks),
            metrics=measure(case, findings, self._duplicates, self._deliveries, self._distinct),
            checks=dict(case.checks),
            not_judged=not_judged(case, findings),
            notes=tuple(notes(case)),
        )

    def _judge_losses(self) -> None:
        case, findings, expect = self.case, self._findings, self.case.plan.expect
        if len(findings.lost) > expect.lost:
            for job_id in findings.lost:
                job = case.jobs[job_id]
                copies = 0 if job.options is None else job.options.replicate
                detail = (
                    f"lost: confirmed, never delivered, on no node; faults have destroyed "
                    f"{job.destroyed} of {counted(copies, 'copy', 'copies')}"
                )
                case.violate("L1", detail, job_id)
        if expect.must_lose and not findings.lost and not findings.excused:
            case.violate("expect", "the run was to lose a job and has lost none")


def _retry(plan: Plan, number: int) -> Micros:
    retry = plan.adds[number].retry_s
    return (300 if retry is None else retry) * 1_000_000
