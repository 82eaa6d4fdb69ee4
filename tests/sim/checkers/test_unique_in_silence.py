"""S24: an ADDJOB does without the answer of a node that is silent for long, and of no other."""

import pytest

from tests.sim.checkers.test_unique import OTHER, THIRD, add, end
from tests.sim.checkers.trace import Trace, broken


@pytest.mark.parametrize(
    ("asked", "answered", "finds"),
    [(7.0, None, []), (9.5, None, ["S24"]), (7.0, 9.9, ["S24"])],
    ids=["it is suspected", "its answer may still come", "it has answered"],
)
@pytest.mark.parametrize("is_kept", [False, True])
def test_a_node_that_is_suspected_is_not_asked(
    asked: float, answered: float | None, finds: list[str], *, is_kept: bool
) -> None:
    trace = Trace()
    add(trace, 1, keep=30 if is_kept else 0)
    if is_kept:
        end(trace, 2)
    trace.send(asked, "ping", "n2", "n1", "", lag=None if answered is None else 0.002)
    if answered is not None:
        trace.send(answered, "pong", "n1", "n2", "")
    add(trace, 10, OTHER, node="n2", body="c")

    assert [each for each in broken(trace.verdict()) if each == "S24"] == finds


@pytest.mark.parametrize(
    ("asked", "about", "answered", "finds"),
    [
        (4.0, OTHER, None, []),
        (9.0, OTHER, None, ["S24"]),
        (4.0, OTHER, 9.0, ["S24"]),
        (4.0, THIRD, None, ["S24"]),
    ],
    ids=["in vain", "lately", "it has answered", "for another job"],
)
@pytest.mark.parametrize("is_kept", [False, True])
def test_a_node_is_not_waited_for_that_does_not_answer_for_long(
    asked: float, about: str, answered: float | None, finds: list[str], *, is_kept: bool
) -> None:
    trace = Trace(config=(("cluster-node-timeout", "2000"),))
    add(trace, 1, keep=30 if is_kept else 0)
    if is_kept:
        end(trace, 2)
    trace.send(asked, "keyclaim", "n2", "n1", about, detail="number=5/1 key=k")
    if answered is not None:
        trace.send(answered, "keyanswer", "n1", "n2", "", detail="number=5/1 facts=")
    add(trace, 10, OTHER, node="n2", body="c")

    assert [each for each in broken(trace.verdict()) if each == "S24"] == finds
