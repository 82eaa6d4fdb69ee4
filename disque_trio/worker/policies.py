"""Retry policies: how long a failed job waits, and when it is dead.

These are pure functions; random numbers are arguments. Times are in seconds.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

import attrs

from disque_trio.terminal.counting import counted
from disque_trio.worker import checks
from disque_trio.worker.describing import describe, is_of, leaves, line_of, meant
from disque_trio.worker.exceptions import LONGEST_S, Cancel, Dead, Retry, Snooze

Errors = tuple[type[BaseException], ...]
Jitter = Literal["full", "half", "none"]
"""Waits are random in their full range (`full`), in their upper half (`half`), or fixed
(`none`)."""

_LEAST: Final = {"full": 0.0, "half": 0.5, "none": 1.0}
_JITTER: Final = checks.one_of(_LEAST)
_UNKNOWN_FIRST_S: Final = 5
UNKNOWN_LIFE_S: Final = 24 * 3600
"""How long a job waits for a worker that has its task."""
MAX_CRASHES: Final = 3


@attrs.frozen(kw_only=True)
class Policy:
    """When a failed job is retried. Subclass it and override `bound`, or use `Backoff`,
    `Polynomial` or `Fixed`. Raises `ValueError` for invalid options."""

    attempts: int = attrs.field(default=25, validator=checks.whole(1))
    """The number of attempts after which the job is dead."""
    never: Errors = attrs.field(default=(), validator=checks.errors)
    """Errors after which the job is dead immediately."""
    expected: Errors = attrs.field(default=(), validator=checks.errors)
    """Errors that are logged without a traceback."""
    jitter: Jitter = attrs.field(default="full", validator=_JITTER)

    def bound(self, attempt: int) -> float:
        """The longest wait after this attempt, in seconds; the first attempt is 1."""
        raise NotImplementedError

    def wait(self, attempt: int, draw: float) -> float:
        """The wait after this attempt, in seconds. `draw` is a random number from 0 to 1."""
        least = _LEAST[self.jitter]
        return self.bound(attempt) * (least + (1 - least) * draw)

    def longest(self) -> float:
        """The maximum sum of all waits, in seconds. Raises `ValueError` if `bound` raises or
        returns no number."""
        try:
            return sum(map(self.bound, range(1, self.attempts)))
        except Exception as error:
            text = f"retry={checks.shown(self)} has waits that cannot be added: {error!r}"
            raise ValueError(text) from error


@attrs.frozen(kw_only=True)
class Backoff(Policy):
    """Wait `base` seconds, multiplied by `factor` after each attempt, up to `most` seconds."""

    base: float = attrs.field(default=15, validator=checks.number(0))
    factor: float = attrs.field(default=2, validator=checks.number(1))
    most: float = attrs.field(default=6 * 3600, validator=checks.number(0))

    def bound(self, attempt: int) -> float:
        """The longest wait after this attempt, in seconds."""
        try:
            return min(self.base * math.pow(self.factor, attempt - 1), self.most)
        except OverflowError:
            return self.most


@attrs.frozen(kw_only=True)
class Polynomial(Policy):
    """Wait `base` seconds plus the attempt's number to the power of `power`, up to `most`
    seconds."""

    base: float = attrs.field(default=15, validator=checks.number(0))
    power: float = attrs.field(default=4, validator=checks.number(0))
    most: float = attrs.field(default=24 * 3600, validator=checks.number(0))
    jitter: Jitter = attrs.field(default="half", validator=_JITTER)

    def bound(self, attempt: int) -> float:
        """The longest wait after this attempt, in seconds."""
        try:
            return min(self.base + math.pow(attempt, self.power), self.most)
        except OverflowError:
            return self.most


def _waits(value: Iterable[float]) -> tuple[float, ...]:
    waits = tuple(value) if isinstance(value, Iterable) else ()
    if (
        isinstance(value, str | bytes)
        or not isinstance(value, Iterable)
        or not all(checks.is_number(wait) and wait >= 0 for wait in waits)
    ):
        raise ValueError(
            f"waits={checks.shown(value)} must be numbers of seconds, 0 or more, as [10, 60]"
        )
    return waits


@attrs.frozen
class Fixed(Policy):
    """Wait the listed numbers of seconds. `attempts` is one more than the number of waits."""

    waits: tuple[float, ...] = attrs.field(converter=_waits)
    attempts: int = attrs.field(init=False)
    jitter: Jitter = attrs.field(default="none", kw_only=True, validator=_JITTER)

    @attempts.default
    def _one_more(self) -> int:
        return len(self.waits) + 1

    def bound(self, attempt: int) -> float:
        """The longest wait after this attempt, in seconds."""
        return self.waits[attempt - 1]


DEFAULT: Final = Backoff()
"""The policy of a task without one, and the fallback for a broken one."""

Ask = Callable[[BaseException], float | None]
"""A policy that is a function: returns the wait in seconds; None makes the job dead."""


# Verdicts.


@attrs.frozen
class RetryVerdict:
    """The attempt has failed; retry the job."""

    after: float
    is_expected: bool = False
    reason: str = attrs.field(default="", eq=False)
    """What has failed."""


@attrs.frozen
class SnoozeVerdict:
    """The handler has raised `Snooze`; this does not count as an attempt."""

    after: float


@attrs.frozen
class DeadVerdict:
    """The job is dead."""

    reason: str
    is_expected: bool = False


@attrs.frozen
class CancelVerdict:
    """The job is no longer needed."""

    reason: str


Verdict = RetryVerdict | SnoozeVerdict | DeadVerdict | CancelVerdict


@attrs.frozen(kw_only=True)
class Tries:
    """The number of runs of a job so far."""

    attempt: int
    """The number of this attempt: 1, plus the failures before it."""
    snoozes: int = 0
    attempts: int | None = None
    """The maximum number of attempts, if the job's headers set it."""


