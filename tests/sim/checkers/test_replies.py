"""What clients are told (S19)."""

import attrs
import pytest

from tests.sim.checkers.scenario import JOB, Tale


def complaints(tale: Tale) -> list[str]:
    return [v.detail for v in tale.verdict(end=60).violations if v.property == "S19"]


def asked(tale: Tale, verb: str, reply: str, *, at: float = 2, does: str = "") -> None:
    """A client asks n1 for something, which the node does, or not, and is answered."""
    tale.say(at, f"{verb}.invoke", "n1", job=JOB, client="c1", ref=60)
    if does:
        kind, _, cause = does.partition(" ")
        tale.say(at + 0.001, kind, "n1", job=JOB, cause=cause)
    tale.say(at + 0.002, f"{verb}.ok", "n1", job=JOB, client="c1", ref=60, detail=reply)


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
    ("reply", "is_done", "complaint"),
    [
        ("1", True, ""),
        ("0", False, ""),
        ("1", False, "{} is answered with 1, and nothing was done"),
        ("0", True, "{} is answered with 0, and it was done"),
    ],
)
def test_a_reply_tells_what_was_done(
    verb: str, reply: str, complaint: str, *, is_done: bool
) -> None:
    tale = Tale()
    tale.add(0)
    if verb != "dequeue":
        tale.serve(1)
    if verb == "fastack" and not is_done:
        tale.tell(2.001, "deljob", "n1", "n2")
    asked(tale, verb, reply, does=DONE[verb] if is_done else "")

    assert complaints(tale) == ([complaint.format(verb)] if complaint else [])


@pytest.mark.parametrize("trouble", ["", "told", "cut", "others down"])
def test_a_fastack_of_a_job_that_is_not_here_is_passed_on_if_there_is_a_link(trouble: str) -> None:
    tale = Tale(nodes=4)
    tale.add(0, node="n2", to=("n3",), options="replicate=2 retry=10 ttl=3600")
    if trouble == "cut":
        tale.cut(1, ["n1"], ["n2", "n3", "n4"], until=31)
    for node in ("n2", "n3", "n4") if trouble == "others down" else ():
        tale.say(1, "crash", node, cause="kill")
    tale.say(30, "fastack.invoke", "n1", job=JOB, client="c1", ref=60)
    if trouble == "told":
        tale.tell(30.001, "deljob", "n1", "n3")
    tale.say(30.002, "fastack.ok", "n1", job=JOB, client="c1", ref=60, detail="0")

    expected = [] if trouble else ["fastack is answered with 0, and no other node has been told"]
    assert complaints(tale) == expected


def test_of_two_that_ask_at_once_one_is_told_nothing() -> None:
    tale = Tale()
    tale.add(0)
    tale.serve(1)
    tale.say(2, "ack.invoke", "n1", job=JOB, client="c1", ref=60)
    tale.say(2, "ack.invoke", "n1", job=JOB, client="c2", ref=61)
    tale.say(2.001, "acked", "n1", job=JOB, cause="ackjob")
    tale.say(2.002, "ack.ok", "n1", job=JOB, client="c1", ref=60, detail="1")
    tale.say(2.002, "ack.ok", "n1", job=JOB, client="c2", ref=61, detail="0")

    assert complaints(tale) == []


@pytest.mark.parametrize(("outcome", "found"), [("unknown", False), ("refused", True)])
def test_of_one_that_nobody_waits_for_any_more_the_node_may_do_it_yet(
    outcome: str, *, found: bool
) -> None:
    # The node was stopped: it takes in both requests at once, and does what the first one asks.
    tale = Tale()
    tale.add(0)
    tale.serve(1)
    tale.say(2, "ack.invoke", "n1", job=JOB, client="c1", ref=60)
    tale.say(7, f"ack.{outcome}", "n1", job=JOB, client="c1", ref=60, cause="timeout")
    tale.say(7, "ack.invoke", "n1", job=JOB, client="c1", ref=61)
    tale.say(9, "acked", "n1", job=JOB, cause="ackjob")
    tale.say(9, "ack.ok", "n1", job=JOB, client="c1", ref=61, detail="0")

    assert bool(complaints(tale)) is found


@pytest.mark.parametrize(("reply", "found"), [("10", False), ("5", True), ("0", True)])
def test_working_tells_retry(reply: str, *, found: bool) -> None:
    tale = Tale()
    tale.add(0)
    tale.serve(1)
    tale.say(2, "working.invoke", "n1", job=JOB, client="c1", ref=60)
    tale.say(2.001, "working.ok", "n1", job=JOB, client="c1", ref=60, detail=reply)

    assert bool(complaints(tale)) == found


def gotten(*queues: str, count: int = 5, wanted: tuple[str, ...] = ("q", "r")) -> Tale:
    """One GETJOB that gives a job of each of these queues."""
    tale = Tale()
    [consumer] = tale.plan.consumers
    tale.plan = attrs.evolve(
        tale.plan, consumers=(attrs.evolve(consumer, queues=wanted, count=count),)
    )
    for number, queue in enumerate(queues):
        tale.say(
            1, "get.deliver", "n1", job=f"D-{number}", queue=queue, client="c1",
            detail=f"body={number}", ref=70,
        )  # fmt: skip
    return tale


@pytest.mark.parametrize("queues", ["q", "q r", "q r q r", "q r q q", "q r r", "q q", "r r"])
def test_getjob_gives_round_after_round(queues: str) -> None:
    assert complaints(gotten(*queues.split())) == []


def test_right_to_left_is_found_out() -> None:
    assert complaints(gotten("r", "q")) == ["c1 gets them in the order r q"]


def test_more_than_was_asked_for_is_found_out() -> None:
    assert complaints(gotten("q", "q", count=1)) == [
        "c1 has asked for 1 jobs, and this is one more"
    ]


def test_a_queue_that_nobody_asked_for_is_found_out() -> None:
    assert complaints(gotten("r", wanted=("q",))) == ["c1 has not asked for jobs of r"]
