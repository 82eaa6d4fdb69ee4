"""How runs in real time are judged."""

import pytest

from disque_trio.sim.engines.tcp.slack import NO_PROCESSOR, with_slack
from disque_trio.sim.scenarios.plan import LinkPlan, Plan
from tests.sim.checkers.trace import JOB, Trace, broken

IN_VIRTUAL_TIME = LinkPlan()
IN_REAL_TIME = with_slack(Plan(scenario="late", seed=0, nodes=3)).link


@pytest.mark.parametrize(
    ("link", "after_s", "is_broken"),
    [
        (IN_VIRTUAL_TIME, 0.242, True),
        (IN_REAL_TIME, 0.242, False),
        (IN_REAL_TIME, 3, True),
    ],
)
def test_a_node_without_a_processor_learns_of_a_lease_late_and_not_never(
    link: LinkPlan, after_s: float, is_broken: bool
) -> None:
    trace = Trace(link=link)
    trace.add(0)
    trace.serve(1)
    trace.requeue(1 + after_s, "n2")
    trace.serve(1 + after_s, "n2", "c2")

    assert ("S11" in broken(trace.verdict())) == is_broken


@pytest.mark.parametrize(
    ("no_processor", "after_s", "is_broken"),
    [(0, 18, False), (0, 20, True), (NO_PROCESSOR, 30, False), (NO_PROCESSOR, 35, True)],
)
def test_links_may_come_back_later_where_each_step_waits_for_a_processor(
    *, no_processor: int, after_s: float, is_broken: bool
) -> None:
    trace = Trace(no_processor=no_processor)
    trace.heal(2, rejoins=False)
    trace.row(2 + after_s, "rejoin")

    assert ("L6" in broken(trace.verdict(end=60))) == is_broken


@pytest.mark.parametrize(("started", "is_broken"), [(2.1, True), (10, False)])
def test_links_are_late_from_the_start_of_the_last_process_on(
    *, started: float, is_broken: bool
) -> None:
    trace = Trace()
    trace.crash(1, "n2", back=started)
    trace.heal(2, rejoins=False)
    trace.row(25, "rejoin")

    assert ("L6" in broken(trace.verdict(end=60))) == is_broken


@pytest.mark.parametrize(
    ("no_processor", "after_s", "is_broken"),
    [(0, 0.3, True), (NO_PROCESSOR, 0.3, False), (NO_PROCESSOR, 1.3, True)],
)
def test_the_answer_to_an_addjob_may_wait_for_a_processor(
    *, no_processor: int, after_s: float, is_broken: bool
) -> None:
    trace = Trace(no_processor=no_processor)
    detail = "timeout=5000 replicate=1 retry=10 ttl=3600 body=b"
    trace.row(20, "add.invoke", "n1", queue="q", client="p1", ref=1, detail=detail)
    at = 20 + after_s
    trace.row(at, "hold", "n1", job=JOB, cause="add")
    trace.row(at, "queue", "n1", job=JOB, cause="first")
    trace.row(at, "add.ok", "n1", job=JOB, client="p1", ref=1)

    assert ("L13" in broken(trace.verdict())) == is_broken