class BrokenPolicyError(ValueError):
    """A policy has returned something other than a valid wait."""


@attrs.frozen
class Judged:
    """A verdict, and the error of the policy if it failed."""

    verdict: Verdict
    broken: str = ""
    """The error of the policy; empty if it did not fail."""


def judge(policy: Policy | Ask, error: BaseException, tries: Tries, draw: float) -> Judged:
    """The verdict for a job after this error. If an exception group contains several outcomes, the
    most severe one applies: `Dead`, then failure, then `Retry`, `Snooze` and `Cancel`. `draw` is a
    random number from 0 to 1.

    Never raises. If the policy fails, the default policy applies.
    """
    try:
        return Judged(_judge(policy, error, tries, draw))
    except BaseException as raised:  # policies and classes of errors are code of users
        broken = line_of(raised) if isinstance(raised, BrokenPolicyError) else describe(raised)
    try:
        return Judged(_judge(DEFAULT, error, tries, draw), broken)
    except BaseException:  # a `Retry` whose `after` was changed to something other than a number
        return Judged(_failed(DEFAULT, error, tries, draw, is_expected=False), broken)


def _judge(policy: Policy | Ask, error: BaseException, tries: Tries, draw: float) -> Verdict:
    error = meant(error)
    never, expected = (policy.never, policy.expected) if isinstance(policy, Policy) else ((), ())
    dead, rest = _split(error, (Dead, *never))
    if dead is not None:
        return DeadVerdict(describe(dead), _split(dead, (Dead, *expected))[1] is None)
    assert rest is not None
    asked, failure = _split(rest, (Retry, Snooze, Cancel))
    if failure is not None:
        is_expected = _split(failure, expected)[1] is None
        return _failed(policy, failure, tries, draw, is_expected=is_expected)
    assert asked is not None
    return _as_asked(policy, asked, tries, draw)


