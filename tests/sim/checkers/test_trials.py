"""W11: a job that may have ended its worker begins alone in the next one."""

import pytest

from disque_trio.worker.engine.suspects import PATIENCE
from tests.sim.checkers.test_runs import OTHER, found, given, run
from tests.sim.checkers.trace import JOB, Trace

HELD = JOB.replace("AAAA", "AAAB")


def suspect(trace: Trace, time: float, job: str = OTHER, additional: int = 1) -> None:
    """c1 is given a job whose last delivery brought no answer."""
    trace.add(0, job=job, options="replicate=3 retry=60 ttl=3600")
    trace.row(time, "unqueue", "n1", job=job, cause="served")
    trace.row(time, "serve", "n1", job=job, client="c1", cause="served")
    detail = f"nacks=0 additional={additional} body=b"
    trace.row(time + 0.001, "get.deliver", "n1", job=job, client="c1", detail=detail)


def story(additional: int = 1) -> Trace:
    """c1 runs a job of its own and is given a suspect."""
    trace = given(retry=60, prefetch=5)
    run(trace, 1.1, "begin")
    suspect(trace, 1.5, additional=additional)
    return trace


def test_a_suspect_may_begin_when_nothing_else_runs() -> None:
    trace = story()
    run(trace, 2, "end", "done")
    run(trace, 2.1, "begin", job=OTHER)

    assert found(trace, "W11") == []
    assert "W11" in trace.verdict(60).checks


def test_a_suspect_does_not_begin_beside_another_job() -> None:
    trace = story()
    run(trace, 2.1, "begin", job=OTHER)

    assert found(trace, "W11") == ["c1 begins a suspect beside another job"]


def test_a_suspect_that_has_waited_for_long_begins_all_the_same() -> None:
    trace = story()
    run(trace, 1.6 + PATIENCE / 1e6, "begin", job=OTHER)

    assert found(trace, "W11") == []


def test_a_suspect_does_not_begin_while_another_job_is_held_or_on_its_way_back() -> None:
    trace = given(retry=60, prefetch=5)
    suspect(trace, 1.5)
    run(trace, 2, "begin", job=OTHER)
    assert found(trace, "W11") == [f"c1 begins a suspect and holds {JOB}"]

    trace = given(retry=60, prefetch=5)
    suspect(trace, 1.5)
    run(trace, 1.6, "drop", "released")
    run(trace, 2, "begin", job=OTHER)
    assert found(trace, "W11") == [f"c1 begins a suspect before {JOB} is back"]


@pytest.mark.parametrize(("node", "is_wrong"), [("n1", False), ("n2", True)])
def test_a_job_cannot_go_back_to_a_node_that_has_gone(node: str, *, is_wrong: bool) -> None:
    """everything, seed 3622."""
    trace = given(retry=60, prefetch=5)
    trace.crash(1.4, node)
    suspect(trace, 1.5)
    run(trace, 1.6, "drop", "released")
    run(trace, 2, "begin", job=OTHER)

    assert bool(found(trace, "W11")) == is_wrong


@pytest.mark.parametrize(
    ("additional", "after_s", "is_wrong"), [(1, 0.5, True), (1, 1.1, False), (2, 1.1, True)]
)
def test_a_first_trial_is_short_and_a_second_one_lasts_until_the_end(
    additional: int, after_s: float, is_wrong: bool
) -> None:
    trace = given(retry=60, prefetch=5)
    suspect(trace, 1.5, additional=additional)
    run(trace, 2, "begin", job=OTHER)
    run(trace, 2 + after_s, "begin")

    wrong = ["c1 begins it during the trial of another job"] if is_wrong else []
    assert [each for each in found(trace, "W11") if "during" in each] == wrong


def test_a_worker_that_keeps_a_suspect_apart_is_not_silent() -> None:
    trace = given(retry=60, prefetch=5)
    run(trace, 1.1, "begin")
    run(trace, 1.5, "end", "done")
    suspect(trace, 3, additional=2)
    run(trace, 3.1, "begin", job=OTHER)
    trace.add(5, job=HELD, body="c", node="n1")
    trace.add(9, job=JOB.replace("AAAA", "AAAD"), body="d", node="n1")

    assert [each.partition(" ")[0] for each in found(trace, "W7")] == ["c2"]


def test_a_suspect_begins_when_a_node_has_confirmed_what_was_given_back() -> None:
    trace = given(retry=60, prefetch=5)
    suspect(trace, 1.5)
    run(trace, 1.6, "drop", "released")
    trace.row(1.7, "release.invoke", "n1", job=JOB, client="c1", ref=900)
    trace.row(1.8, "release.ok", "n1", job=JOB, client="c1", ref=900, detail="1")
    run(trace, 2, "begin", job=OTHER)

    assert found(trace, "W11") == []
