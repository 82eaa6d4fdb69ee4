"""Policies: how long a failed job waits, and when it is dead."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disque_trio.worker.exceptions import Cancel, Dead, Retry, Snooze
from disque_trio.worker.policies import (
    UNKNOWN_LIFE_S,
    Backoff,
    CancelVerdict,
    DeadVerdict,
    Fixed,
    Jitter,
    Policy,
    Polynomial,
    RetryVerdict,
    SnoozeVerdict,
    Tries,
    Verdict,
    crashed,
    judge,
    unknown_task,
)

draws = st.floats(0, 1)
jitters: st.SearchStrategy[Jitter] = st.sampled_from(["full", "half", "none"])
backoffs = st.builds(
    Backoff,
    attempts=st.integers(1, 40),
    base=st.floats(0, 100),
    factor=st.floats(1, 10),
    most=st.floats(0, 1e6),
    jitter=jitters,
)
polynomials = st.builds(
    Polynomial, attempts=st.integers(1, 40), power=st.floats(0, 8), jitter=jitters
)
lists = st.builds(Fixed, st.lists(st.floats(0, 1e6), max_size=9), jitter=jitters)
policies: st.SearchStrategy[Policy] = st.one_of(backoffs, polynomials, lists)


TWICE = Fixed([10, 20])


def verdict(
    error: BaseException,
    policy: Policy | Callable[[BaseException], float | None] = TWICE,
    attempt: int = 1,
    snoozes: int = 0,
    attempts: int | None = None,
) -> Verdict:
    judged = judge(policy, error, Tries(attempt=attempt, snoozes=snoozes, attempts=attempts), 1.0)
    assert not judged.broken
    return judged.verdict


# Waits.


@given(policies, st.data(), draws)
def test_a_wait_is_within_its_bound(policy: Policy, data: st.DataObject, draw: float) -> None:
    attempt = data.draw(st.integers(1, max(policy.attempts - 1, 1)))
    if policy.attempts == 1:
        return
    bound = policy.bound(attempt)

    wait = policy.wait(attempt, draw)

    assert 0 <= wait <= bound or math.isclose(wait, bound)
    assert wait >= bound / 2 * 0.999 or policy.jitter == "full"
    assert wait == bound or policy.jitter != "none"


@given(st.one_of(backoffs, polynomials), draws)
def test_waits_do_not_become_shorter(policy: Policy, draw: float) -> None:
    waits = [policy.wait(attempt, draw) for attempt in range(1, 60)]

    assert waits == sorted(waits)


@given(policies, st.lists(draws, min_size=40, max_size=40))
def test_all_waits_together_are_at_most_the_longest(policy: Policy, draw: list[float]) -> None:
    waits = [policy.wait(attempt, draw[attempt]) for attempt in range(1, policy.attempts)]

    assert sum(waits) <= policy.longest() * 1.000001


def test_a_backoff_doubles_up_to_its_limit() -> None:
    policy = Backoff(base=15, most=100, jitter="none")

    assert [policy.wait(attempt, 0.3) for attempt in (1, 2, 3, 4, 5)] == [15, 30, 60, 100, 100]


def test_a_backoff_of_many_attempts_does_not_overflow() -> None:
    assert Backoff(attempts=10_000).bound(9_999) == 6 * 3600
    assert Polynomial(attempts=10_000, power=200).bound(9_999) == 24 * 3600


def test_a_polynomial_waits_as_sidekiq_does() -> None:
    policy = Polynomial(jitter="none")

    assert [policy.wait(attempt, 0) for attempt in (1, 2, 3)] == [16, 31, 96]


def test_jitter_spreads_a_wait() -> None:
    assert [Backoff(jitter="full").wait(1, draw) for draw in (0, 0.5, 1)] == [0, 7.5, 15]
    assert [Backoff(jitter="half").wait(1, draw) for draw in (0, 0.5, 1)] == [7.5, 11.25, 15]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Backoff(attempts=0),
        lambda: Backoff(base=-1),
        lambda: Backoff(factor=0.5),
        lambda: Fixed([1, -1]),
        lambda: Retry(after=-1),
        lambda: Snooze(math.inf),
    ],
)
def test_what_cannot_be_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"-1|0|inf"):
        make()


# Verdicts.


def test_a_failure_waits_as_the_policy_says() -> None:
    assert verdict(ValueError()) == RetryVerdict(10)
    assert verdict(ValueError(), attempt=2) == RetryVerdict(20)


def test_after_the_last_attempt_a_job_is_dead() -> None:
    assert verdict(ValueError("no"), attempt=3) == DeadVerdict(
        "failed 3 of 3 times: ValueError: no"
    )
    assert verdict(Retry(5), attempt=7) == DeadVerdict(
        "failed 7 of 3 times: the handler asks for another attempt", True
    )


@given(policies, st.integers(1, 60), draws, st.sampled_from([ValueError(), Retry(), Retry(3)]))
def test_a_job_is_tried_as_often_as_the_policy_says(
    policy: Policy, attempt: int, draw: float, error: Exception
) -> None:
    found = judge(policy, error, Tries(attempt=attempt), draw)

    assert not found.broken
    assert isinstance(found.verdict, RetryVerdict if attempt < policy.attempts else DeadVerdict)


def test_a_job_may_bring_its_own_number_of_attempts() -> None:
    assert verdict(ValueError(), attempt=4, attempts=9) == RetryVerdict(20)
    assert isinstance(verdict(ValueError(), attempt=2, attempts=2), DeadVerdict)


def test_an_error_of_never_is_death() -> None:
    policy = Fixed([10], never=(LookupError,))

    assert verdict(KeyError("ada"), policy) == DeadVerdict("KeyError: 'ada'")
    assert verdict(ValueError(), policy) == RetryVerdict(10)


def test_an_expected_error_is_told_from_others() -> None:
    policy = Fixed([10], expected=(OSError,))

    assert verdict(ConnectionResetError(), policy) == RetryVerdict(10, is_expected=True)
    assert verdict(ConnectionResetError(), policy, attempt=2) == DeadVerdict(
        "failed 2 of 2 times: ConnectionResetError", is_expected=True
    )


def test_a_handler_says_what_becomes_of_its_job() -> None:
    assert verdict(Retry(after=30)) == RetryVerdict(30, is_expected=True)
    assert verdict(Retry()) == RetryVerdict(10, is_expected=True)
    assert verdict(Snooze(60)) == SnoozeVerdict(60)
    assert verdict(Dead("card stolen")) == DeadVerdict("card stolen", is_expected=True)
    assert verdict(Cancel("obsolete")) == CancelVerdict("obsolete")


def test_a_snooze_counts_when_there_were_too_many() -> None:
    assert verdict(Snooze(60, most=2), snoozes=1) == SnoozeVerdict(60)
    found = verdict(Snooze(60, most=2, reason="no stock"), snoozes=2)

    assert found == RetryVerdict(10, is_expected=True)
    assert isinstance(found, RetryVerdict)
    assert found.reason == "no stock, but most=2 of Snooze allows no further one"


def test_the_last_snooze_too_many_is_a_death_that_names_the_limit() -> None:
    found = verdict(Snooze(60, most=2), Fixed([]), snoozes=2)

    assert isinstance(found, DeadVerdict)
    assert "most=2" in found.reason


@pytest.mark.parametrize("kind", [StopIteration, StopAsyncIteration])
def test_the_error_behind_the_one_that_python_puts_in_its_place_decides(
    kind: type[Exception],
) -> None:
    async def fails() -> None:
        raise kind("no")

    try:
        fails().send(None)
    except Exception as error:
        raised = error
    found = verdict(raised, Fixed([10], never=(kind,)))

    assert isinstance(found, DeadVerdict)
    assert found.reason.startswith(f"{kind.__name__}: no (worker/test_policies.py:")


def test_a_policy_may_be_a_function() -> None:
    def waits(error: BaseException) -> float | None:
        return 7 if isinstance(error, OSError) else None

    assert verdict(OSError(), waits) == RetryVerdict(7)
    assert verdict(ValueError("no"), waits) == DeadVerdict("ValueError: no")
    assert verdict(Retry(3), waits) == RetryVerdict(3, is_expected=True)


def group(*errors: BaseException) -> BaseException:
    return BaseExceptionGroup("children", [errors[0], BaseExceptionGroup("more", errors)])


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ((Cancel("x"),), CancelVerdict("x")),
        ((Cancel("x"), Snooze(3)), SnoozeVerdict(3)),
        ((Snooze(9), Snooze(3), Cancel()), SnoozeVerdict(9)),
        ((Snooze(9), Retry(3), Retry(4)), RetryVerdict(4, is_expected=True)),
        ((Retry(3), ValueError()), RetryVerdict(10)),
        ((OSError(), OSError()), RetryVerdict(10, is_expected=True)),
        ((OSError(), ValueError()), RetryVerdict(10)),
        ((SystemExit(),), RetryVerdict(10)),
    ],
)
def test_of_a_group_the_gravest_part_decides(
    errors: tuple[BaseException, ...], expected: Verdict
) -> None:
    assert verdict(group(*errors), Fixed([10], expected=(OSError,))) == expected


def test_one_death_in_a_group_is_death() -> None:
    found = verdict(group(ValueError(), Dead("stolen"), Snooze(3)))

    assert found == DeadVerdict("stolen", is_expected=True)


# Crashes and unknown tasks.


def test_a_job_that_killed_its_worker_too_often_while_alone_is_dead() -> None:
    assert crashed(4, 5) is None
    assert "killed its worker 5 times while running alone" in (crashed(5, 5) or "")
    assert "killed its worker once while" in (crashed(1, 1) or "")


def test_an_unknown_task_waits_longer_each_time_and_a_day_in_all() -> None:
    waits: list[float] = []
    while (wait := unknown_task(len(waits))) is not None:
        waits.append(wait)

    assert waits[:4] == [5, 10, 20, 40]
    assert sum(waits) == UNKNOWN_LIFE_S == 86_400


@given(st.integers(0, 10**6))
def test_an_unknown_task_ends(nacks: int) -> None:
    wait = unknown_task(nacks)

    assert wait is None if nacks > 14 else wait is not None


def test_a_snooze_whose_time_is_none_is_a_failure() -> None:
    odd = Snooze(3)
    odd.after = "soon"  # type: ignore[assignment]

    assert isinstance(verdict(odd), RetryVerdict)
