"""S36: a result is kept for its KEEP, also through a restart with a journal."""

import pytest

from tests.sim.checkers.trace import JOB, Trace, broken

JOURNAL = (("appendonly", "yes"), ("appendfsync", "always"))


def acknowledged() -> Trace:
    """At 3 s a worker acknowledges the job at n1, with a result to be kept for 30 s."""
    trace = Trace(config=JOURNAL)
    trace.add(1)
    trace.serve(2)
    trace.row(3, "ack.invoke", "n1", job=JOB, client="c1", ref=90, detail="result=77 keep=30000")
    trace.row(3.001, "acked", "n1", job=JOB, cause="ackjob")
    trace.row(3.002, "ack.ok", "n1", job=JOB, client="c1", ref=90, detail="1")
    return trace


def asked(trace: Trace, time: float, result: str = "") -> bool:
    """SHOW at n1 returns this result, or nothing. Does that break a promise?"""
    trace.row(time, "query.invoke", "n1", job=JOB, client="o", cause="show", ref=91)
    shown = f"state=acked result={result} queue=q" if result else ""
    trace.row(
        time + 0.001, "query.ok", "n1", job=JOB, client="o", cause="show", ref=91, detail=shown
    )
    return "S36" in broken(trace.verdict(end=time + 1))


@pytest.mark.parametrize(
    ("time", "result", "is_wrong"),
    [(10, "77", False), (10, "", True), (10, "78", True), (34, "", False), (40, "77", True)],
)
def test_a_result_is_kept_as_long_as_asked(time: float, result: str, *, is_wrong: bool) -> None:
    trace = acknowledged()
    trace.row(5, "drop", "n1", job=JOB, cause="collected")

    assert asked(trace, time, result) == is_wrong


@pytest.mark.parametrize(("flipped", "is_wrong"), [("", True), ("n2", True), ("n1", False)])
def test_a_restart_keeps_it_unless_a_bit_of_the_journal_has_changed(
    flipped: str, *, is_wrong: bool
) -> None:
    """everything, seed 918."""
    trace = acknowledged()
    trace.row(5, "drop", "n1", job=JOB, cause="collected")
    if flipped:
        trace.row(6, "disk.flip", flipped)
    trace.row(7, "crash", "n1", cause="kill")
    trace.row(8, "start", "n1", cause="loaded")
    trace.row(8, "loaded", "n1", cause="kept")

    assert asked(trace, 10) == is_wrong
