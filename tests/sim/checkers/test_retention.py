"""S1: what the producer was promised."""

import pytest

from tests.sim.checkers.trace import JOB, Trace, broken


@pytest.mark.parametrize(
    ("reply", "due"),
    [("", ["S1"]), ("acked", []), ("passed on", []), ("refused", ["S1"]), ("unknown", ["S1"])],
)
def test_of_a_job_that_is_done_before_it_was_added_no_copies_are_asked(
    reply: str, due: list[str]
) -> None:
    trace = Trace()
    trace.add(1, to=("n2",))
    if reply:
        trace.row(1.006, "ack.invoke", "n1", job=JOB, client="c1", ref=77)
    if reply == "acked":
        trace.row(1.007, "acked", "n1", job=JOB, cause="ackjob")
    elif reply == "passed on":
        trace.send(1.007, "setack", "n1", "n2", detail="holders=2")
    elif reply:
        trace.row(1.008, f"ack.{reply}", "n1", job=JOB, client="c1", ref=77, cause="LOADING")

    assert broken(trace.verdict()) == due
