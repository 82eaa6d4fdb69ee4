"""S23: what workers and administrators are told is true."""

import attrs
import pytest

from disque_trio.sim.scenarios.plan import Consumer
from tests.sim.checkers.trace import JOB, Trace, broken

TOKEN = "aaaaaaaa111111111111"


def handed_out(time: float = 1, options: str = "", retry: int = 10) -> Trace:
    """A job that n1 gives to c1, with a token."""
    trace = Trace()
    consumer = Consumer(name="c1", node=1, queues=("q",), meta=True, tied=True)
    expect = attrs.evolve(trace.plan.expect, duplicates=("D0",))
    trace.plan = attrs.evolve(trace.plan, consumers=(consumer,), expect=expect)
    trace.add(0, options=f"replicate=3 retry={retry} ttl=3600")
    serve(trace, time, detail=f"token={TOKEN} {options}body=b")
    return trace


def serve(trace: Trace, time: float, client: str = "c1", detail: str = "body=b") -> None:
    trace.row(time, "unqueue", "n1", job=JOB, cause="served")
    trace.row(time, "serve", "n1", job=JOB, client=client, cause="served")
    trace.row(
        time + 0.001, "get.deliver", "n1", job=JOB, client=client,
        detail=f"nacks=0 additional=0 {detail}",
    )  # fmt: skip


def ask(trace: Trace, time: float, kind: str, detail: str, cause: str = "") -> None:
    trace.row(time, "working.invoke", "n1", job=JOB, client="c1", detail=TOKEN, ref=99)
    trace.row(
        time + 0.001, f"working.{kind}", "n1", job=JOB, client="c1", detail=detail, cause=cause,
        ref=99,
    )  # fmt: skip


def given_again(trace: Trace, time: float) -> None:
    trace.row(time, "nack.invoke", "n1", job=JOB, client="c2", ref=50)
    trace.row(time + 0.001, "queue", "n1", job=JOB, cause="nack")
    trace.row(time + 0.002, "nack.ok", "n1", job=JOB, client="c2", ref=50, detail="1")
    serve(trace, time + 0.01, "c2")


def test_a_worker_that_has_lost_its_job_is_told() -> None:
    trace = handed_out()
    given_again(trace, 2)
    ask(trace, 3, "refused", "LOST", "LOST")

    assert "S23" not in broken(trace.verdict())


def test_a_worker_that_has_its_job_is_not_told_that_it_is_lost() -> None:
    trace = handed_out()
    ask(trace, 3, "refused", "LOST", "LOST")

    assert "S23" in broken(trace.verdict())


@pytest.mark.parametrize(("is_postponed", "is_broken"), [(True, False), (False, True)])
def test_a_worker_may_lose_its_job_to_a_holder_that_holds_it_back_and_has_linked_anew(
    is_postponed: bool, is_broken: bool
) -> None:
    trace = handed_out()
    if is_postponed:
        trace.row(1.4, "postpone", "n3", job=JOB, cause="release", detail="wait=10000 snoozes=1")
        trace.row(1.5, "postpone", "n2", job=JOB, cause="postponed", detail="wait=10000")
    trace.send(2, "working", "n2", "n1")
    ask(trace, 3, "refused", "LOST", "LOST")

    assert ("S23" in broken(trace.verdict())) == is_broken


def test_a_worker_may_lose_its_job_to_itself_at_another_node() -> None:
    trace = handed_out()
    trace.row(2, "working.invoke", "n2", job=JOB, client="c1", detail=TOKEN, ref=98)
    trace.row(2.001, "working.ok", "n2", job=JOB, client="c1", detail="10", ref=98)
    ask(trace, 3, "refused", "LOST", "LOST")

    assert "S23" not in broken(trace.verdict())


