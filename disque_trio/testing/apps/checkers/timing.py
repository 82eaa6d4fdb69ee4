"""A4, A5 and A10: when runs start, the counts of deliveries, and snoozes."""

import itertools
from typing import Final

from disque_trio.sim.scenarios.apps import Micros
from disque_trio.terminal.counting import counted
from disque_trio.testing.apps.checkers.history import SLACK, History, JobRecord, RunRecord
from disque_trio.worker.engine.words import UNSURE

_AT_ONCE: Final[Micros] = 500_000
"""If a holder learns within this time that another one has enqueued a job, it does not enqueue
it."""


def check(history: History) -> None:
    """Check all runs of each job."""
    for job in history.jobs.values():
        for place, run in enumerate(job.runs):
            before = job.runs[:place]
            _check_beside(history, job, run, before)
            _check_price(history, job, run, [each for each in before if each.job == run.job])
        _check_snoozes(history, job)


def _check_beside(
    history: History, job: JobRecord, run: RunRecord, before: list[RunRecord]
) -> None:
    for other in before:
        since = job.call.at  # it may have been added twice
        if other.job == run.job:
            since = min(other.at, run.delivered_at)  # nodes had no later information
        ended = other.ended_at
        if ended is None or ended > run.at:
            if history.is_calm(since, run.at):
                text = f"{job.name} begins beside a run that goes on"
                history.violate("A4", text, run.at, run.job)
            continue
        if other is not before[-1] or not history.is_calm(since, run.at):
            continue
        wait = other.delay if other.outcome == "retry" else None
        if other.outcome == "raised" or (other.outcome == "retry" and wait is None):
            wait = 2 * SLACK
        if wait is not None and run.at < ended + history.shortest(wait):
            text = f"{job.name} begins {run.at - ended} us after a "
            history.violate("A4", f"{text}failure, not {wait} us", run.at, run.job)


def _check_price(history: History, job: JobRecord, run: RunRecord, before: list[RunRecord]) -> None:
    """Check the counts of deliveries. Faults of nodes and links excuse deviations, kills of workers
    do not."""
    if not history.is_calm(job.added_at or 0, run.at, at_nodes=True):
        return
    unanswered = sum(_is_unanswered(history, each, run.at) for each in before)
    races = _races(history, run)
    if run.interrupted > unanswered + races:
        text = (
            f"{job.name} was delivered {counted(run.interrupted, 'time')} without an answer, and "
            f"{unanswered} of its runs have had none"
        )
        history.violate("A5", text, run.at, run.job)
    elif run.delivery > len(before) + 1 + races:
        text = f"{job.name}: delivery {run.delivery} is its run {len(before) + 1}"
        history.violate("A5", text, run.at, run.job)


def _races(history: History, run: RunRecord) -> int:
    """How often two holders have enqueued it at the same time: both deliveries count."""
    times = [at for at in history.taken_back[run.job] if at < run.at]
    return sum(at - before < _AT_ONCE for before, at in itertools.pairwise(times))


def _is_unanswered(history: History, run: RunRecord, at: Micros) -> bool:
    """Was its outcome accepted by no node? An outcome is not accepted if its process was suspended
    until the lease ended, in the worker's view."""
    if run.ended_at is None or run.ended_at > at:
        return True
    until = run.ended_at + UNSURE
    is_late = any(run.at < each <= until for each in history.taken_back[run.job])
    return is_late or run.outcome in ("interrupted", "release", "raised")


def check_crashes(history: History) -> None:
    """Check that a job is dead because of its workers' deaths only after enough runs without an
    outcome."""
    for job in history.jobs.values():
        for id in job.ids:
            at = history.dead.get(id)
            last = [run for run in job.runs if run.job == id]
            if at is None or any(run.outcome == "dead" for run in last):
                continue
            is_calm = history.is_calm(job.added_at or 0, at, at_nodes=True)
            unanswered = sum(
                run.ended_at is None
                or run.outcome == "interrupted"
                or (not is_calm and _is_unanswered(history, run, at))
                for run in last
            )
            if unanswered < job.task.max_crashes:
                text = (
                    f"{job.name} is dead; no run of it has asked for that,"
                    f" and {unanswered} have had no answer, of {job.task.max_crashes}"
                )
                history.violate("A5", text, at, id)


def _is_cancelled(history: History, job: JobRecord) -> bool:
    """Has its producer started to cancel its flow? That ends a waiting member."""
    since = history.flows.get(job.call.jobs[0].number)
    after = round(job.call.cancel_s * 1_000_000)
    return bool(after and since is not None and since + after <= history.over_at)


def _has_ended_beside(job: JobRecord, run: RunRecord) -> bool:
    """Was another run of it, caused by a fault, done meanwhile?"""
    others = (each for each in job.runs if each is not run and each.outcome == "done")
    return any((each.ended_at or 0) >= run.at for each in others)


def _check_snoozes(history: History, job: JobRecord) -> None:
    for place, run in enumerate(job.runs):
        if run.action != "snooze" or run.acted_at is None or run.ended_at is None or run.why:
            continue
        after = round(job.plan.actions[min(place, len(job.plan.actions) - 1)].after_s * 1_000_000)
        # A producer without a reply may add a job twice: both run, each under its id.
        doubles = {each.job for each in job.runs[:place]} - {run.job}
        after_it = [each for each in job.runs[place + 1 :] if each.at >= run.ended_at]
        own = [each for each in after_it if each.job == run.job]
        later = own or [each for each in after_it if each.job not in doubles]
        name = job.name
        if not later:
            is_over = any(id in history.left or id in history.dead for id in job.ids)
            is_over = is_over or _is_cancelled(history, job) or _has_ended_beside(job, run)
            if not is_over:
                history.violate("A10", f"{name} was snoozed, and never ran again", run.ended_at,
                                run.job)  # fmt: skip
            continue
        following = later[0]
        if following.job != run.job:
            text = f"{name} was snoozed, and runs again under another id, {following.job}"
            history.violate("A10", text, following.at, run.job)
        if not history.is_calm(run.at, following.at):
            continue
        if following.at < run.ended_at + history.shortest(after):
            text = f"{name} was snoozed for {after} us, and runs after "
            history.violate("A10", f"{text}{following.at - run.ended_at}", following.at, run.job)
        # Holders in different partitions may have counted differently.
        is_counted = history.is_calm(job.added_at or 0, following.at, at_nodes=True)
        if following.attempt != run.attempt and is_counted:
            text = f"{name} was snoozed at attempt {run.attempt}, and runs as attempt "
            history.violate("A10", f"{text}{following.attempt}", following.at, run.job)
