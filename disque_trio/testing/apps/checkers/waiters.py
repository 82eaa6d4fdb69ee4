"""A8: every wait for a result ends."""

from typing import Final

from disque_trio.sim.scenarios.apps import Micros
from disque_trio.testing.apps.checkers.history import NEVER, History, JobRecord, Wait

_SOON: Final[Micros] = 1_000_000


def check(history: History) -> None:
    """Check each wait."""
    calls = {job.number: call for call in history.plan.calls for job in call.jobs}
    for wait in history.waits:
        call = calls[wait.number]
        jobs = [history.jobs[job.number] for job in call.jobs]
        of_chain = call.kind == "chain"
        if wait.kind == "result" and not of_chain:
            jobs = [history.jobs[wait.number]]
        jobs = [history.owner(job) for job in jobs]
        end = _end_of_chain(history, jobs) if of_chain else max(_end(history, job) for job in jobs)
        _check(history, wait, end, jobs[-1])


def _check(history: History, wait: Wait, end: Micros, job: JobRecord) -> None:
    what = f"who waits for the {wait.kind} of {job.name}"
    if wait.reported_at is None:
        if end < NEVER and not wait.is_gone:
            history.violate("A8", f"{what} is never told", end, job.id)
        return
    if wait.how.startswith("undocumented"):
        history.violate("A8", f"{what} is told {wait.how}", wait.reported_at, job.id)
    if not history.is_calm(wait.at, wait.reported_at):
        return
    right = _right(job, end)
    if right not in ("", wait.how) and wait.kind == "result" and wait.number == job.number:
        history.violate("A8", f"{what} is told {wait.how}, not {right}", wait.reported_at, job.id)
    if end < NEVER and wait.reported_at > max(end, wait.at) + _SOON:
        text = f"{what} is told {(wait.reported_at - end) / 1e6:.3f} s after the end: {wait.how}"
        history.violate("A8", text, wait.reported_at, job.id)


def _right(job: JobRecord, end: Micros) -> str:
    """The correct end of the wait for a single job; empty if there are several."""
    last = [run for run in job.runs if run.ended_at == end]
    if not last or job.call.kind not in ("single", "many"):
        return ""
    if last[0].outcome == "dead":
        return "JobFailedError"
    return "value" if last[0].action in ("return", "block") else ""


def _end(history: History, job: JobRecord) -> Micros:
    """When the library, or otherwise a node, reported the end of the job."""
    ends = [run.ended_at for run in job.runs if run.ended_at and _is_final(run.outcome, run.action)]
    ends += [history.dead[id] for id in job.ids if id in history.dead]
    return min(ends, default=NEVER)


def _is_final(outcome: str, action: str) -> bool:
    return outcome == "dead" or (outcome == "done" and action != "snooze")


def _end_of_chain(history: History, jobs: list[JobRecord]) -> Micros:
    """The end of its last step, or of the first step without success."""
    for job in jobs:
        end = _end(history, job)
        failed = any(run.outcome == "dead" or run.action == "cancel" for run in job.runs
                     if run.ended_at == end)  # fmt: skip
        if failed or any(history.dead.get(id) == end for id in job.ids) or job is jobs[-1]:
            return end
    return NEVER
