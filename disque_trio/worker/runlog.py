"""Logs runs: a line for each run that has not simply returned, and one at the level `done_level`
for each of the others.

The lines go to the logger `disque_trio.worker.jobs`, with job, task, key and attempt. Handlers and
filters of loggers are code of users; their errors are dropped.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import attrs

from disque_trio.worker.context import Job, logger
from disque_trio.worker.deciding import End
from disque_trio.worker.describing import cause_of, is_of
from disque_trio.worker.exceptions import JobTimeoutError
from disque_trio.worker.options import RESERVED
from disque_trio.worker.repeats import Repeats, write_with_traceback
from disque_trio.worker.runtime import runtime

_WAITING = (
    "%s; retrying in %.0f s, at a worker that has the task; the job is dead after a day. Does this "
    "worker import the module that declares the task? Is the worker up to date?%s"
)
_UNREAD = (
    "dead without a run: %s. Add the job again with valid arguments; or fix the task, restart the "
    "worker, and retry the job: disque-trio jobs redrive"
)


@attrs.define(eq=False)
class RunLog:
    """The log of one worker."""

    done_level: int = logging.DEBUG
    """The level of the line for a job that has succeeded."""
    _repeats: Repeats = attrs.Factory(Repeats)
    _now: Callable[[], float] = attrs.Factory(lambda: runtime().monotonic)

    def done(self, job: Job[Any]) -> None:
        """Log that a handler has returned. Never raises."""
        if logger.isEnabledFor(self.done_level):
            with suppress(BaseException):
                job.log.log(self.done_level, "done in %.3f s", self._now() - job.run.began)

    def ended(self, job: Job[Any], end: End, *, has_begun: bool) -> None:
        """Log the end of a run. Never raises."""
        try:
            if end.broken:
                self._broken(job, end)
            if has_begun:
                _of_run(job, end)
            else:
                self._of_unread(job, end)
        except BaseException:  # code of users, which must not change the outcome of the job
            return

    def _broken(self, job: Job[Any], end: End) -> None:
        more = self._repeats.due(f"policy {job.task}", self._now())
        if more is not None:
            text = "retry= of the task is broken, so the default policy applies: %s%s"
            job.log.error(text, end.broken, more)

    def _of_unread(self, job: Job[Any], end: End) -> None:
        if end.how == "dead":
            job.log.error(_UNREAD, end.reason)
            return
        more = self._repeats.due(f"unread {end.reason}", self._now())
        if more is not None:
            job.log.warning(_WAITING, end.reason, end.after, more)


def _of_run(job: Job[Any], end: End) -> None:
    level, text, args = _line(end)
    if end.how == "snoozed" and job.task.startswith(RESERVED):
        level = logging.DEBUG  # a collector waits for its next look
    is_timeout = is_of(end.error, JobTimeoutError) and cause_of(end.error) is None
    if end.is_expected or job.run.is_traced or is_timeout:
        job.log.log(level, text, *args)
    else:
        write_with_traceback(job.log.logger, level, text, args, end.error, job.log.extra)


def _line(end: End) -> tuple[int, str, tuple[object, ...]]:
    match end.how:
        case "retried":
            return logging.WARNING, "failed, retry in %.1f s: %s", (end.after, end.reason)
        case "dead":
            return logging.ERROR, "dead: %s", (end.reason,)
        case "snoozed":
            return logging.INFO, "snoozed for %.1f s", (end.after,)
        case "cancelled":
            return logging.INFO, "cancelled: %s", (end.reason,)
    return logging.DEBUG, "interrupted: %s", (end.reason,)  # the driver logs why