def _as_asked(policy: Policy | Ask, error: BaseException, tries: Tries, draw: float) -> Verdict:
    parts = leaves(error)
    for each in parts:
        if wrong := _wrong(each):
            return _failed(policy, each, tries, draw, is_expected=False, why=wrong)
    retries = [each for each in parts if is_of(each, Retry)]
    if retries:
        waits = [each.after for each in retries if each.after is not None]
        after = max(waits, default=None)
        return _failed(policy, retries[0], tries, draw, after=after, is_expected=True)
    snoozes = [each for each in parts if is_of(each, Snooze)]
    if not snoozes:
        return CancelVerdict(line_of(parts[0]))
    for each in snoozes:
        if each.most is not None and tries.snoozes >= each.most:
            why = f"{describe(each)}, but most={each.most} of Snooze allows no further one"
            return _failed(policy, each, tries, draw, is_expected=True, why=why)
    return SnoozeVerdict(_chosen(max(each.after for each in snoozes)))


def _wrong(error: BaseException) -> str:
    """Why a `Snooze` or `Retry` is invalid and counts as a failure: subclasses may have any
    attributes. Empty if it is valid."""
    try:
        if is_of(error, Snooze):
            if not (error.most is None or checks.is_whole(error.most)):
                return f"{describe(error)}, with most={checks.shown(error.most)}"
            _chosen(error.after)
        elif is_of(error, Retry) and error.after is not None:
            _chosen(error.after)
    except BrokenPolicyError as wrong:
        return f"{describe(error)}, whose `after` is not a wait: {wrong}"
    except BaseException as raised:
        return f"{describe(error)}, whose attributes raise: {describe(raised)}"
    return ""


def _failed(
    policy: Policy | Ask,
    error: BaseException,
    tries: Tries,
    draw: float,
    *,
    is_expected: bool,
    after: float | None = None,
    why: str = "",
) -> RetryVerdict | DeadVerdict:
    why = why or describe(error)
    if isinstance(policy, Policy):
        attempts = tries.attempts or policy.attempts
        if tries.attempt >= attempts:
            return DeadVerdict(
                f"failed {tries.attempt} of {counted(attempts, 'time')}: {why}", is_expected
            )
        if after is None:
            after = policy.wait(min(tries.attempt, policy.attempts - 1) or 1, draw)
    elif after is None:
        after = policy(error)
    if after is None:
        return DeadVerdict(why, is_expected)
    return RetryVerdict(_chosen(after), is_expected, why)


def _chosen(wait: Any) -> float:
    """The wait of a policy or handler, at most `LONGEST_S`. Raises `BrokenPolicyError` if it is
    invalid."""
    if checks.is_number(wait) and wait >= 0:
        return min(float(wait), LONGEST_S)
    raise BrokenPolicyError(f"it chose {checks.shown(wait)}: a wait must be 0 or more seconds")


def crashed(crashes: int, max_crashes: int) -> str | None:
    """Why a job is dead before it runs: this many of its runs ended without an outcome while it was
    alone in its worker (`engine.suspects`). None if it may run."""
    if crashes < max_crashes:
        return None
    times = "once" if crashes == 1 else counted(crashes, "time")
    return f"killed its worker {times} while running alone, or blocked it until its lease ended"


def unknown_task(nacks: int) -> float | None:
    """How long a job waits for a worker that has its task, in seconds; None after a day in
    total."""
    waited = _UNKNOWN_FIRST_S * (2 ** min(nacks, 30) - 1)
    if waited >= UNKNOWN_LIFE_S:
        return None
    return float(min(_UNKNOWN_FIRST_S * 2**nacks, UNKNOWN_LIFE_S - waited))


# Errors.


def _split(
    error: BaseException, kinds: Errors
) -> tuple[BaseException | None, BaseException | None]:
    """The part of an error with these classes, and the rest."""
    if is_of(error, BaseExceptionGroup):
        try:
            return error.split(kinds)
        except BaseException:  # a group of a class of users that cannot be split
            return None, error
    return (error, None) if is_of(error, kinds) else (None, error)
