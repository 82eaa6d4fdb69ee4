"""S23: what was held and has not begun is queued again as unbegun, and nothing else is."""

import attrs
import pytest

from tests.sim.checkers.trace import JOB, ONCE, Trace, broken

META = "nacks=0 additional=0 token=abc tied held body=b"


def held(detail: str = META) -> Trace:
    """At 2 s c1 has the job from n1."""
    trace = Trace()
    trace.plan = attrs.evolve(
        trace.plan,
        consumers=tuple(
            attrs.evolve(each, meta=True, tied=True, held=True) for each in trace.plan.consumers
        ),
    )
    trace.add(1)
    trace.row(2, "unqueue", "n1", job=JOB, queue="q", cause="served")
    trace.row(2, "serve", "n1", job=JOB, queue="q", client="c1", cause="served")
    trace.row(2.01, "get.deliver", "n1", job=JOB, queue="q", client="c1", detail=detail)
    return trace


def begin(trace: Trace, reply: str = "1") -> None:
    trace.row(2.1, "begin.invoke", "n1", job=JOB, client="c1", ref=90)
    trace.row(2.12, "begin.ok", "n1", job=JOB, client="c1", ref=90, detail=reply)


def queue(trace: Trace, node: str, cause: str, time: float = 8) -> None:
    trace.row(time, "queue", node, job=JOB, queue="q", cause=cause)


@pytest.mark.parametrize(("cause", "is_right"), [("unbegun", True), ("retry", False)])
def test_what_has_not_begun_is_queued_as_unbegun(cause: str, is_right: bool) -> None:
    trace = held()
    queue(trace, "n1", cause)

    assert ("S23" not in broken(trace.verdict())) == is_right


@pytest.mark.parametrize(
    ("cause", "reply", "is_right"),
    [("unbegun", "1", False), ("unbegun", "0", True), ("retry", "1", True), ("retry", "0", True)],
)
def test_what_has_begun_is_not(cause: str, reply: str, is_right: bool) -> None:
    trace = held()
    if reply == "0":  # the node has heard that another one has it
        trace.send(2.05, "queued", "n2", "n1")
    begin(trace, reply)
    queue(trace, "n1", cause)

    assert ("S23" not in broken(trace.verdict())) == is_right


@pytest.mark.parametrize("reply", ["0", "1"])
def test_what_is_held_can_begin(reply: str) -> None:
    trace = held()
    begin(trace, reply)

    assert ("S23" in broken(trace.verdict())) == (reply == "0")


@pytest.mark.parametrize(("node", "is_right"), [("n1", True), ("n2", False)])
def test_unless_another_client_has_returned_it_there(node: str, *, is_right: bool) -> None:
    """everything, seed 8227."""
    trace = held()
    trace.row(2.05, "postpone", node, job=JOB, queue="q", cause="nack", detail="wait=1000")
    begin(trace, "0")

    assert ("S23" not in broken(trace.verdict())) == is_right


@pytest.mark.parametrize("came", [1.9, 2])
def test_news_in_the_batch_of_its_delivery_may_end_that(came: float) -> None:
    """The rows of all messages of a batch stand before those of what the node does about them."""
    trace = Trace()
    trace.plan = held().plan
    trace.add(1)
    trace.send(came - 0.002, "working", "n2", "n1")
    trace.row(2, "unqueue", "n1", job=JOB, queue="q", cause="served")
    trace.row(2, "serve", "n1", job=JOB, queue="q", client="c1", cause="served")
    trace.row(2.01, "get.deliver", "n1", job=JOB, queue="q", client="c1", detail=META)
    begin(trace, "0")

    assert ("S23" in broken(trace.verdict())) == (came < 2)


def test_with_retry_0_nothing_is_held() -> None:
    trace = Trace()
    trace.plan = held().plan
    trace.add(1, ONCE, options="replicate=3 retry=0 ttl=3600")
    trace.row(2, "unqueue", "n1", job=ONCE, queue="q", cause="served")
    trace.row(2, "serve", "n1", job=ONCE, queue="q", client="c1", cause="served")
    trace.row(2.01, "get.deliver", "n1", job=ONCE, queue="q", client="c1", detail=META)
    trace.row(2.1, "begin.invoke", "n1", job=ONCE, client="c1", ref=90)
    trace.row(2.12, "begin.ok", "n1", job=ONCE, client="c1", ref=90, detail="0")

    assert "S23" not in broken(trace.verdict())


def test_nor_what_was_not_held() -> None:
    trace = held(META.replace("held ", ""))
    queue(trace, "n1", "unbegun")

    assert "S23" in broken(trace.verdict())


def test_its_node_may_have_heard_that_the_delivery_is_over() -> None:
    trace = held()
    trace.send(3, "queued", "n2", "n1")
    queue(trace, "n1", "retry")

    assert "S23" not in broken(trace.verdict())


@pytest.mark.parametrize("has_begun", [False, True])
def test_in_calm_no_other_holder_queues_it(has_begun: bool) -> None:
    trace = held()
    if has_begun:
        begin(trace)
    queue(trace, "n2", "retry")

    assert ("S23" not in broken(trace.verdict())) == has_begun


@pytest.mark.parametrize(("time", "is_right"), [(2.0101, True), (2.5, False)])
def test_its_period_may_end_at_another_holder_before_the_delivery_is_known_there(
    time: float, is_right: bool
) -> None:
    """everything, seed 5133."""
    trace = held()
    queue(trace, "n2", "retry", time)

    assert ("S23" not in broken(trace.verdict())) == is_right
