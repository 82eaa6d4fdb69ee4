"""The current state of a worker, for operators and monitoring: state, health, running jobs."""

import math
import os
import socket
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from disque_trio import __version__
from disque_trio.system import rss_bytes
from disque_trio.terminal.counting import counted
from disque_trio.worker.engine.records import NEVER, SECOND, Job, Micros, Phase, Stage, State
from disque_trio.worker.runtime import runtime
from disque_trio.worker.times import RunTimes, TaskTimes

if TYPE_CHECKING:
    from disque_trio.worker.slots import Slot  # readers of reports run no jobs

LATELY_S: Final = 15.0
"""A worker is healthy if a node has answered within this time. A worker that takes jobs receives an
answer at least every ten seconds, even if there are no jobs."""
MOST_JOBS: Final = 50
"""The number of running jobs in a report, the oldest first."""
_LAGS: Final = 10


@attrs.frozen(kw_only=True)
class RunningJob:
    """A running job. Times are in seconds."""

    id: str
    task: str
    """Empty if its body has not been read."""
    queue: str
    age_s: float
    """Seconds since its run started here."""
    lease_s: float | None
    """The rest of its lease in seconds; None if it has none, 0 if it is lost."""


@attrs.frozen(kw_only=True)
class Report:
    """The state of a worker at one moment."""

    name: str
    host: str
    pid: int
    version: str
    app: str
    state: str
    """`starting`, `running`, `quiet`, `draining`, `aborting` or `stopped`."""
    healthy: bool
    why: str
    """Why it is healthy or not."""
    node: str
    """The node from which it takes jobs; empty for none."""
    queues: list[str]
    slots: int
    """The number of jobs that it runs at the same time at most."""
    busy: int
    """The number of running jobs."""
    held: int
    """The number of jobs that were delivered and have not started."""
    unsettled: int
    """The number of jobs that have ended and whose outcome no node has confirmed."""
    stuck: int
    """The number of handlers that do not end although they were cancelled."""
    ended: int
    """The number of jobs that have ended since it started."""
    answered_s: float | None
    """Seconds since a node answered last; None if none has."""
    lag_s: float
    """The maximum delay of the event loop in the last ten seconds."""
    rss_bytes: int
    up_s: float
    jobs: list[RunningJob]
    """The oldest running jobs, at most `MOST_JOBS`."""
    tasks: Sequence[TaskTimes] = ()
    """The run times of jobs in the last five to ten minutes."""


@attrs.define(eq=False, kw_only=True)
class DriverStats:
    """Statistics of a driver, for reports."""

    name: str = ""
    app: str = ""
    began: float = attrs.field(factory=lambda: runtime().monotonic())
    answered: Micros = -1
    """When a node answered last; -1 if none has."""
    ended: int = 0
    """The number of jobs that have ended."""
    times: RunTimes = attrs.Factory(RunTimes)
    """The run times of jobs."""
    lags: deque[float] = attrs.field(factory=lambda: deque([0.0], _LAGS))
    """The latest delays of the event loop, in seconds."""


def make_report(
    stats: DriverStats, state: State, at_work: "Mapping[bytes, Slot]", now: Micros
) -> Report:
    """The report of a worker at the time `now`."""
    healthy, why = _health(stats, state, now)
    answered = None if stats.answered < 0 else _seconds(now - stats.answered)
    stages = [job.stage for job in state.jobs.values()]
    return Report(
        name=stats.name,
        host=socket.gethostname(),
        pid=os.getpid(),
        version=__version__,
        app=stats.app,
        state=_state(stats, state),
        healthy=healthy,
        why=why,
        node=state.home,
        queues=[_text(name) for name in state.queues],
        slots=state.settings.concurrency,
        busy=len(at_work),
        held=stages.count(Stage.HELD),
        unsettled=stages.count(Stage.SETTLING) + stages.count(Stage.WAITING),
        stuck=sum(slot.is_stuck for slot in at_work.values()),
        ended=stats.ended,
        answered_s=answered,
        lag_s=round(max(stats.lags), 3),
        rss_bytes=rss_bytes(),
        up_s=round(runtime().monotonic() - stats.began, 1),
        jobs=_running(state, at_work, now),
        tasks=stats.times.lately(),
    )


def _state(stats: DriverStats, state: State) -> str:
    if state.phase is Phase.RUNNING and stats.answered < 0:
        return "starting"
    return state.phase.name.lower()


def _health(stats: DriverStats, state: State, now: Micros) -> tuple[bool, str]:
    """A worker that is quiet or stopping is healthy. Any other worker is healthy if a node has
    answered lately, or if it runs jobs whose leases last."""
    if state.phase is not Phase.RUNNING:
        return True, f"the worker {state.phase.value}"
    silence = _seconds(now - stats.answered)
    if stats.answered >= 0 and silence <= LATELY_S:
        return True, f"a node answered {silence} s ago"
    since = f"for {silence} s" if stats.answered >= 0 else "yet"
    live = sum(job.stage is Stage.RUNNING and _lease(job, now) != 0 for job in state.jobs.values())
    if live:
        leases = f"{counted(live, 'running job has', 'running jobs have')} a valid lease"
        return True, f"no node has answered {since}, but {leases}"
    return False, f"no node has answered {since}"


def _running(state: State, at_work: "Mapping[bytes, Slot]", now: Micros) -> list[RunningJob]:
    clock = runtime().monotonic()
    found = []
    for id, slot in at_work.items():
        run, job = slot.run, state.jobs.get(id)
        if run is not None:
            found.append(
                RunningJob(
                    id=_text(id),
                    task=run.task,
                    queue=_text(run.start.queue),
                    age_s=round(clock - run.began, 3),
                    lease_s=0.0 if job is None else _lease(job, now),
                )
            )
    return sorted(found, key=lambda job: -job.age_s)[:MOST_JOBS]


def _lease(job: Job, now: Micros) -> float | None:
    if job.lost is not None:
        return 0.0
    return None if job.end == NEVER else max(_seconds(job.end - now), 0.0)


def _seconds(duration: Micros) -> float:
    return math.floor(duration / SECOND * 1000) / 1000


def _text(name: bytes) -> str:
    return name.decode(errors="backslashreplace")
