"""The judge, and what it says in the end.

`judge(plan)` gives a `Judge`. It takes rows one by one, finds what can be found at once, and says
the rest in `finish`. What it could not judge it says too: silence would read as a pass.
"""

from collections.abc import Callable
from typing import Final

import attrs

from disque_trio.sim.checkers import (
    client_events,
    cluster_liveness,
    copy_options,
    counters,
    custody,
    duplicates,
    durability,
    faults,
    history,
    liveness,
    meetings,
    messages,
    refusals,
    replies,
    returns,
    safety,
    silence,
    situations,
    stops,
    tables,
    timers,
)
from disque_trio.sim.checkers.case import Case, Violation, case_of
from disque_trio.sim.checkers.duplicates import CAUSES, Duplicate
from disque_trio.sim.checkers.findings import Findings
from disque_trio.sim.checkers.metrics import Metrics, measure
from disque_trio.sim.checkers.records import Job, Lease
from disque_trio.sim.checkers.unjudged import not_judged, notes
from disque_trio.sim.scenarios.plan import Micros, Plan
from disque_trio.tracing.rows import Row


@attrs.frozen(kw_only=True)
class Verdict:
    """What the judge says of a run."""

    ok: bool
    violations: tuple[Violation, ...]
    """In order of time."""
    deliveries: int
    distinct: int
    """Jobs that came out at all."""
    lost: int
    """Jobs that were confirmed, never came out and are nowhere, without an excuse."""
    lost_jobs: tuple[str, ...]
    excused: int
    """The same, though faults have destroyed as many copies as were promised."""
    lost_once: int
    """Jobs of at most one delivery that never came out, for which there is a cause."""
    duplicates: dict[str, int]
    """By cause."""
    records: tuple[Duplicate, ...]
    """Every duplicate."""
    marks: dict[str, int]
    """By mark (`marks.MARKS`): how often it was hit."""
    metrics: Metrics
    checks: dict[str, int]
    """By property: how often it could have failed."""
    not_judged: dict[str, str]
    """By property: why nothing can be said of it, or not of all."""
    notes: tuple[str, ...]
    """What the trace had not, and what was judged by weaker rules for that."""

    def missing(self, sometimes: tuple[str, ...]) -> tuple[str, ...]:
        """The marks among these that were not hit."""
        return tuple(name for name in sometimes if not self.marks.get(name))


def judge(plan: Plan, *, is_live: bool = False) -> "Judge":
    """A judge for a run of this plan. Live nodes do not know whether their replies arrive."""
    return Judge(plan, is_live=is_live)


class Judge:
    """Judges one run, row by row."""

    def __init__(self, plan: Plan, *, is_live: bool = False) -> None:
        self.case = case_of(plan, is_live=is_live)
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
        """The first violation so far."""
        found = self.case.violations
        return found[0] if found else None

    def see(self, row: Row) -> None:
        """The next row."""
        case = self.case
        case.now = row.time
        kind = row.kind
        # Most rows are of messages.
        if kind == "send":
            _see_sent(case, row)
        elif kind == "recv":
            _see_received(case, row)
        elif (steps := _OF_JOBS.get(kind)) is not None:
            job = case.jobs.get(row.job) or case.job(row.job)
            for step in steps:
                step(case, row, job)
            if kind == "serve" and case.is_live:
                self._deliver(row, job)
        elif kind == "get.deliver":
            self._deliver(row, case.job(row.job))
        elif row.cause not in cluster_liveness.GOSSIP:
            for each in _OF_THE_WORLD.get(kind, ()):
                each(case, row)

    def _deliver(self, row: Row, job: Job) -> None:
        """A consumer has a job in hand."""
        case = self.case
        serve = client_events.on_deliver(case, row, job)
        self._deliveries += 1
        self._distinct += job.deliveries == 1
        safety.on_deliver(case, row, job)
        durability.on_deliver(case, row, job)
        replies.on_deliver(case, row, job)
        if serve is None:
            self._miss_serve(row)
            serve = duplicates.unseen_serve(case, row, job)
        counters.check(case, row, job, serve)
        liveness.on_deliver(case, job, serve, self._findings)
        if job.deliveries == 1:
            client_events.note_recovery(case, job)
            duplicates.note_first(job, serve)
        else:
            self._repeat(row, job, serve)

    def _miss_serve(self, row: Row) -> None:
        case = self.case
        if case.has_node_rows and not case.is_live:
            detail = f"{row.client} has it from {row.node}, which has not served it"
            case.violate("S3", detail, row.job, row.node)

    def _repeat(self, row: Row, job: Job, serve: Lease) -> None:
        """A duplicate."""
        case = self.case
        since = row.time if serve.before is None else serve.before.time
        cut = case.world.met_by(since, row.time, self._reach)
        found = duplicates.on_deliver(case, row, job, serve, cut)
        self._duplicates.append(found)
        if found.cause not in case.plan.expect.duplicates:
            case.violate(
                found.cause, duplicates.describe(found, case.plan.scenario), job.id, row.node
            )

    # The end.

    def finish(self) -> Verdict:
        """The run is over."""
        case, findings = self.case, self._findings
        case.marks["cut.one_way"] = case.world.one_way_cuts()
        case.marks["reply.lost"] += sum(len(job.open_serves) for job in case.jobs.values())
        liveness.finish(case, findings)
        returns.finish(case)
        stops.judge_overdue(case)
        tables.finish(case, findings)
        timers.finish(case)
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
                    f"{job.destroyed} copies of {copies}"
                )
                case.violate("L1", detail, job_id)
        if expect.must_lose and not findings.lost and not findings.excused:
            case.violate("expect", "the run was to lose a job and has lost none")


