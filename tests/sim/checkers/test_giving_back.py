"""W10, W13, W14: how workers that run the worker library's engine give jobs back."""

import pytest

from tests.sim.checkers.test_runs import found, given, run
from tests.sim.checkers.trace import JOB, ONCE, Trace


def failed(delay: int = 4000) -> Trace:
    """At 3 s a run ends, and the job is to be tried again in so many milliseconds."""
    trace = given()
    run(trace, 2, "begin")
    detail = f"delay={delay}" if delay else ""
    trace.row(3, "run.end", "", job=JOB, client="c1", cause="retry", detail=detail)
    return trace


def give_back(
    trace: Trace, time: float, *, how: str = "ok", token: str = "", option: str = "", ref: int = 70
) -> None:
    trace.row(
        time, "nack.invoke", "n1", job=JOB, client="c1", ref=ref, detail=token, cause=option
    )  # fmt: skip
    trace.row(time + 0.001, f"nack.{how}", "n1", job=JOB, client="c1", ref=ref, detail="1")


@pytest.mark.parametrize(
    ("time", "option", "finds"),
    [(3.5, "", True), (3.5, "delay", False), (7, "", False), (8.5, "", True)],
)
def test_a_worker_gives_a_failed_job_back_when_its_delay_is_over_unless_the_node_waits(
    time: float, option: str, *, finds: bool
) -> None:
    trace = failed()
    give_back(trace, time, option=option)

    assert bool(found(trace, "W13")) == finds


def test_without_a_delay_it_is_given_back_at_once() -> None:
    trace = failed(delay=0)
    give_back(trace, 3.01)

    assert not found(trace, "W13")


def test_a_worker_that_stops_does_not_wait() -> None:
    trace = failed()
    trace.row(4, "worker.stop", "", client="c1")
    give_back(trace, 4.01)

    assert not found(trace, "W13")


@pytest.mark.parametrize(("end", "finds"), [(7.5, False), (9, True)])
def test_a_worker_that_never_gives_it_back_is_found_at_the_end(end: float, *, finds: bool) -> None:
    assert bool(found(failed(), "W13", end)) == finds


@pytest.mark.parametrize(
    ("how", "token", "finds"),
    [("unknown", "", True), ("unknown", "aa", False), ("refused", "", False)],
)
def test_a_nack_that_may_have_arrived_is_repeated_only_with_a_token(
    how: str, token: str, *, finds: bool
) -> None:
    trace = failed(delay=0)
    give_back(trace, 3.01, how=how, token=token)
    give_back(trace, 3.5, token=token, ref=71)

    assert bool(found(trace, "W14")) == finds


@pytest.mark.parametrize(
    ("cause", "time", "finds"),
    [("released", 5, True), ("shutdown", 5, True), ("shutdown", 8, False), ("twice", 5, False)],
)
def test_what_has_retry_0_is_not_given_back_unbegun(
    cause: str, time: float, *, finds: bool
) -> None:
    trace = given(job=ONCE, retry=0)
    trace.row(4, "worker.stop", "", client="c1")
    trace.row(time, "run.drop", "", job=ONCE, client="c1", cause=cause)

    text = [each for each in found(trace, "W10") if "nobody else gets it" in each]
    assert bool(text) == finds
