"""S35: a node sends messages about a job, and gossip, only for a reason."""

import pytest

from tests.sim.checkers.trace import Trace, broken


@pytest.mark.parametrize(("times", "is_right"), [(4, True), (12, False)])
def test_a_delivery_is_announced_once_or_twice(times: int, *, is_right: bool) -> None:
    trace = Trace()
    trace.add(30)
    trace.serve(31)
    for number in range(times):
        trace.working(31 + number / 1000, "n1", "n2")

    assert ("S35" not in broken(trace.verdict())) == is_right


def test_each_message_that_comes_is_a_reason_for_another() -> None:
    trace = Trace()
    trace.add(30)
    for number in range(20):
        trace.send(31 + number, "willqueue", "n2", "n1")
        trace.send(31.5 + number, "queued", "n1", "n2")

    assert "S35" not in broken(trace.verdict())


def test_after_a_fault_messages_may_be_repeated() -> None:
    trace = Trace()
    trace.add(30)
    trace.cut(30.5, ["n1"], ["n2"], until=31)
    for number in range(30):
        trace.send(32 + number, "setack", "n1", "n2", detail="holders=3")

    assert "S35" not in broken(trace.verdict())


@pytest.mark.parametrize(("times", "is_right"), [(4, True), (20, False)])
def test_a_node_is_not_asked_all_the_time(times: int, *, is_right: bool) -> None:
    trace = Trace()
    for number in range(times):
        trace.send(30 + number / 1000, "ping", "n1", "n2", "")

    assert ("S35" not in broken(trace.verdict())) == is_right
