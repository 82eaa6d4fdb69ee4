"""S22: SHOW has the error of the last NACK that its node has heard of."""

from zlib import crc32

import pytest

from disque_trio.sim.workload.requests import error_of
from tests.sim.checkers.trace import JOB, Trace

TEXT = crc32(error_of(JOB.encode()))


def failed(*, told: bool = False) -> Trace:
    """At 2 s a worker gives the job back to n1, whose wall clock shows 7000; n2 may hear of it."""
    trace = Trace()
    trace.add(1)
    trace.serve(1.5, "n1")
    trace.row(2, "nack.invoke", "n1", job=JOB, client="c1", ref=90, detail=f" error={TEXT}")
    trace.row(2, "queue", "n1", job=JOB, cause="nack", wall=7000)
    trace.row(2.01, "nack.ok", "n1", job=JOB, client="c1", ref=90, detail="1")
    if told:
        trace.send(2, "joberror", "n1", "n2", detail="at=7000")
    return trace


def shown(trace: Trace, node: str, said: str, time: float = 3) -> bool:
    """Is it right that SHOW says this of the error?"""
    trace.row(time, "query.invoke", node, job=JOB, client="o1", ref=91, cause="show")
    state = "queued" if node == "n1" else "active"
    detail = f"state={state} replicate=2 ttl=86400 delay=0 retry=5000 body= {said} holders= queue=q"
    trace.row(time, "query.ok", node, job=JOB, client="o1", ref=91, cause="show", detail=detail)
    return not any(
        " error" in str(each) or "failed=" in str(each) for each in trace.verdict().violations
    )


@pytest.mark.parametrize(
    ("said", "is_right"),
    [
        (f"failed=7000 error={TEXT}", True),
        (f"failed=7001 error={TEXT}", True),
        (f"failed=6999 error={TEXT}", False),
        ("failed=0 error=", False),
        ("failed=7000 error=", False),
        ("failed=7000 error=1", False),
    ],
)
def test_the_node_of_the_nack_shows_it(said: str, is_right: bool) -> None:
    assert shown(failed(), "n1", said) == is_right


def test_not_before_the_nack_is_answered() -> None:
    assert shown(failed(), "n1", "failed=0 error=", time=2.005)


@pytest.mark.parametrize("told", [False, True])
def test_another_holder_shows_it_once_it_was_told(told: bool) -> None:
    assert shown(failed(told=told), "n2", "failed=0 error=") != told