def _retry(plan: Plan, number: int) -> Micros:
    retry = plan.adds[number].retry_s
    return (300 if retry is None else retry) * 1_000_000


def _see_sent(case: Case, row: Row) -> None:
    """What gossip says is nobody's business here; that a node asks for an answer is."""
    cause = row.cause
    if cause in cluster_liveness.GOSSIP:
        if cause == "ping":
            silence.on_ping(case, row)
        return
    messages.on_send(case, row)
    for check in _AFTER_SENDING.get(cause, ()):
        check(case, row)


def _see_received(case: Case, row: Row) -> None:
    if row.cause not in cluster_liveness.GOSSIP:
        messages.on_recv(case, row)
        if row.cause in timers.ANNOUNCEMENTS:
            timers.on_announcement(case, row)
        return
    case.note_row("gossip")
    if row.cause == "pong":
        silence.on_pong(case, row)
    if case.due_again:
        stops.judge_overdue(case)
    if case.world.healed is not None:
        case.received_from[row.node, row.peer] = None
        if row.cause == "pong":
            returns.on_pong(case, row)


# Who sees which row, in order.

_JobStep = Callable[[Case, Row, Job], None]
_Step = Callable[[Case, Row], None]


def _left(case: Case, _row: Row, job: Job) -> None:
    safety.after_leaving(case, job)


def _retained(case: Case, _row: Row, job: Job) -> None:
    safety.check_retention(case, job)


def _note_kind(case: Case, row: Row, _job: Job) -> None:
    case.note_row(row.kind)


def _forget(_case: Case, _row: Row, job: Job) -> None:
    duplicates.forget(job)