def test_a_worker_may_lose_its_job_by_a_nack_of_its_own() -> None:
    trace = handed_out()
    trace.row(2, "nack.invoke", "n1", job=JOB, client="c1", detail=TOKEN, ref=98)
    trace.row(2, "nack.unknown", "n1", job=JOB, client="c1", cause="quit", ref=98)
    trace.row(2.5, "queue", "n1", job=JOB, cause="nack")
    ask(trace, 3, "refused", "LOST", "LOST")

    assert "S23" not in broken(trace.verdict())


@pytest.mark.parametrize(("reply", "is_broken"), [("1", True), ("0", False)])
def test_no_more_time_is_for_who_has_given_the_job_back(reply: str, is_broken: bool) -> None:
    trace = handed_out()
    trace.row(2, "release.invoke", "n1", job=JOB, client="c1", detail=TOKEN, ref=98)
    trace.row(2.001, "queue", "n1", job=JOB, cause="release")
    trace.row(2.002, "release.ok", "n1", job=JOB, client="c1", detail=reply, ref=98)
    ask(trace, 3, "ok", "10")

    assert ("S23" in broken(trace.verdict())) == is_broken


def test_each_job_of_a_request_has_its_own_token() -> None:
    trace = handed_out()
    other = JOB.replace("-11", "-12")
    given_again(trace, 2)
    trace.row(3, "working.invoke", "n1", job=JOB, client="c1", detail=TOKEN, ref=99)
    trace.row(3, "working.invoke", "n1", job=other, client="c1", ref=99)
    trace.row(3.001, "working.ok", "n1", job=JOB, client="c1", detail="10", ref=99)

    assert "S23" in broken(trace.verdict())


@pytest.mark.parametrize(("crash", "is_broken"), [(None, True), (1.5, True), (2.5, False)])
def test_more_time_is_for_the_last_that_was_given_the_job(
    crash: float | None, *, is_broken: bool
) -> None:
    """As far as the node knows, which may have started since (everything, seed 9700)."""
    trace = handed_out()
    given_again(trace, 2)
    if crash is not None:
        trace.crash(crash, "n1", back=crash + 0.1)
        trace.row(crash + 0.1, "hold", "n1", job=JOB, queue="q", cause="loaded")
    ask(trace, 3, "ok", "10")

    assert ("S23" in broken(trace.verdict())) == is_broken


@pytest.mark.parametrize(("wait", "is_broken"), [(1.5, True), (2.01, False)])
def test_a_tied_job_is_queued_after_the_grace(wait: float, is_broken: bool) -> None:
    trace = handed_out(options="tied ")
    trace.row(2, "hangup", "n1", client="c1", detail=f"jobs={JOB}")
    trace.row(2, "untie", "n1", job=JOB, cause="disconnected")
    trace.requeue(2 + wait, "n1", "untied")

    assert ("S23" in broken(trace.verdict())) == is_broken


def test_a_job_that_was_never_tied_is_not_queued_as_if_it_had_been() -> None:
    trace = handed_out()
    trace.requeue(5, "n1", "untied")

    assert "S23" in broken(trace.verdict())


def test_a_node_that_does_not_learn_of_the_end_is_found() -> None:
    trace = handed_out(options="tied ")
    trace.row(2, "hangup", "n1", client="c1", detail=f"jobs={JOB}")
    trace.requeue(11.1, "n1")

    assert "S23" in broken(trace.verdict())


def test_another_connection_of_the_worker_may_end() -> None:
    trace = handed_out(options="tied ")
    trace.row(2, "hangup", "n1", client="c1", detail="jobs=")
    trace.requeue(11.1, "n1")

    assert "S23" not in broken(trace.verdict())


@pytest.mark.parametrize(("is_dead", "is_broken"), [(True, False), (False, True)])
def test_a_node_that_hears_of_the_death_of_a_job_needs_no_end_of_its_connection(
    *, is_dead: bool, is_broken: bool
) -> None:
    trace = handed_out(options="tied ")
    trace.row(2, "hangup", "n1", client="c1", detail=f"jobs={JOB}")
    if is_dead:
        trace.row(2.1, "dead", "n1", job=JOB, cause="jobstate", detail="redriven=0 left=604800000")
    trace.row(9, "wait.ok", "n1", job=JOB, client="a1", ref=7, detail="None")

    assert ("S23" in broken(trace.verdict())) == is_broken


