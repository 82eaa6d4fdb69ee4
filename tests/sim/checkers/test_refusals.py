"""S20: what is to be refused is."""

import attrs
import pytest

from disque_trio.sim.checkers.verdict import judge
from disque_trio.sim.scenarios.plan import Add
from tests.sim.checkers.trace import ONCE, Trace, broken


@pytest.mark.parametrize(("maxlen", "due"), [(1, ["S20"]), (2, [])])
def test_a_queue_of_maxlen_jobs_takes_no_more(maxlen: int, due: list[str]) -> None:
    trace = Trace()
    add = Add(at=0, node=1, producer="p1", queue="q", body="b", maxlen=maxlen)
    trace.plan = attrs.evolve(trace.plan, adds=(add,))
    trace.add(0)
    trace.add(1, ONCE, to=(), options=f"replicate=1 retry=0 ttl=3600 maxlen={maxlen}", body="c")
    judging = judge(trace.plan)

    for row in trace.rows():
        judging.see(row)

    assert broken(judging.finish()) == due


@pytest.mark.parametrize(("left", "due"), [(0.5, ["S20"]), (1.9, [])])
def test_a_node_that_leaves_takes_no_copies(left: float, due: list[str]) -> None:
    trace = Trace()
    trace.row(left, "leave", "n2", detail="yes")
    trace.add(2)

    assert broken(trace.verdict()) == due


def test_a_stopped_node_has_not_received_the_order_to_leave() -> None:
    trace = Trace()
    trace.row(0.4, "pause", "n2")
    trace.row(0.5, "leave", "n2", detail="yes")
    trace.row(1.99, "resume", "n2")
    trace.add(2)

    assert trace.verdict().ok


@pytest.mark.parametrize(
    ("crash", "start", "due"), [(0.3, 0.7, []), (0.5001, 0.8, []), (1.6, 1.7, ["S20"])]
)
def test_a_node_that_is_down_gets_no_order_to_leave_and_keeps_one_that_it_got(
    crash: float, start: float, due: list[str]
) -> None:
    trace = Trace()
    trace.row(crash, "crash", "n2", cause="kill")
    trace.row(0.5, "leave", "n2", detail="yes")
    trace.row(start, "start", "n2", cause="empty")
    trace.add(2)

    assert broken(trace.verdict()) == due


@pytest.mark.parametrize(("start", "due"), [(1, []), (1.1, ["S20"])])
def test_an_order_that_comes_just_before_the_start_may_be_received(
    start: float, due: list[str]
) -> None:
    trace = Trace()
    trace.row(-0.5, "leave", "n2", detail="yes")
    trace.row(0.9, "crash", "n2", cause="kill")
    trace.row(1, "leave", "n2", detail="no")
    trace.row(start, "start", "n2", cause="empty")
    trace.add(2)

    assert broken(trace.verdict()) == due
