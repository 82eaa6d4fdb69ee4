"""A13: members of a flow run when their predecessors are done."""

from typing import Final

from disque_trio.sim.scenarios.apps import AppCall, Micros
from disque_trio.testing.apps.checkers.continuations import RETURNS, check_once, is_in_hand
from disque_trio.testing.apps.checkers.history import History, JobRecord

DEADLINE: Final[Micros] = 180_000_000
"""The deadline of flows in these apps."""
_LATE: Final[Micros] = 120_000_000
"""A coordinator that has lost its worker receives its tokens a minute later, possibly more than
once."""
_UNDER_WAY: Final[Micros] = 5_000_000
"""For this long a look that started before the cancellation of a flow may add members."""


def check(history: History) -> None:
    """Check each flow."""
    for call in history.plan.calls:
        if call.kind == "flow":
            jobs = [history.jobs[job.number] for job in call.jobs]
            for job in jobs:
                before = [jobs[place] for place in job.plan.after]
                _check_order(history, job, before)
                _check_end(history, call, job, before)
                check_once(history, job, "A13")


def _check_order(history: History, job: JobRecord, before: list[JobRecord]) -> None:
    for each in before if job.runs else ():
        ended = min(_done_at(each), default=None)
        if ended is None or ended > job.runs[0].at:
            text = f"{job.name} runs, and {each.name} before it is not done"
            history.violate("A13", text, job.runs[0].at, job.runs[0].job)


def _done_at(job: JobRecord) -> list[Micros]:
    """When its handler returned, in runs that may be done."""
    return [run.acted_at for run in job.runs if run.acted_at is not None and run.action in RETURNS]


def _check_end(history: History, call: AppCall, job: JobRecord, before: list[JobRecord]) -> None:
    first = call.jobs[0].number
    since, cancelled = history.flows.get(first), history.cancelled.get(first)
    if cancelled is not None:
        for id in job.ids:
            held = history.held.get(id, 0)
            if held > cancelled + _UNDER_WAY and history.is_calm(cancelled - _UNDER_WAY, held):
                late = (held - cancelled) / 1e6
                text = f"{job.name} is added {late:.3f} s after its flow was cancelled"
                history.violate("A13", text, held, id)
    elif since is not None and not call.cancel_s and not job.runs:
        done = [_acked_at(history, each) for each in before]
        ready = max((at for at in done if at is not None), default=since)
        if None not in done and ready < since + DEADLINE - _LATE:
            text = f"{job.name} never runs, and all members before it are done"
            history.violate("A13", text, ready, job.ids[0] if job.ids else "")


def _acked_at(history: History, job: JobRecord) -> Micros | None:
    """When it was done, if that is final."""
    if is_in_hand(history, job):
        return None
    done = [run.ended_at for run in job.runs if run.outcome == "done" and run.action in RETURNS]
    return min((at for at in done if at is not None), default=None)