_OF_JOBS: Final[dict[str, tuple[_JobStep, ...]]] = {
    "hold": (
        _note_kind,
        custody.before_hold,
        safety.before_hold,
        durability.before_hold,
        history.on_hold,
        durability.after_hold,
        copy_options.after_hold,
        timers.after_hold,
        safety.after_hold,
        refusals.after_hold,
    ),
    "drop": (
        situations.on_drop,
        replies.note,
        custody.before_drop,
        timers.before_end,
        history.on_drop,
        _left,
        _retained,
    ),
    "queue": (
        stops.before_queue,
        replies.note,
        custody.before_queue,
        safety.before_queue,
        timers.before_queue,
        history.on_queue,
        safety.after_queue,
    ),
    "unqueue": (replies.note, history.on_unqueue, timers.after_unqueue, _left),
    "serve": (history.on_serve, safety.on_serve, duplicates.on_serve, _forget),
    "give": (safety.on_give, history.on_give),
    "acked": (situations.on_ack, replies.note, timers.before_end, history.on_acked, _left),
    "add.ok": (
        custody.before_add_ok,
        safety.before_add_ok,
        client_events.on_add_ok,
        safety.after_add_ok,
        timers.after_add_ok,
        durability.on_add_ok,
        refusals.after_add_ok,
    ),
    "ack.invoke": (replies.on_invoke, client_events.on_ack_invoke),
    "ack.ok": (replies.on_end, client_events.on_ack_ok, durability.on_ack_ok),
    "ack.unknown": (replies.on_end, client_events.on_ack_unknown),
    "fastack.invoke": (
        situations.on_fastack,
        _note_kind,
        replies.on_invoke,
        client_events.on_ack_invoke,
    ),
    "fastack.ok": (replies.on_end, client_events.on_ack_ok, durability.on_ack_ok),
    "fastack.unknown": (replies.on_end, client_events.on_ack_unknown),
    "nack.invoke": (replies.on_invoke, client_events.on_requeue_invoke),
    "enqueue.invoke": (replies.on_invoke, client_events.on_requeue_invoke),
    **dict.fromkeys(("deljob.invoke", "dequeue.invoke"), (replies.on_invoke,)),
    **dict.fromkeys(
        (
            *(f"{verb}.ok" for verb in ("nack", "enqueue", "deljob", "dequeue")),
            *(f"{verb}.unknown" for verb in ("nack", "enqueue", "deljob", "dequeue")),
            *(f"{verb}.refused" for verb in replies.VERBS),
        ),
        (replies.on_end,),
    ),
    "working.invoke": (client_events.on_working_invoke,),
    "working.ok": (
        safety.before_working_ok,
        replies.on_working_ok,
        client_events.on_working_end,
        timers.on_working,
        _forget,
    ),
    "working.refused": (client_events.on_working_end,),
    "working.unknown": (client_events.on_working_end,),
}
_AFTER_SENDING: Final[dict[str, tuple[_Step, ...]]] = {
    "deljob": (custody.after_deljob, durability.after_setack),
    "setack": (durability.after_setack,),
    "gotack": (custody.after_gotack, durability.after_setack),
    "gotjob": (durability.after_gotjob,),
}
"""By the message's name."""
_OF_THE_WORLD: Final[dict[str, tuple[_Step, ...]]] = {
    "lost": (messages.on_lost,),
    "add.invoke": (client_events.on_add_invoke,),
    "add.refused": (cluster_liveness.on_add_end, client_events.on_add_end),
    "add.unknown": (
        situations.on_add_unknown,
        cluster_liveness.on_add_end,
        client_events.on_add_end,
    ),
    "cut": (faults.on_cut,),
    "clog": (faults.on_clog,),
    "rule": (faults.on_rule,),
    **dict.fromkeys(("heal", "release", "unrule", "half-open.end"), (faults.on_heal,)),
    "half-open": (faults.on_half_open,),
    "delay": (faults.on_slow,),
    "slow": (faults.on_slow,),
    "memory": (faults.on_memory,),
    "pause-queue": (faults.on_pause_queue,),
    "crash": (situations.on_crash, durability.on_crash, stops.on_crash, faults.on_crash),
    "start": (faults.on_start, tables.on_start),
    "wipe": (faults.on_wipe,),
    "remove": (situations.on_remove, faults.on_wipe),
    "loaded": (durability.on_loaded, stops.on_loaded),
    **dict.fromkeys(durability.TROUBLES, (durability.on_trouble,)),
    "disk.flip": (durability.on_flip,),
    "pause": (faults.on_pause,),
    "resume": (faults.on_resume,),
    "clock.step": (faults.on_clock,),
    "clock.rate": (faults.on_clock,),
    "leave": (faults.on_leave,),
    "forget": (faults.on_forget, tables.on_forget),
    "meet": (tables.on_meet,),
    "nodes": (tables.on_nodes,),
    "invariant": (tables.on_invariant,),
    "unmet": (meetings.on_unmet,),
    "pairs": (meetings.on_pairs,),
    "chaos.end": (faults.on_core,),
    "heal.end": (faults.on_core,),
    "rejoin": (faults.on_rejoin,),
    "exception": (safety.on_exception,),
    "error": (safety.on_exception,),
    "end": (faults.on_end,),
}
