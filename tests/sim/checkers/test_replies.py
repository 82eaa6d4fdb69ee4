"""What clients are told (S19)."""

import attrs
import pytest

from tests.sim.checkers.trace import JOB, Trace


def problems(trace: Trace) -> list[str]:
    return [v.detail for v in trace.verdict(end=60).violations if v.property == "S19"]


def asked(trace: Trace, verb: str, reply: str, *, at: float = 2, does: str = "") -> None:
    """A client asks n1 for something, which the node does, or not, and is answered."""
    trace.row(at, f"{verb}.invoke", "n1", job=JOB, client="c1", ref=60)
    if does:
        kind, _, cause = does.partition(" ")
        trace.row(at + 0.001, kind, "n1", job=JOB, cause=cause)
    trace.row(at + 0.002, f"{verb}.ok", "n1", job=JOB, client="c1", ref=60, detail=reply)


DONE = {
    "ack": "acked ackjob",
    "fastack": "drop fastack",
    "deljob": "drop client-deljob",
    "nack": "queue nack",
    "enqueue": "queue enqueue",
    "dequeue": "unqueue dequeue",
}


@pytest.mark.parametrize("verb", DONE)
@pytest.mark.parametrize(
    ("reply", "is_done", "problem"),
    [
        ("1", True, ""),
        ("0", False, ""),
        ("1", False, "{} is answered with 1, and nothing was done"),
        ("0", True, "{} is answered with 0, and it was done"),
    ],
)
def test_a_reply_tells_what_was_done(verb: str, reply: str, problem: str, *, is_done: bool) -> None:
    trace = Trace()
    trace.add(0)
    if verb != "dequeue":
        trace.serve(1)
    if verb == "fastack" and not is_done:
        trace.send(2.001, "deljob", "n1", "n2")
    asked(trace, verb, reply, does=DONE[verb] if is_done else "")

    assert problems(trace) == ([problem.format(verb)] if problem else [])


@pytest.mark.parametrize("trouble", ["", "told", "cut", "others down"])
def test_a_fastack_of_a_job_that_is_not_here_is_passed_on_if_there_is_a_link(trouble: str) -> None:
    trace = Trace(nodes=4)
    trace.add(0, node="n2", to=("n3",), options="replicate=2 retry=10 ttl=3600")
    if trouble == "cut":
        trace.cut(1, ["n1"], ["n2", "n3", "n4"], until=31)
    for node in ("n2", "n3", "n4") if trouble == "others down" else ():
        trace.row(1, "crash", node, cause="kill")
    trace.row(30, "fastack.invoke", "n1", job=JOB, client="c1", ref=60)
    if trouble == "told":
        trace.send(30.001, "deljob", "n1", "n3")
    trace.row(30.002, "fastack.ok", "n1", job=JOB, client="c1", ref=60, detail="0")

    expected = [] if trouble else ["fastack is answered with 0, and no other node has been told"]
    assert problems(trace) == expected


def test_of_two_that_ask_at_once_one_is_told_nothing() -> None:
    trace = Trace()
    trace.add(0)
    trace.serve(1)
    trace.row(2, "ack.invoke", "n1", job=JOB, client="c1", ref=60)
    trace.row(2, "ack.invoke", "n1", job=JOB, client="c2", ref=61)
    trace.row(2.001, "acked", "n1", job=JOB, cause="ackjob")
    trace.row(2.002, "ack.ok", "n1", job=JOB, client="c1", ref=60, detail="1")
    trace.row(2.002, "ack.ok", "n1", job=JOB, client="c2", ref=61, detail="0")

    assert problems(trace) == []


def test_the_reply_to_a_request_about_several_jobs_is_their_total() -> None:
    trace = Trace()
    other = JOB.replace("AAAA", "AAAC")
    trace.add(0)
    trace.serve(1)
    for job in (JOB, other):
        trace.row(2, "ack.invoke", "n1", job=job, client="c1", ref=60)
    trace.row(2.001, "acked", "n1", job=other, cause="ackjob")
    for job in (JOB, other):
        trace.row(2.002, "ack.ok", "n1", job=job, client="c1", ref=60, detail="1")

    assert problems(trace) == []


@pytest.mark.parametrize(("outcome", "found"), [("unknown", False), ("refused", True)])
def test_of_one_that_nobody_waits_for_any_more_the_node_may_do_it_yet(
    outcome: str, *, found: bool
) -> None:
    # The node was stopped: it takes in both requests at once, and does what the first one asks.
    trace = Trace()
    trace.add(0)
    trace.serve(1)
    trace.row(2, "ack.invoke", "n1", job=JOB, client="c1", ref=60)
    trace.row(7, f"ack.{outcome}", "n1", job=JOB, client="c1", ref=60, cause="timeout")
    trace.row(7, "ack.invoke", "n1", job=JOB, client="c1", ref=61)
    trace.row(9, "acked", "n1", job=JOB, cause="ackjob")
    trace.row(9, "ack.ok", "n1", job=JOB, client="c1", ref=61, detail="0")

    assert bool(problems(trace)) is found


@pytest.mark.parametrize(("reply", "found"), [("10", False), ("5", True), ("0", True)])
def test_working_tells_retry(reply: str, *, found: bool) -> None:
    trace = Trace()
    trace.add(0)
    trace.serve(1)
    trace.row(2, "working.invoke", "n1", job=JOB, client="c1", ref=60)
    trace.row(2.001, "working.ok", "n1", job=JOB, client="c1", ref=60, detail=reply)

    assert bool(problems(trace)) == found


def gotten(*queues: str, count: int = 5, wanted: tuple[str, ...] = ("q", "r")) -> Trace:
    """One GETJOB that gives a job of each of these queues."""
    trace = Trace()
    [consumer] = trace.plan.consumers
    trace.plan = attrs.evolve(
        trace.plan, consumers=(attrs.evolve(consumer, queues=wanted, count=count),)
    )
    for number, queue in enumerate(queues):
        trace.row(
            1, "get.deliver", "n1", job=f"D-{number}", queue=queue, client="c1",
            detail=f"nacks=0 additional=0 body={number}", ref=70,
        )  # fmt: skip
    return trace


@pytest.mark.parametrize("queues", ["q", "q r", "q r q r", "q r q q", "q r r", "q q", "r r"])
def test_getjob_gives_round_after_round(queues: str) -> None:
    assert problems(gotten(*queues.split())) == []


def test_right_to_left_is_found_out() -> None:
    assert problems(gotten("r", "q")) == ["c1 gets them in the order r q"]


def test_a_getjob_in_steps_may_come_back_to_a_queue_that_was_filled_meanwhile() -> None:
    trace = gotten("r", "q")
    trace.plan = attrs.evolve(trace.plan, knobs=(("ids_at_once", 4),))

    assert problems(trace) == []


def test_more_than_was_asked_for_is_found_out() -> None:
    assert problems(gotten("q", "q", count=1)) == ["c1 has asked for 1 job, and this is one more"]


def test_a_queue_that_nobody_asked_for_is_found_out() -> None:
    assert problems(gotten("r", wanted=("q",))) == ["c1 has not asked for jobs of r"]
