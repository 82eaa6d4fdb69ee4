"""A6 and A7: continuations of jobs and batches."""

import itertools
from collections import Counter
from typing import Final

from disque_trio.sim.scenarios.apps import Micros
from disque_trio.terminal.counting import counted
from disque_trio.testing.apps.checkers.history import (
    NEVER,
    SLACK,
    History,
    JobRecord,
    RunRecord,
)
from disque_trio.worker.options import RESERVED

DEADLINE: Final[Micros] = 120_000_000
"""The deadline of batches with `then` in these apps."""
RETURNS: Final = ("return", "block", "late", "stubborn", "unencodable")


def check(history: History) -> None:
    """Check each chain, and each batch with a continuation."""
    for call in history.plan.calls:
        jobs = [history.jobs[job.number] for job in call.jobs]
        if call.kind == "chain" and jobs[0].is_own:
            for one, following in itertools.pairwise(jobs):
                _check_step(history, one, following)
        elif call.kind == "then":
            _check_then(history, jobs[:-1], jobs[-1])
    for id, (state, queue) in history.left.items():
        if queue.startswith(RESERVED):
            history.violate("A7", f"{queue} is not empty: {state}", history.over_at, id)


def _check_step(history: History, one: JobRecord, following: JobRecord) -> None:
    returned = [run for run in one.runs if run.acted_at is not None and run.action in RETURNS]
    done = [run for run in returned if run.outcome == "done"]
    if following.runs and not returned:
        text = f"{following.name} runs, and {one.name} before it was not done"
        history.violate("A6", text, following.runs[0].at, following.runs[0].job)
    if done and not following.runs and not is_in_hand(history, one):
        text = f"{one.name} is done, and the next step of its chain, {following.name}, never runs"
        history.violate("A6", text, done[0].ended_at or 0, one.id)
    check_once(history, following, "A6")


def is_in_hand(history: History, job: JobRecord) -> bool:
    """Does a node have a job of it that has not ended?"""
    return any(id in history.left for id in job.ids)


def check_once(history: History, job: JobRecord, name: str) -> None:
    """Check that it was added once, in times without faults."""
    ids = list(dict.fromkeys(run.job for run in job.runs))
    if len(ids) > 1 and "snooze" not in [run.action for run in job.runs]:
        first, last = job.runs[0], job.runs[-1]
        if history.is_calm(first.at - 5_000_000, last.at):
            history.violate(
                name, f"{job.name} was added {counted(len(ids), 'time')}", last.at, ids[1]
            )


def _check_then(history: History, members: list[JobRecord], then: JobRecord) -> None:
    added = [job for job in members if job.added_at is not None]
    if len(added) < len(members):
        return  # the producer ended earlier, or a member was rejected
    owners = [history.owner(job) for job in members]
    ends = [_ended_at(history, job) for job in owners]
    if not then.runs:
        if max(ends) < NEVER:
            numbers = ", ".join(str(job.number) for job in members)
            text = f"{then.name} never runs, and all members of its batch ({numbers}) have ended"
            history.violate("A7", text, max(ends), members[0].id)
        return
    check_once(history, then, "A7")
    begins = then.runs[0].at
    _check_reported(history, members, then)
    if then.reported.get("late"):
        return
    for job, ended in zip(owners, ends, strict=True):
        last = max((run.acted_at or run.at for run in _own_runs(history, job)), default=0)
        if ended == NEVER or last > begins + SLACK:
            text = f"{then.name} runs before {job.name}, a member of its batch, has ended"
            history.violate("A7", text, begins, then.runs[0].job)


def _check_reported(history: History, members: list[JobRecord], then: JobRecord) -> None:
    """Check the outcomes of members that the continuation receives."""
    begins = then.runs[0].at
    if then.reported.get("late") and begins < then.call.at + DEADLINE:
        text = f"{then.name} is told of late members {(begins - then.call.at) / 1e6:.3f} s after "
        history.violate("A7", f"{text}the batch was added", begins, then.runs[0].job)
    if not all(job.is_own for job in members) or not history.is_calm(then.call.at, begins):
        return
    states = Counter(_state(history, job) for job in members)
    if then.reported != states and not then.reported.get("late"):
        reported, right = dict(sorted(then.reported.items())), dict(sorted(states.items()))
        text = f"{then.name} is told that its members ended {reported}, not {right}"
        history.violate("A7", text, begins, then.runs[0].job)


def _state(history: History, job: JobRecord) -> str:
    if any(id in history.dead for id in job.ids):
        return "dead"
    if not job.runs:
        return "merged"  # another job had its key or replaced it
    last = [run for run in job.runs if run.outcome == "done"]
    return "cancelled" if last and last[-1].action == "cancel" else "done"


def _own_runs(history: History, job: JobRecord) -> list[RunRecord]:
    """The runs that no fault has caused."""
    return [run for run in job.runs if history.is_calm(job.runs[0].at, run.at)]


def _ended_at(history: History, job: JobRecord) -> Micros:
    """When the last of its ids ended."""
    ends = [
        at
        for id in job.ids
        for at in (history.acked.get(id), history.dead.get(id), history.expired.get(id))
        if at is not None
    ]
    return NEVER if not ends or is_in_hand(history, job) else max(ends)
