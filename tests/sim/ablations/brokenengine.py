"""Ways to break the engine of the worker library (see `test_ablations`)."""

from collections.abc import Sequence
from typing import Any

from disque_trio.worker.engine import engine, fetching, leases, order, outcomes, pace, suspects
from disque_trio.worker.engine.records import (
    NEVER,
    Done,
    Job,
    Micros,
    Outcome,
    Phase,
    State,
    Why,
)
from disque_trio.worker.engine.stages import Stage
from tests.sim.ablations import conditions
from tests.sim.ablations.broken import Patch, nothing

TROUBLED = conditions.shipped("workers-engine", first=4)
CALM = conditions.shipped("workers-engine-calm")
PREFETCH = conditions.shipped("workers-engine-prefetch")


def failures_acknowledged(patch: Patch) -> None:
    """Whatever the outcome of a run, the worker acknowledges the job."""
    intact = outcomes.finished

    def finished(state: State, now: Micros, job: Job, outcome: Outcome | None) -> None:
        intact(state, now, job, Done() if outcome is not None else None)

    patch.setattr(outcomes, "finished", finished)


def leases_never_end(patch: Patch) -> None:
    """The worker does not notice that a lease is over, and gives the job back all the same."""
    intact = leases.lose

    def lose(state: State, job: Job, why: Why) -> None:
        if why is Why.LEASE_OVER:
            job.end = NEVER
        else:
            intact(state, job, why)

    patch.setattr(leases, "lose", lose)


def begun_without_margin(patch: Patch) -> None:
    """A job begins however little of its lease is left."""
    patch.setattr(leases, "has_margin", lambda _job, _now: True)
    patch.setattr(leases, "lose", nothing)


def counted_from_the_reading(patch: Patch) -> None:
    """A lease counts from when its reply was read, though the process may have been stopped."""
    patch.setattr(leases, "base", lambda _state, now: now)


def taken_without_limit(patch: Patch) -> None:
    """The worker asks for more jobs than it may hold."""
    patch.setattr(fetching, "room", lambda _state, _now: 20)
    patch.setattr(fetching, "room_of", lambda _state, _now, _queue: 20)


def held_by_number(patch: Patch) -> None:
    """The worker holds as many jobs as it may, however slow they are."""
    patch.setattr(pace, "prefetch", lambda _state, _now, queue: queue.prefetch)


def not_renewed_while_stopping(patch: Patch) -> None:
    """Leases are not renewed once the worker is to stop."""
    intact = leases.renew

    def renew(state: State, now: Micros, jobs: Sequence[Job]) -> None:
        if state.phase is Phase.RUNNING:
            intact(state, now, jobs)
        else:
            for job in jobs:
                job.renew_at = NEVER

    patch.setattr(leases, "renew", renew)


def running_beyond_leases(patch: Patch) -> None:
    """Leases are not renewed, and handlers go on when these are over."""

    def renew(_state: State, _now: Micros, jobs: Sequence[Job]) -> None:
        for job in jobs:
            job.renew_at = NEVER

    patch.setattr(leases, "renew", renew)
    leases_never_end(patch)


def renewed_at_the_end(patch: Patch) -> None:
    """Leases are renewed when they are over."""
    patch.setattr(leases, "SIGNS", 1)


def given_up_asking(patch: Patch) -> None:
    """After its fifth GETJOB the worker asks for no more jobs."""
    intact = fetching.ask

    def ask(state: State, now: Micros) -> None:
        if vars_of(state).setdefault("asked", 0) < 5:
            before = len(state.out.sends)
            intact(state, now)
            vars_of(state)["asked"] += len(state.out.sends) > before

    counts: dict[State, dict[str, int]] = {}

    def vars_of(state: State) -> dict[str, int]:
        return counts.setdefault(state, {})

    patch.setattr(fetching, "ask", ask)


def stopping_without_end(patch: Patch) -> None:
    """A worker that stops waits for its handlers, however long they take."""

    def abort(_self: Any, _now: Micros) -> None:
        _self.state.phase, _self.state.phase_ends = Phase.ABORTING, NEVER

    patch.setattr(engine.Engine, "_abort", abort)


def forgotten_when_stopping(patch: Patch) -> None:
    """A worker that stops forgets what it holds, and gives nothing back."""

    def release(state: State, _now: Micros) -> None:
        for job in list(state.held.values()):
            leases.forget(state, job)

    patch.setattr(fetching, "release", release)


def suspects_beside_others(patch: Patch) -> None:
    """A job that may have ended its worker begins beside others."""
    patch.setattr(suspects, "is_suspect", lambda _job: False)


def begun_before_others_are_back(patch: Patch) -> None:
    """A suspect does not wait until a node has confirmed that other jobs are given back."""

    def is_alone(state: State, _now: Micros) -> bool:
        return not any(job.stage is Stage.RUNNING for job in state.jobs.values())

    patch.setattr(suspects, "_is_alone", is_alone)


def begun_as_they_come(patch: Patch) -> None:
    """Held jobs begin in the order in which they came, whatever their queues."""
    patch.setattr(order, "arranged", lambda _state, jobs: iter(jobs))
