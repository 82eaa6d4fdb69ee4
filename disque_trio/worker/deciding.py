"""Decides how a run has ended and what happens to its job; no other module does.

Nothing here raises. Policies, texts and classes of errors are code of users, and `policies` guards
each use of them.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal

import anyio
import attrs

from disque_trio.client.errors import DisqueError
from disque_trio.statemachine.extensions import MAX_REASON
from disque_trio.terminal.counting import counted
from disque_trio.worker.context import Job, number
from disque_trio.worker.describing import describe, is_of, leaves, line_of, report_of
from disque_trio.worker.engine import records, words
from disque_trio.worker.engine.records import NEVER, SECOND, Outcome, Reason
from disque_trio.worker.exceptions import Cancel, Dead, Retry, Snooze
from disque_trio.worker.options import Decide
from disque_trio.worker.policies import (
    DEFAULT,
    CancelVerdict,
    DeadVerdict,
    Judged,
    Policy,
    RetryVerdict,
    SnoozeVerdict,
    Tries,
    judge,
    unknown_task,
)
from disque_trio.worker.protocol import Run

_ASKED: Final = (Cancel, Dead, Retry, Snooze)
How = Literal["retried", "snoozed", "released", "dead", "cancelled"]


@attrs.frozen
class End:
    """How a run has ended, unless its handler has simply returned."""

    how: How
    outcome: Outcome
    reason: str
    """A description of what has happened."""
    error: BaseException
    """The error that was raised."""
    is_expected: bool = False
    """Is it logged without a traceback?"""
    after: float = 0.0
    """The seconds until the job is delivered again."""
    broken: str = ""
    """Why the policy failed to choose; the default policy has chosen then. Empty if it did not
    fail."""

    @property
    def is_final(self) -> bool:
        """Has the job ended for good?"""
        return self.how in ("dead", "cancelled")


def is_interrupted(run: Run, error: BaseException) -> bool:
    """Is this the worker's cancellation of the run, alone or in a group with errors that it caused?
    A run that exceeded its time limit has failed, and so has one that raised a cancellation of its
    own."""
    if run.why is Reason.TOO_LONG or cancellation(error) is None:
        return False
    return run.why is not None or anyio.current_effective_deadline() == -float("inf")


def cancellation(error: BaseException) -> BaseException | None:
    """The cancellation in an error; None if there is none."""
    kind = anyio.get_cancelled_exc_class()
    return next((each for each in leaves(error) if is_of(each, kind)), None)


def failure(error: BaseException) -> BaseException | None:
    """The error without the cancellations in it; None if it contains nothing else."""
    kind = anyio.get_cancelled_exc_class()
    if is_of(error, kind):
        return None
    try:
        return error.split(kind)[1] if is_of(error, BaseExceptionGroup) else error
    except BaseException:  # a group of a class of users
        return error


def of_failure(
    run: Run,
    job: Job[Any],
    retry: Policy | Decide,
    error: BaseException,
    draw: Callable[[], float],
) -> End:
    """The end of a run that has raised this error."""
    if not _may_say(run, error):
        why = run.why.value if run.why else ""
        return End("released", records.Release(), why, error, is_expected=True)
    policy = retry if isinstance(retry, Policy) else partial(retry, job)
    tries = Tries(
        attempt=job.attempt,
        snoozes=job.snoozes,
        attempts=number(job.headers, "attempts") or None,
    )
    return _judged(run, judge(policy, error, tries, draw()), error)


def _judged(run: Run, judged: Judged, error: BaseException) -> End:
    match judged.verdict:
        case RetryVerdict(after, is_expected, why) if after > left_s(run):
            reason = f"its life ends before the next attempt, in {after:.0f} s: {why}"
            return dead(reason, error, is_expected=is_expected, broken=judged.broken)
        case RetryVerdict(after, is_expected, why) if words.is_once(run.start.id):
            reason = f"failed, and has lease 0, so it is not delivered again: {why}"
            return dead(reason, error, is_expected=is_expected, broken=judged.broken)
        case RetryVerdict(after, is_expected, why):
            outcome = retry_after(after, error)
            return End("retried", outcome, why, error, is_expected, after, judged.broken)
        case DeadVerdict(reason, is_expected):
            return dead(reason, error, is_expected=is_expected, broken=judged.broken)
        case SnoozeVerdict(after) if after > left_s(run) and run.has(words.RELEASE_DELAY):
            return dead(f"its life ends before it is due, in {after:.0f} s", error)
        case SnoozeVerdict(after):
            return End("snoozed", release_after(after), describe(error), error, True, after)
        case CancelVerdict(reason):
            return End("cancelled", records.Done(), reason, error, is_expected=True)


def of_unread(run: Run, error: DisqueError, *, may_wait: bool) -> End:
    """The end of a run whose job this worker cannot run. With `may_wait` the job waits for a newer
    worker that may be able to."""
    wait = unknown_task(run.start.nacks) if may_wait and not words.is_once(run.start.id) else None
    if wait is None or wait > left_s(run):
        return dead(line_of(error), error, is_expected=True)
    return End("retried", retry_after(wait, error), line_of(error), error, True, wait)


def dead(reason: str, error: BaseException, *, is_expected: bool = False, broken: str = "") -> End:
    """An end that makes the job dead."""
    cut = reason.encode(errors="backslashreplace")[:MAX_REASON].decode(errors="ignore").encode()
    outcome = records.Dead(cut, report_of(error))
    return End("dead", outcome, reason, error, is_expected, broken=broken)


def last_resort(run: Run, error: BaseException) -> End:
    """The end of a run whose end could not be decided: the default policy, without jitter."""
    attempt, reason = run.start.nacks + 1, describe(error)
    if attempt >= DEFAULT.attempts:
        return dead(f"failed {counted(attempt, 'time')}: {reason}", error)
    after = DEFAULT.bound(attempt)
    return End("retried", retry_after(after, error), reason, error, after=after)


def retry_after(seconds: float, error: BaseException | None = None) -> records.Retry:
    """The outcome of a failed attempt that is retried after this time."""
    report = b"" if error is None else report_of(error)
    return records.Retry(round(seconds * SECOND), report)


def release_after(seconds: float) -> records.Release:
    """The outcome of a run that does not count as an attempt; the job is redelivered after this
    time."""
    return records.Release(round(seconds * SECOND))


def left_s(run: Run) -> float:
    """The seconds until the job expires; infinity if its node has not reported that."""
    expires = run.start.expires
    return float("inf") if expires == NEVER else expires / SECOND - anyio.current_time()


def _may_say(run: Run, error: BaseException) -> bool:
    """May the error be reported to a node? After the lease is lost only a `Cancel` may, because
    another worker may have the job. Errors of a handler while the worker stops are not failures."""
    if run.why in (None, Reason.TOO_LONG):
        return True
    asked = _ASKED if run.why is Reason.SHUTDOWN else (Cancel,)
    return all(is_of(each, asked) for each in leaves(error))
