"""How runs in real time are judged."""

import pytest

from disque_trio.sim.engines.tcp.lateness import forgiving
from disque_trio.sim.scenarios.plan import LinkPlan, Plan
from tests.sim.checkers.trace import Trace, broken

IN_VIRTUAL_TIME = LinkPlan()
IN_REAL_TIME = forgiving(Plan(scenario="late", seed=0, nodes=3)).link


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
