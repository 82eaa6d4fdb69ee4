"""What becomes of a job whose handler fails: how long it waits, and when it is dead.

Pure functions: randomness comes in as a number. Seconds.
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
"""A wait is spread over all of its length, over its second half, or not."""

_LEAST: Final = {"full": 0.0, "half": 0.5, "none": 1.0}
_JITTER: Final = checks.one_of(_LEAST)
_UNKNOWN_FIRST_S: Final = 5
UNKNOWN_LIFE_S: Final = 24 * 3600
"""How long a job waits for a worker that knows its task."""
MAX_CRASHES: Final = 3


@attrs.frozen(kw_only=True)
class Policy:
    """When a failed job is retried."""

    attempts: int = attrs.field(default=25, validator=checks.whole(1))
    """The number of attempts; then the job is dead."""
    never: Errors = attrs.field(default=(), validator=checks.errors)
    """Errors after which the job is dead at once."""
    expected: Errors = attrs.field(default=(), validator=checks.errors)
    """Errors that are logged without a traceback."""
    jitter: Jitter = attrs.field(default="full", validator=_JITTER)

    def bound(self, attempt: int) -> float:
        """The longest wait after this attempt; the first is 1."""
        raise NotImplementedError

    def wait(self, attempt: int, draw: float) -> float:
        """The wait after this attempt. `draw` is from 0 to 1."""
        least = _LEAST[self.jitter]
        return self.bound(attempt) * (least + (1 - least) * draw)

    def longest(self) -> float:
        """All waits together, at most. Raises `ValueError` if `bound` is of no use."""
        try:
            return sum(map(self.bound, range(1, self.attempts)))
        except Exception as error:
            text = f"retry={checks.shown(self)} has waits that cannot be added: {error!r}"
            raise ValueError(text) from error


@attrs.frozen(kw_only=True)
class Backoff(Policy):
    """Wait `base`, multiplied by `factor` after each attempt, up to `most`."""

    base: float = attrs.field(default=15, validator=checks.number(0))
    factor: float = attrs.field(default=2, validator=checks.number(1))
    most: float = attrs.field(default=6 * 3600, validator=checks.number(0))

    def bound(self, attempt: int) -> float:
        """The longest wait after this attempt."""
        try:
            return min(self.base * math.pow(self.factor, attempt - 1), self.most)
        except OverflowError:
            return self.most


@attrs.frozen(kw_only=True)
class Polynomial(Policy):
    """Wait `base` plus the attempt's number to the power of `power`, up to `most`."""

    base: float = attrs.field(default=15, validator=checks.number(0))
    power: float = attrs.field(default=4, validator=checks.number(0))
    most: float = attrs.field(default=24 * 3600, validator=checks.number(0))
    jitter: Jitter = attrs.field(default="half", validator=_JITTER)

    def bound(self, attempt: int) -> float:
        """The longest wait after this attempt."""
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
    """Wait as listed. There is one attempt more than there are waits."""

    waits: tuple[float, ...] = attrs.field(converter=_waits)
    attempts: int = attrs.field(init=False)
    jitter: Jitter = attrs.field(default="none", kw_only=True, validator=_JITTER)

    @attempts.default
    def _one_more(self) -> int:
        return len(self.waits) + 1

    def bound(self, attempt: int) -> float:
        """The longest wait after this attempt."""
        return self.waits[attempt - 1]


DEFAULT: Final = Backoff()
"""The policy of a task that has none, or one that is broken."""

Ask = Callable[[BaseException], float | None]
"""A policy that is a function: the wait, or None if the job is dead."""


# Verdicts.


@attrs.frozen
class RetryVerdict:
    """The attempt has failed. Try again."""

    after: float
    is_expected: bool = False
    reason: str = attrs.field(default="", eq=False)
    """What has failed."""


@attrs.frozen
class SnoozeVerdict:
    """The handler asks for a later time, which counts as no attempt."""

    after: float


@attrs.frozen
class DeadVerdict:
    """It is dead."""

    reason: str
    is_expected: bool = False


@attrs.frozen
class CancelVerdict:
    """It is not needed any more."""

    reason: str


Verdict = RetryVerdict | SnoozeVerdict | DeadVerdict | CancelVerdict


@attrs.frozen(kw_only=True)
class Tries:
    """How often a job has been run."""

    attempt: int
    """This one's number: the failures before it, and one."""
    snoozes: int = 0
    attempts: int | None = None
    """How often it may be tried, if the job says so itself."""


class BrokenPolicyError(ValueError):
    """A policy did not choose a wait: it raised, or returned something else."""


@attrs.frozen
class Judged:
    """What becomes of a job, and what was wrong with the policy that should have said so."""

    verdict: Verdict
    broken: str = ""
    """Empty if nothing was."""


def judge(policy: Policy | Ask, error: BaseException, tries: Tries, draw: float) -> Judged:
    """What becomes of a job after this error. Of a group the gravest part decides: death, then
    failure, then `Retry`, `Snooze` and `Cancel`. `draw` is a random number from 0 to 1.

    Never raises. The default policy takes the place of one that is broken.
    """
    try:
        return Judged(_judge(policy, error, tries, draw))
    except BaseException as raised:  # policies and classes of errors are code of users
        broken = line_of(raised) if isinstance(raised, BrokenPolicyError) else describe(raised)
    try:
        return Judged(_judge(DEFAULT, error, tries, draw), broken)
    except BaseException:  # a `Retry` whose `after` was made something else than a number
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
    """Why what a handler asks for is none, and so a failure: a class of users may have any
    attributes. Empty if it is."""
    try:
        if is_of(error, Snooze):
            if not (error.most is None or checks.is_whole(error.most)):
                return f"{describe(error)}, with most={checks.shown(error.most)}"
            _chosen(error.after)
        elif is_of(error, Retry) and error.after is not None:
            _chosen(error.after)
    except BrokenPolicyError as wrong:
        return f"{describe(error)}, whose `after` is no wait: {wrong}"
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
    """The wait that was chosen, of which a node takes `LONGEST_S` at most. Raises
    `BrokenPolicyError`."""
    if checks.is_number(wait) and wait >= 0:
        return min(float(wait), LONGEST_S)
    raise BrokenPolicyError(
        f"it chose {checks.shown(wait)}: a wait is a number of seconds, 0 or more"
    )


def crashed(crashes: int, max_crashes: int) -> str | None:
    """Why a job is dead before it is run: so many of its runs brought no answer, and in each of
    them it was alone in its worker (`engine.suspects`)."""
    if crashes < max_crashes:
        return None
    times = "once" if crashes == 1 else counted(crashes, "time")
    return f"killed its worker {times} while running alone, or blocked it until its lease ended"


def unknown_task(nacks: int) -> float | None:
    """How long a job waits for a worker that knows its task; None after a day of that."""
    waited = _UNKNOWN_FIRST_S * (2 ** min(nacks, 30) - 1)
    if waited >= UNKNOWN_LIFE_S:
        return None
    return float(min(_UNKNOWN_FIRST_S * 2**nacks, UNKNOWN_LIFE_S - waited))


# Errors.


def _split(
    error: BaseException, kinds: Errors
) -> tuple[BaseException | None, BaseException | None]:
    """The part of these kinds, and the rest."""
    if is_of(error, BaseExceptionGroup):
        try:
            return error.split(kinds)
        except BaseException:  # a group of a class of users, which cannot be split
            return None, error
    return (error, None) if is_of(error, kinds) else (None, error)
