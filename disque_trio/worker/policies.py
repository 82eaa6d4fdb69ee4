"""What becomes of a job whose handler fails: how long it waits, and when it is dead.

Pure functions: randomness comes in as a number. Seconds.
"""

import math
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePath
from typing import Final, Literal

import attrs

from disque_trio.worker.exceptions import Cancel, Dead, Retry, Snooze

Errors = tuple[type[BaseException], ...]
Jitter = Literal["full", "half", "none"]
"""A wait is spread over all of its length, over its second half, or not."""

_LEAST: Final = {"full": 0.0, "half": 0.5, "none": 1.0}
_UNKNOWN_FIRST_S: Final = 5
UNKNOWN_LIFE_S: Final = 24 * 3600
"""How long a job waits for a worker that knows its task."""
MAX_CRASHES: Final = 5
LONGEST_TEXT: Final = 500
"""Characters of an error's text in the reason of a dead job."""


@attrs.frozen(kw_only=True)
class Policy:
    """When a failed job is tried again."""

    attempts: int = attrs.field(default=25, validator=attrs.validators.ge(1))
    """How often it is tried in all; then it is dead."""
    never: Errors = ()
    """Errors after which it is dead at once."""
    expected: Errors = ()
    """Errors that are logged without a traceback."""
    jitter: Jitter = "full"

    def bound(self, attempt: int) -> float:
        """The longest wait after this attempt; the first is 1."""
        raise NotImplementedError

    def wait(self, attempt: int, draw: float) -> float:
        """The wait after this attempt. `draw` is from 0 to 1."""
        least = _LEAST[self.jitter]
        return self.bound(attempt) * (least + (1 - least) * draw)

    def longest(self) -> float:
        """All waits together, at most."""
        return sum(map(self.bound, range(1, self.attempts)))


@attrs.frozen(kw_only=True)
class Backoff(Policy):
    """Wait `base`, then `factor` times as long each time, up to `most`."""

    base: float = attrs.field(default=15, validator=attrs.validators.ge(0))
    factor: float = attrs.field(default=2, validator=attrs.validators.ge(1))
    most: float = attrs.field(default=6 * 3600, validator=attrs.validators.ge(0))

    def bound(self, attempt: int) -> float:
        """The longest wait after this attempt."""
        try:
            return min(self.base * math.pow(self.factor, attempt - 1), self.most)
        except OverflowError:
            return self.most


@attrs.frozen(kw_only=True)
class Polynomial(Policy):
    """Wait `base` and the attempt's number to the power of `power`, up to `most`."""

    base: float = attrs.field(default=15, validator=attrs.validators.ge(0))
    power: float = attrs.field(default=4, validator=attrs.validators.ge(0))
    most: float = attrs.field(default=24 * 3600, validator=attrs.validators.ge(0))
    jitter: Jitter = "half"

    def bound(self, attempt: int) -> float:
        """The longest wait after this attempt."""
        try:
            return min(self.base + math.pow(attempt, self.power), self.most)
        except OverflowError:
            return self.most


def _waits(given: Iterable[float]) -> tuple[float, ...]:
    waits = tuple(given)
    if any(wait < 0 for wait in waits):
        raise ValueError(f"waits are 0 or more seconds: {waits}")
    return waits


@attrs.frozen
class Fixed(Policy):
    """Wait as this list says. There is one attempt more than there are waits."""

    waits: tuple[float, ...] = attrs.field(converter=_waits)
    attempts: int = attrs.field(init=False)
    jitter: Jitter = attrs.field(default="none", kw_only=True)

    @attempts.default
    def _one_more(self) -> int:
        return len(self.waits) + 1

    def bound(self, attempt: int) -> float:
        """The longest wait after this attempt."""
        return self.waits[attempt - 1]


Ask = Callable[[BaseException], float | None]
"""A policy that is a function: the wait, or None if the job is dead."""


# Verdicts.


@attrs.frozen
class Again:
    """The attempt has failed. Try again."""

    after: float
    is_expected: bool = False


