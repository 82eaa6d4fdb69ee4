"""What the log says of runs that have not simply returned: one line for each.

The lines go to the logger `disque_trio.worker.jobs`, with job, task, key and attempt. Handlers and
filters of loggers are code of users: what they raise is dropped.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from disque_trio.worker.context import Job
from disque_trio.worker.deciding import End
from disque_trio.worker.describing import cause_of, is_of, trace_of, traceback_of
from disque_trio.worker.exceptions import JobTimeoutError
from disque_trio.worker.runtime import runtime

_WAITING = (
    "%s; it waits %.0f s for a worker that knows it, and is dead after a day. Does this worker "
    "import the module that declares it? Is the worker up to date?%s"
)
_UNREAD = (
    "dead, not run: %s. Add it again as its task wants it, or mend the task, start the worker "
    "anew, and retry it: disque-trio jobs redrive"
)


PERIOD_S: Final = 60.0
_MOST: Final = 1000
"""Keys that are remembered."""


@attrs.define
class _Line:
    written: float
    since: int = 0


@attrs.define(eq=False)
class Repeats:
    """What has been written lately, by key."""

    _lines: dict[str, _Line] = attrs.Factory(dict)

    def due(self, key: str, now: float) -> str | None:
        """What to append to a line that is to be written now: how many were left out since the
        last one, or nothing; None if this one is left out, too. `now` is in seconds."""
        line = self._lines.get(key)
        if line is None:
            if len(self._lines) >= _MOST:
                del self._lines[next(iter(self._lines))]
            self._lines[key] = _Line(now)
            return ""
        if 0 <= now - line.written < PERIOD_S:
            line.since += 1
            return None
        since, self._lines[key] = line.since, _Line(now)
        return f" ({since} more like this since the last line)" if since else ""


@attrs.define(eq=False)
class RunLog:
    """The log of one worker."""

    _repeats: Repeats = attrs.Factory(Repeats)
    _now: Callable[[], float] = attrs.Factory(lambda: runtime().monotonic)

    def ended(self, job: Job[Any], end: End, *, has_begun: bool) -> None:
        """A run has ended so. Never raises."""
        try:
            if end.broken:
                self._broken(job, end)
            if has_begun:
                _of_run(job, end)
            else:
                self._of_unread(job, end)
        except BaseException:  # code of users, which must not change what becomes of the job
            return

    def _broken(self, job: Job[Any], end: End) -> None:
        more = self._repeats.due(f"policy {job.task}", self._now())
        if more is not None:
            text = "retry= of the task is broken, so the default policy decides: %s%s"
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
    is_told = is_of(end.error, JobTimeoutError) and cause_of(end.error) is None
    if end.is_expected or job.run.is_traced or is_told:
        job.log.log(level, text, *args)
    else:
        write_with_traceback(job.log.logger, level, text, args, end.error, job.log.extra)


def write_with_traceback(
    log: logging.Logger,
    level: int,
    text: str,
    args: tuple[object, ...],
    error: BaseException,
    extra: Mapping[str, object] | None = None,
) -> None:
    """Log a line with the traceback of an error, even of one whose traceback cannot be formatted,
    which would cost the line."""
    if log.isEnabledFor(level):
        info = type(error), error, traceback_of(error)
        record = log.makeRecord(log.name, level, __file__, 0, text, args, info, None, extra)
        record.exc_text = trace_of(error).rstrip("\n")  # formatters do not make it again
        log.handle(record)


def _line(end: End) -> tuple[int, str, tuple[object, ...]]:
    match end.how:
        case "retried":
            return logging.WARNING, "failed, runs again in %.1f s: %s", (end.after, end.reason)
        case "dead":
            return logging.ERROR, "dead: %s", (end.reason,)
        case "snoozed":
            return logging.INFO, "snoozed for %.1f s", (end.after,)
        case "cancelled":
            return logging.INFO, "cancelled: %s", (end.reason,)
    return logging.DEBUG, "interrupted: %s", (end.reason,)  # the driver logs why
