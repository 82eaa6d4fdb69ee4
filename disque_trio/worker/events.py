"""What happens to jobs and workers, as hooks are told of it (`App.on`).

An event is a record of plain values. Its types form a tree, so that a hook may listen to a branch:
`RunEvent` is all that a worker reports of a job.
"""

from collections.abc import Mapping
from typing import Any, Literal

import attrs

Why = Literal["snoozed", "stopping", "lost"]


@attrs.frozen(kw_only=True)
class Event:
    """Something has happened."""

    at: float
    """When, in Unix seconds."""


@attrs.frozen(kw_only=True)
class JobEnqueued(Event):
    """A node has accepted a job. With a `unique` key it may be an earlier job that has the key."""

    id: str
    task: str
    queue: str
    key: str
    headers: Mapping[str, Any]
    """Those of its producer."""


@attrs.frozen(kw_only=True)
class RunEvent(Event):
    """A worker reports this of a job."""

    worker: str
    """Its name."""
    id: str
    task: str
    """Empty if the body cannot be read."""
    queue: str
    key: str | None
    attempt: int
    """1 for the first."""
    headers: Mapping[str, Any]
    """Those of its producer."""


@attrs.frozen(kw_only=True)
class JobStarted(RunEvent):
    """Its handler is about to run."""


@attrs.frozen(kw_only=True)
class RunEnded(RunEvent):
    """A run has ended, in one of the ways below."""

    duration: float
    """Seconds since the worker began with the job."""


@attrs.frozen(kw_only=True)
class JobSucceeded(RunEnded):
    """The handler has returned. The worker acknowledges the job next: if it dies before, the job
    runs again."""


@attrs.frozen(kw_only=True)
class JobRetried(RunEnded):
    """The attempt has failed, and there will be another one."""

    error: BaseException
    reason: str
    """The error in one line."""
    after: float
    """In how many seconds the job is delivered again."""


@attrs.frozen(kw_only=True)
class JobDead(RunEnded):
    """The job is not tried again. Without a `JobStarted` before, its body could not be read."""

    error: BaseException
    reason: str


@attrs.frozen(kw_only=True)
class JobCancelled(RunEnded):
    """The handler has raised `Cancel`: the job is acknowledged."""

    reason: str


@attrs.frozen(kw_only=True)
class JobReleased(RunEnded):
    """The run has ended without a result, and does not count as an attempt."""

    why: Why
    """`snoozed`: the handler asks for a later time. `stopping`: the worker stops. `lost`: the job
    belongs to another worker, or is over."""
    reason: str
    after: float = 0.0
    """In how many seconds the job is delivered again, if it was snoozed."""


@attrs.frozen(kw_only=True)
class WorkerEvent(Event):
    """A worker reports this of itself."""

    worker: str
    """Its name."""


@attrs.frozen(kw_only=True)
class WorkerStarted(WorkerEvent):
    """The lifespan has begun; the worker takes jobs next."""


@attrs.frozen(kw_only=True)
class WorkerStopped(WorkerEvent):
    """The worker has ended its last job; the lifespan ends next."""