@attrs.frozen
class Later:
    """The handler asks for a later time, which counts as no attempt."""

    after: float


@attrs.frozen
class Buried:
    """It is dead."""

    reason: str
    is_expected: bool = False


@attrs.frozen
class Cancelled:
    """It is not needed any more."""

    reason: str


Verdict = Again | Later | Buried | Cancelled


@attrs.frozen(kw_only=True)
class Tries:
    """How often a job has been run."""

    attempt: int
    """This one's number: the failures before it, and one."""
    snoozes: int = 0
    attempts: int | None = None
    """How often it may be tried, if the job says so itself."""


def judge(policy: Policy | Ask, error: BaseException, tries: Tries, draw: float) -> Verdict:
    """What becomes of a job after this error. Of a group the gravest part decides: death, then
    failure, then `Retry`, `Snooze` and `Cancel`. `draw` is a random number from 0 to 1."""
    never, expected = (policy.never, policy.expected) if isinstance(policy, Policy) else ((), ())
    dead, rest = _split(error, (Dead, *never))
    if dead is not None:
        return Buried(describe(dead), _split(dead, (Dead, *expected))[1] is None)
    assert rest is not None
    asked, failure = _split(rest, (Retry, Snooze, Cancel))
    if failure is not None:
        is_expected = _split(failure, expected)[1] is None
        return _failed(policy, failure, tries, draw, is_expected=is_expected)
    assert asked is not None
    return _as_asked(policy, asked, tries, draw)


def _as_asked(policy: Policy | Ask, error: BaseException, tries: Tries, draw: float) -> Verdict:
    parts = list(leaves(error))
    retries = [each for each in parts if isinstance(each, Retry)]
    if retries:
        waits = [each.after for each in retries if each.after is not None]
        after = max(waits, default=None)
        return _failed(policy, retries[0], tries, draw, after=after, is_expected=True)
    snoozes = [each for each in parts if isinstance(each, Snooze)]
    if not snoozes:
        return Cancelled(str(parts[0]))
    if any(each.most is not None and tries.snoozes >= each.most for each in snoozes):
        return _failed(policy, snoozes[0], tries, draw, is_expected=True)
    return Later(max(each.after for each in snoozes))


def _failed(
    policy: Policy | Ask,
    error: BaseException,
    tries: Tries,
    draw: float,
    *,
    is_expected: bool,
    after: float | None = None,
) -> Again | Buried:
    if isinstance(policy, Policy):
        attempts = tries.attempts or policy.attempts
        if tries.attempt >= attempts:
            reason = f"failed {tries.attempt} of {attempts} times: {describe(error)}"
            return Buried(reason, is_expected)
        if after is None:
            after = policy.wait(min(tries.attempt, policy.attempts - 1) or 1, draw)
    elif after is None:
        after = policy(error)
    return Buried(describe(error), is_expected) if after is None else Again(after, is_expected)


def crashed(additional_deliveries: int, max_crashes: int) -> str | None:
    """Why a job is dead before it is run: it was delivered too often without an answer."""
    if additional_deliveries < max_crashes:
        return None
    return (
        f"delivered {additional_deliveries} times without an answer: "
        "its workers may have died of it, or have lost their leases"
    )


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
    if isinstance(error, BaseExceptionGroup):
        return error.split(kinds)
    return (error, None) if isinstance(error, kinds) else (None, error)


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The errors of a group, and of groups in it; or this one."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from leaves(each)
    else:
        yield error


def describe(error: BaseException) -> str:
    """The error in one line: what, and where it was raised."""
    first, *others = leaves(error)
    text = str(first)[:LONGEST_TEXT]
    if not isinstance(first, Dead | Retry | Snooze):
        text = f"{type(first).__qualname__}: {text}".removesuffix(": ")
        frames = traceback.extract_tb(first.__traceback__)
        if frames:
            where = "/".join(PurePath(frames[-1].filename).parts[-2:])
            text += f" ({where}:{frames[-1].lineno} in {frames[-1].name})"
    return f"{text}, and {len(others)} more" if others else text
