"""Events of jobs and workers, which are passed to hooks (`App.on`).

An event is a record of plain values. Event types form a tree, so a hook may subscribe to a branch:
`RunEvent` is the base of all events of a job in a worker.
"""

from collections.abc import Mapping
from typing import Any, Literal

import attrs

Why = Literal["snoozed", "stopping", "lost"]


@attrs.frozen(kw_only=True)
class Event:
    """The base of all events."""

    at: float
    """The time of the event, in Unix seconds."""


@attrs.frozen(kw_only=True)
class JobEnqueued(Event):
    """A node has accepted a job. If the job has a `unique` key, `id` may be that of an earlier job
    with the key."""

    id: str
    task: str
    queue: str
    key: str
    headers: Mapping[str, Any]
    """The headers that the producer has set."""


@attrs.frozen(kw_only=True)
class RunEvent(Event):
    """An event of a job in a worker."""

    worker: str
    """The name of the worker."""
    id: str
    task: str
    """Empty if the body cannot be read."""
    queue: str
    key: str | None
    attempt: int
    """1 for the first."""
    headers: Mapping[str, Any]
    """The headers that the producer has set."""


@attrs.frozen(kw_only=True)
class JobStarted(RunEvent):
    """The handler of a job is about to run."""


@attrs.frozen(kw_only=True)
class RunEnded(RunEvent):
    """A run has ended. The subclasses describe how."""

    duration: float
    """Seconds since the worker started the run."""


@attrs.frozen(kw_only=True)
class JobSucceeded(RunEnded):
    """The handler has returned. The worker acknowledges the job next; if it dies before that, the
    job runs again."""


@attrs.frozen(kw_only=True)
class JobRetried(RunEnded):
    """The attempt has failed, and the job will be retried."""

    error: BaseException
    reason: str
    """The error in one line."""
    after: float
    """The seconds until the retry."""


@attrs.frozen(kw_only=True)
class JobDead(RunEnded):
    """The job is dead. If there was no `JobStarted`, the handler did not run: the body cannot be
    read, the task is unknown, or earlier runs crashed their workers."""

    error: BaseException
    reason: str


@attrs.frozen(kw_only=True)
class JobCancelled(RunEnded):
    """The handler has raised `Cancel`; the job is acknowledged."""

    reason: str


@attrs.frozen(kw_only=True)
class JobReleased(RunEnded):
    """The run has ended without an outcome, and does not count as an attempt."""

    why: Why
    """`snoozed`: the handler raised `Snooze`. `stopping`: the worker stops. `lost`: the lease is
    lost, or the job is over."""
    reason: str
    after: float = 0.0
    """The seconds until the job is delivered again, if it was snoozed."""


@attrs.frozen(kw_only=True)
class WorkerEvent(Event):
    """An event of a worker."""

    worker: str
    """The name of the worker."""


@attrs.frozen(kw_only=True)
class WorkerStarted(WorkerEvent):
    """The lifespan has started; the worker takes jobs next."""


@attrs.frozen(kw_only=True)
class WorkerStopped(WorkerEvent):
    """The worker's last job has ended; the lifespan ends next."""
