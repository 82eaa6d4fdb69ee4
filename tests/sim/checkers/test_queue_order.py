"""W12: a worker with a strict order of queues begins what it holds in that order."""

import attrs
import pytest

from tests.sim.checkers.test_runs import OTHER, found, given, run
from tests.sim.checkers.trace import JOB, Trace


def story(*, strict: bool, retry: int = 10) -> Trace:
    """c1 is given a job of queue `q`, and one of `low`."""
    trace = given(prefetch=5, strict=strict, retry=retry)
    workers = [attrs.evolve(each, queues=("q", "low")) for each in trace.plan.consumers]
    trace.plan = attrs.evolve(trace.plan, consumers=tuple(workers))
    trace.add(0, job=OTHER, options="replicate=3 retry=60 ttl=3600")
    trace.serve(1.1, job=OTHER)
    return trace


@pytest.mark.parametrize("strict", [True, False])
def test_a_job_of_a_lower_queue_does_not_begin_while_one_of_a_higher_is_held(strict: bool) -> None:
    trace = story(strict=strict)
    trace.row(1.2, "run.begin", "", job=OTHER, client="c1", queue="low")

    wrong = [f"c1 begins it and holds {JOB} of q"] if strict else []
    assert found(trace, "W12") == wrong


def test_it_begins_when_that_has_begun() -> None:
    trace = story(strict=True)
    run(trace, 1.2, "begin")
    trace.row(1.2, "run.begin", "", job=OTHER, client="c1", queue="low")

    assert found(trace, "W12") == []
    assert "W12" in trace.verdict(60).checks


def test_a_job_with_little_lease_may_wait() -> None:
    trace = story(strict=True)
    trace.row(10.5, "run.begin", "", job=OTHER, client="c1", queue="low")

    assert found(trace, "W12") == []
