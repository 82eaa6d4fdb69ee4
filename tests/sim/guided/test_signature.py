"""What a run has shown."""

from disque_trio.sim.guided.signature import Signature, with_marks
from tests.sim.checkers.trace import JOB, Trace


def shown(trace: Trace) -> set[str]:
    signature = Signature()
    for row in trace.rows():
        signature.see(row)
    return signature.elements


def held() -> Trace:
    """n1 and n2 have the job, n1 has it queued."""
    trace = Trace()
    for node in ("n1", "n2"):
        trace.row(1, "hold", node, job=JOB, cause="repljob")
    trace.row(2, "queue", "n1", job=JOB, queue="q", cause="first")
    return trace


def test_a_message_is_told_with_the_state_of_its_job_here_and_elsewhere() -> None:
    trace = held()
    trace.send(3, "setack", "n1", "n2", detail="holders=2")
    trace.send(4, "setack", "n2", "n1", detail="holders=2")
    trace.send(5, "setack", "n1", "n3", detail="holders=2")

    assert {"recv setack h|Q", "recv setack Q|h", "recv setack .|hQ"} <= shown(trace)


def test_a_message_without_a_job_shows_nothing() -> None:
    trace = held()
    before = shown(trace)
    trace.send(3, "ping", "n1", "n2", job="")

    assert shown(trace) == before


def test_what_a_node_does_is_told_with_the_message_of_the_same_moment() -> None:
    trace = held()
    trace.send(3, "setack", "n1", "n2", lag=1, detail="holders=2")
    trace.row(4, "acked", "n2", job=JOB, cause="setack")
    trace.row(5, "drop", "n2", job=JOB, cause="collected")

    assert {"acked.setack h for setack", "drop.collected k for -"} <= shown(trace)


def test_a_fault_counts_while_it_lasts_and_for_its_nodes() -> None:
    trace = held()
    trace.row(3, "clog", "n2", peer="n3")
    trace.send(4, "queued", "n1", "n2")
    trace.row(5, "release", "n2", peer="n3")
    trace.send(6, "working", "n1", "n2")
    trace.send(7, "gotack", "n2", "n1", detail="known")

    found = {each for each in shown(trace) if " under " in each}
    assert found == {"recv queued h under clog"}


def test_a_level_ends_with_its_last_row() -> None:
    trace = held()
    trace.row(3, "slow", "n2", detail="20")
    trace.row(4, "slow", "n2", detail="0")
    trace.send(5, "queued", "n1", "n2")

    assert not any(" under " in each for each in shown(trace))


def test_the_outcome_of_a_request_is_told_with_the_state_of_its_job() -> None:
    trace = held()
    trace.row(3, "nack.refused", "n2", job=JOB, client="c1", cause="NOJOB", ref=7)

    assert "nack.refused.NOJOB h|Q" in shown(trace)


def test_marks_are_part_of_it() -> None:
    assert list(with_marks({"b", "a"}, {"cut": 3})) == ["a", "b", "mark cut"]
