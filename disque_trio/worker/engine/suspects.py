"""Suspects: jobs whose last delivery ended without an outcome, so they may have killed their
worker.

A suspect starts alone in its worker, so that no other job is affected if it kills the process again
(decision 100). Before it starts, the running jobs have ended, and a node has confirmed the release
of held jobs. During the trial the worker takes no other jobs. The first trial of a job is short,
because most suspects are innocent: they ran beside the job that killed their worker. A later trial
lasts until the job has ended.
"""

from collections.abc import Iterable
from typing import Final

from disque_trio.worker.engine import outcomes
from disque_trio.worker.engine.records import (
    NEVER,
    RUNNING,
    SECOND,
    SETTLING,
    Drop,
    Job,
    Micros,
    Phase,
    Reason,
    Release,
    State,
)

ALONE_FROM: Final = 2
"""From this number of deliveries without an outcome, a job runs alone until it has ended. Other
jobs can cause at most this many."""
TRIAL: Final[Micros] = 1 * SECOND
"""How long a job with fewer such deliveries runs alone."""
PATIENCE: Final[Micros] = 30 * SECOND
"""After this time a suspect starts beside running jobs."""
MOST: Final = 16
"""The maximum number of jobs on trial together. It starts at one and doubles after each trial
without a crash: a power failure leaves hundreds of innocent suspects."""


def is_suspect(job: Job) -> bool:
    """Did its last delivery end without an outcome?"""
    return job.additional_deliveries > 0 and not job.is_once


def is_strict(job: Job) -> bool:
    """Must it run alone until it has ended?"""
    return job.additional_deliveries >= ALONE_FROM


def proven(additional_deliveries: int) -> int:
    """How often a job ended without an outcome while it ran alone until its end."""
    return max(additional_deliveries - ALONE_FROM, 0)


def is_on(state: State) -> bool:
    """Is a suspect on trial, or does one wait for its trial? Then no jobs are taken."""
    return bool(state.trial.running or state.trial.waiting)


def deadline(state: State) -> Micros:
    """When a trial has passed, or the wait for it ends."""
    trial = state.trial
    due = trial.ends_at if trial.running else NEVER
    if trial.waiting and trial.since + PATIENCE > state.last_turn:
        due = min(due, trial.since + PATIENCE)
    return due


def look(state: State, now: Micros) -> None:
    """End trials that have passed, choose the next suspects, and release jobs that would wait for
    them."""
    trial = state.trial
    if trial.running:
        left = [job for job in trial.running if _runs(state, job)]
        trial.running = left if now < trial.ends_at else []
        if not trial.running:
            trial.most = min(2 * trial.most, MOST)
    if trial.waiting:
        trial.waiting = [job for job in trial.waiting if state.held.get(job.id) is job]
    if not is_on(state) and state.phase in (Phase.RUNNING, Phase.QUIET):
        trial.waiting, trial.since = _next(state), now
    if is_on(state):
        for job in [job for job in state.held.values() if not job.is_once]:
            if job not in trial.waiting:
                state.out.drops.append(Drop(job.id, Reason.RELEASED))
                outcomes.settle(state, now, job, Release())


def _runs(state: State, job: Job) -> bool:
    return job.stage is RUNNING and not job.is_stuck and state.jobs.get(job.id) is job


def _next(state: State) -> list[Job]:
    if not state.trial.have_come:  # the usual case
        return []
    found = [job for job in state.held.values() if is_suspect(job)]
    state.trial.have_come = bool(found)
    if not found or is_strict(found[0]):
        return found[:1]
    size = min(state.trial.most, state.settings.concurrency)
    return [job for job in found if not is_strict(job)][:size]


def ready(state: State, now: Micros) -> Iterable[Job]:
    """The jobs that may start now. Jobs with RETRY 0 start before a suspect, because they would be
    lost with the process."""
    trial = state.trial
    if not is_on(state):
        return state.held.values()
    others = [job for job in state.held.values() if job.is_once]
    if others or trial.running or not _is_alone(state, now):
        return others
    return list(trial.waiting)


def _is_alone(state: State, now: Micros) -> bool:
    """Would the waiting suspects be alone? Jobs that have passed a trial may run beside others for
    which a short trial suffices."""
    trial = state.trial
    if now - trial.since >= PATIENCE:
        return True
    if any(link.taking is not None for link in state.links.values()):
        return False
    has_strict = any(map(is_strict, trial.waiting))
    for job in state.jobs.values():
        if job.stage is RUNNING and not job.is_stuck:
            if has_strict or not is_suspect(job):
                return False
        elif job.stage is SETTLING and not job.tries:
            return False
    return True


def began(state: State, now: Micros, job: Job) -> None:
    """A job has started."""
    trial = state.trial
    if job in trial.waiting:
        trial.waiting.remove(job)
        trial.running.append(job)
        trial.ends_at = NEVER if is_strict(job) else now + TRIAL
        trial.is_expecting = True


def came(state: State, jobs: list[Job]) -> None:
    """Jobs have arrived. While suspects arrive, no more jobs are taken than go on trial."""
    if any(map(is_suspect, jobs)):
        state.trial.have_come = True
    elif state.trial.is_expecting:
        state.trial.is_expecting, state.trial.most = False, 1


def most(state: State, count: int) -> int:
    """The number of jobs to request, if there is room for `count`."""
    return min(count, state.trial.most) if state.trial.is_expecting else count
