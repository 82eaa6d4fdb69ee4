"""A3: the outcomes of runs. The rules are those of docs/worker.md, implemented a second time,
independently of the library."""

from typing import Final

from disque_trio.sim.scenarios.apps import AppTask, HandlerAction, Micros
from disque_trio.terminal.counting import counted
from disque_trio.testing.apps.checkers.history import History, JobRecord, RunRecord

SECOND: Final = 1_000_000
MOST_S: Final = 20.0
"""The longest wait of policies that grow."""
_FAILURES: Final = (
    "error", "group", "cancelled", "base", "generator-exit", "exit", "mute", "surrogate",
)  # fmt: skip

_WANTED: Final = {
    **dict.fromkeys(("return", "late", "stubborn", "block", "cancel"), "done"),
    "dead": "dead",
}


def check(history: History) -> None:
    """Check each run that has ended."""
    for job in history.jobs.values():
        failures = 0
        for run in job.runs:
            if run.attempt > failures + 1 and history.is_calm(
                job.runs[0].at, run.at, at_nodes=True
            ):
                text = f"run {run.place + 1} of {job.name} is called attempt {run.attempt} after "
                history.violate("A3", f"{text}{counted(failures, 'failure')}", run.at, run.job)
            _check_outcome(history, job, run)
            failures += run.outcome in ("retry", "raised", "interrupted") or run.is_cut_off


def _check_outcome(history: History, job: JobRecord, run: RunRecord) -> None:
    if run.ended_at is None or run.why not in ("", "TOO_LONG") or run.outcome == "interrupted":
        return
    action = _action_of(job, run)
    wrong = _wrong(job.task, run, action)
    if wrong and not _has_no_place(history, job, run):
        history.violate("A3", f"{_did(job, run)}: {wrong}", run.ended_at, run.job)


def _has_no_place(history: History, job: JobRecord, run: RunRecord) -> bool:
    """Did no node accept the continuation, so that the run counts as failed?"""
    is_alone = job.call.kind in ("single", "many") and not job.task.has_result
    has_returned = _WANTED.get(run.action) == "done" and run.outcome in ("retry", "dead")
    return has_returned and not is_alone and not history.is_calm(run.at, run.ended_at or run.at)


def _did(job: JobRecord, run: RunRecord) -> str:
    what = "ran too long" if run.why == "TOO_LONG" else f"did '{run.action}'"
    return f"run {run.place + 1} of {job.name} {what} at attempt {run.attempt}"


def _action_of(job: JobRecord, run: RunRecord) -> HandlerAction:
    actions = job.plan.actions
    return actions[min(run.place, len(actions) - 1)] if actions else HandlerAction()


def _wrong(task: AppTask, run: RunRecord, action: HandlerAction) -> str:
    """The error in the outcome; empty if there is none."""
    found = run.outcome + (f" after {run.text} us" if run.outcome == "retry" else "")
    if run.outcome == "raised":
        return f"the library raised {run.text}"
    if run.outcome == "retry" and run.delay is None:
        return "it is tried again without a delay"
    if run.why == "TOO_LONG":
        wrong = _wrong_failure(task, run, found)
        if not wrong or run.acted_at is None:
            return wrong  # otherwise it was too late to cancel, and its own outcome applies
    wanted = _WANTED.get(run.action)
    if wanted is not None:
        return "" if run.outcome == wanted else f"{found}, not {wanted}"
    if run.action == "retry":
        return _wrong_failure(task, run, found, round(action.after_s * SECOND))
    is_failure = run.action in _FAILURES or (run.action == "kill" and task.executor == "process")
    return _wrong_failure(task, run, found) if is_failure else ""


def _wrong_failure(task: AppTask, run: RunRecord, found: str, asked: Micros | None = None) -> str:
    if run.outcome not in ("retry", "dead"):
        return f"{found}, though it has failed"
    if task.policy in ("raises", "nonsense"):
        is_ok = run.outcome == "dead" or asked == run.delay or (run.delay or 0) > 0
        return "" if is_ok else f"{found}, which no policy has chosen"
    if run.attempt >= task.attempts:
        is_free = asked is not None and task.policy == "function"
        is_ok = run.outcome == "dead" or is_free
        return "" if is_ok else f"{found}, though it has {counted(task.attempts, 'attempt')}"
    if run.outcome == "dead":
        return f"dead, though it has {counted(task.attempts, 'attempt')}"
    least, most = (asked, asked) if asked is not None else _bounds(task, run.attempt)
    if not least - 1000 <= (run.delay or 0) <= most + 1000:
        return f"{found}; its policy says {least} to {most} us"
    return ""


def _bounds(task: AppTask, attempt: int) -> tuple[Micros, Micros]:
    """The shortest and the longest wait after this attempt."""
    wait, least = task.wait_s, 1.0
    match task.policy:
        case "backoff":
            wait, least = min(wait * 2 ** (attempt - 1), MOST_S), 0.0
        case "polynomial":
            wait, least = min(wait + attempt**2, MOST_S), 0.5
    return int(wait * least * SECOND), round(wait * SECOND)