@pytest.mark.parametrize(("of", "is_broken"), [("n1", False), ("n2", True)])
def test_a_process_that_ended_has_no_ties_of_which_a_later_connection_tells(
    of: str, *, is_broken: bool
) -> None:
    trace = handed_out(options="tied ", retry=60)
    trace.crash(2, of, back=3)
    if of == "n1":
        trace.copy(3.5, "n2", "n1")
    trace.row(30, "hangup", "n1", client="c1", detail=f"jobs={JOB}")
    trace.requeue(61.1, "n1")

    assert ("S23" in broken(trace.verdict())) == is_broken


@pytest.mark.parametrize(("at", "is_broken"), [(0.5, False), (2, True)])
def test_a_purge_takes_what_is_queued(at: float, is_broken: bool) -> None:
    trace = Trace() if at < 1 else handed_out()
    if at < 1:
        trace.add(0)
        trace.row(at, "unqueue", "n1", job=JOB, cause="acked")
    trace.row(at - 0.1, "purge.invoke", "n1", queue="q", client="a1", ref=7)
    trace.row(at, "acked", "n1", job=JOB, cause="purge")
    trace.row(at + 0.1, "purge.ok", "n1", queue="q", client="a1", ref=7, detail="1")

    assert ("S23" in broken(trace.verdict())) == is_broken


def test_a_purge_that_nobody_has_asked_for_is_found() -> None:
    trace = Trace()
    trace.add(0)
    trace.row(0.5, "unqueue", "n1", job=JOB, cause="acked")
    trace.row(0.5, "acked", "n1", job=JOB, cause="purge")

    assert "S23" in broken(trace.verdict())


@pytest.mark.parametrize(
    ("reply", "is_broken"), [("None", False), ("b'acked'", True), ("b'expired'", True)]
)
def test_who_waits_for_the_end_is_told_the_truth(reply: str, is_broken: bool) -> None:
    trace = handed_out()
    trace.row(1.5, "wait.invoke", "n1", job=JOB, client="a1", ref=7)
    trace.row(2, "wait.ok", "n1", job=JOB, client="a1", ref=7, detail=reply)

    assert ("S23" in broken(trace.verdict())) == is_broken


def test_who_waits_for_an_ack_is_told_of_it() -> None:
    trace = handed_out()
    trace.ack(2)
    trace.row(2.1, "wait.ok", "n1", job=JOB, client="a1", ref=7, detail="b'acked'")

    assert "S23" not in broken(trace.verdict())


@pytest.mark.parametrize("verb", ["working", "nack"])
@pytest.mark.parametrize(
    ("change", "is_broken"), [("", True), ("news", False), ("queue", False), ("later", False)]
)
def test_another_node_that_has_given_the_job_to_somebody_does_not_believe_the_token(
    verb: str, change: str, *, is_broken: bool
) -> None:
    trace = handed_out()
    trace.row(2, "serve", "n2", job=JOB, client="c2", cause="served")
    trace.row(
        2.001, "get.deliver", "n2", job=JOB, client="c2", detail="nacks=0 additional=1 body=b"
    )
    if change == "news":
        trace.send(2.5, "working", "n3", "n2")
    elif change == "queue":
        trace.row(2.5, "queue", "n2", job=JOB, queue="q", cause="retry")
    time = 11.5 if change == "later" else 3
    trace.row(time, f"{verb}.invoke", "n2", job=JOB, client="c1", detail=TOKEN, ref=99)
    if verb == "nack":
        trace.row(time, "queue", "n2", job=JOB, queue="q", cause="nack")
    reply = "1" if verb == "nack" else "10"
    trace.row(time + 0.001, f"{verb}.ok", "n2", job=JOB, client="c1", detail=reply, ref=99)

    found = [each for each in trace.verdict().violations if "believed" in each.detail]
    assert bool(found) == is_broken
