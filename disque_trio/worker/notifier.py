"""Reports events of jobs to the hooks of a worker and to `Job.on_end`. Nothing here raises."""

import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, Final, TypeVar

import attrs

from disque_trio.worker.checks import shown
from disque_trio.worker.context import Job
from disque_trio.worker.deciding import End
from disque_trio.worker.describing import describe
from disque_trio.worker.engine.records import Reason
from disque_trio.worker.events import (
    JobCancelled,
    JobDead,
    JobReleased,
    JobRetried,
    JobStarted,
    JobSucceeded,
    RunEnded,
    RunEvent,
    WorkerEvent,
)
from disque_trio.worker.hook_runner import HookRunner
from disque_trio.worker.hooks import Hooks
from disque_trio.worker.options import RESERVED, without_own
from disque_trio.worker.repeats import write_with_traceback
from disque_trio.worker.runtime import runtime

Kind = TypeVar("Kind", bound=RunEvent)
_log: Final = logging.getLogger("disque_trio.worker.hooks")


@attrs.define(eq=False)
class Notifier:
    """The reports of one worker."""

    worker: str
    hooks: Hooks
    now: Callable[[], float]
    in_threads: bool
    _announcer: HookRunner | None = attrs.field(init=False, default=None)
    _monotonic: Callable[[], float] = attrs.field(init=False, factory=lambda: runtime().monotonic)

    async def open(self, stack: AsyncExitStack) -> None:
        """Call hooks, if there are any, until the stack is left."""
        if self.hooks.declared:
            announcer = HookRunner(self.hooks, self.in_threads)
            self._announcer = await stack.enter_async_context(announcer)

    def worker_has(self, kind: type[WorkerEvent]) -> None:
        """The worker has started, or stopped."""
        if self._announcer is not None:
            self._announcer.emit(kind(at=self.now(), worker=self.worker))

    def started(self, job: Job[Any]) -> None:
        """The handler of the job is about to run."""
        announcer = self._announcer
        if announcer is not None and announcer.wants(JobStarted) and not _is_own(job):
            announcer.emit(self._event(JobStarted, job))

    def succeeded(self, job: Job[Any]) -> None:
        """The handler of the job has returned."""
        if job.ends or self._announcer is not None:
            self._ended(job, JobSucceeded)

    def interrupted(self, job: Job[Any] | None) -> None:
        """The worker has cancelled the run of the job, if it had begun."""
        if job is None:
            return
        reason = "" if job.run.why is None else job.run.why.value
        is_end = job.run.why in (None, Reason.SHUTDOWN)
        self._ended(job, JobReleased, why="stopping" if is_end else "lost", reason=reason)

    def ended(self, job: Job[Any], end: End) -> None:
        """The run of the job has ended in another way."""
        match end.how:
            case "retried":
                found = {"error": end.error, "reason": end.reason, "after": end.after}
                self._ended(job, JobRetried, **found)
            case "dead":
                self._ended(job, JobDead, error=end.error, reason=end.reason)
            case "cancelled":
                self._ended(job, JobCancelled, reason=end.reason)
            case "snoozed":
                self._ended(job, JobReleased, why="snoozed", reason=end.reason, after=end.after)
            case "released":
                self.interrupted(job)

    def _ended(self, job: Job[Any], kind: type[RunEnded], **more: Any) -> None:
        announcer = self._announcer
        if not (job.ends or (announcer is not None and announcer.wants(kind))):
            return
        duration = max(self._monotonic() - job.run.began, 0.0)
        event = self._event(kind, job, duration=duration, **more)
        for call in job.ends:
            try:
                call(event)
            except BaseException as error:
                args = shown(call), kind.__name__, describe(error)
                text = "on_end(%s) failed for %s: %s"
                write_with_traceback(_log, logging.ERROR, text, args, error)
        if announcer is not None and not _is_own(job):
            announcer.emit(event)

    def _event(self, kind: type[Kind], job: Job[Any], **more: Any) -> Kind:
        return kind(
            at=self.now(),
            worker=self.worker,
            id=job.id,
            task=job.task,
            queue=job.queue,
            key=job.key,
            attempt=job.attempt,
            headers=without_own(job.headers),
            **more,
        )


def _is_own(job: Job[Any]) -> bool:
    """Is it a job of this library?"""
    return job.task.startswith(RESERVED)
