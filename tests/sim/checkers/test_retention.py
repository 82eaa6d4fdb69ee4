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


@pytest.mark.parametrize(
    ("config", "options", "due"),
    [
        ({}, "", ["S1"]),
        ({"default-replicate": "2"}, "", []),
        ({"default-replicate": "4"}, "", ["S1"]),
        ({"default-replicate": "2"}, "replicate=3", ["S1"]),
        ({"default-replicate": "1"}, "sync=3", ["S1"]),
        ({"default-sync": "2"}, "", []),
        ({"default-sync": "2"}, "sync=3", ["S1"]),
        ({"default-sync": "2"}, "replicate=3", []),
    ],
)
def test_without_words_of_the_producer_the_defaults_of_the_node_are_promised(
    config: dict[str, str], options: str, due: list[str]
) -> None:
    trace = Trace(4, config=tuple(config.items()))
    trace.add(1, to=("n2",), options=f"{options} retry=10 ttl=3600")

    assert broken(trace.verdict()) == due
