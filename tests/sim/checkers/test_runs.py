"""W1 to W12: what workers that run the worker library's engine do with their jobs."""

from typing import Any

import attrs
import pytest

from disque_trio.sim.scenarios.plan import Consumer, Fault
from tests.sim.checkers.trace import JOB, ONCE, Trace, broken

RETRY = 10
OTHER = JOB.replace("AAAA", "AAAC")


def given(
    time: float = 1, job: str = JOB, retry: int = RETRY, *, lag: float = 0.001, **plan: Any
) -> Trace:
    """A job that n1 gives to the worker c1, which may run two."""
    trace = Trace(consumers=("n1", "n2"))
    workers = tuple(
        Consumer(
            name=f"c{number}", node=number, queues=("q",), kind="engine", count=2, meta=True, **plan
        )
        for number in (1, 2)
    )
    trace.plan = attrs.evolve(trace.plan, consumers=workers)
    trace.row(0, "worker.start", "", client="c1")
    trace.row(0, "worker.start", "", client="c2")
    trace.add(0, job=job, options=f"replicate={1 if job == ONCE else 3} retry={retry} ttl=3600")
    trace.serve(time, job=job, lag=lag)
    return trace


def run(
    trace: Trace, time: float, kind: str, cause: str = "", job: str = JOB, client: str = "c1"
) -> None:
    trace.row(time, f"run.{kind}", "", job=job, client=client, cause=cause)


def ask(trace: Trace, time: float, how: str = "ok", cause: str = "") -> None:
    trace.row(time, "working.invoke", "n1", job=JOB, client="c1", ref=int(time * 100))
    detail = str(RETRY) if how == "ok" else ""
    trace.row(
        time + 0.001, f"working.{how}", "n1", job=JOB, client="c1", ref=int(time * 100),
        detail=detail, cause=cause,
    )  # fmt: skip


def found(trace: Trace, name: str, end: float = 60) -> list[str]:
    """What is said of this property."""
    return [each.detail for each in trace.verdict(end).violations if each.property == name]


# W1 and W2: outcomes.


def test_what_is_done_may_be_acknowledged() -> None:
    trace = given()
    run(trace, 1.1, "begin")
    run(trace, 2, "end", "done")
    trace.ack(2.01)

    verdict = trace.verdict()
    assert not [name for name in broken(verdict) if name.startswith("W")]
    assert {"W1", "W3", "W4", "W5", "W9"} <= verdict.checks.keys()


@pytest.mark.parametrize("outcome", ["", "retry", "dead", "cancelled"])
def test_nothing_else_may(outcome: str) -> None:
    trace = given()
    run(trace, 1.1, "begin")
    if outcome:
        run(trace, 2, "end", outcome)
    trace.ack(2.01)

    assert found(trace, "W1") == ["c1 acknowledges it and has not done it"]


def test_a_dead_job_may_once_it_has_been_moved() -> None:
    """everything, seed 122 of the drawing before default-replicate: a node with `aof-format disque`
    keeps no dead jobs, so its worker adds the job to a queue of its own first."""
    trace = given()
    given_other = OTHER
    trace.add(1, job=given_other, options="replicate=3 retry=10 ttl=3600")
    trace.serve(1.05, job=given_other)
    for job in (JOB, given_other):
        run(trace, 1.1, "begin", job=job)
        run(trace, 2, "end", "dead", job=job)
    moved = JOB.replace("AAAA", "AAAD")
    trace.row(2.1, "add.invoke", "n1", queue="dead.q", client="c1", ref=7, detail="timeout=5000")
    trace.row(2.2, "add.ok", "n1", queue="dead.q", client="c1", job=moved, ref=7)
    trace.ack(2.3)
    assert found(trace, "W1") == []

    trace.ack(2.4, job=given_other)
    assert found(trace, "W1") == ["c1 acknowledges it and has not done it"]


def test_what_was_done_before_may_be_acknowledged_without_a_run() -> None:
    trace = given()
    run(trace, 1.1, "drop", "done_before")
    trace.ack(2.01)

    assert found(trace, "W1") == []


def test_a_job_of_one_delivery_may_be_acknowledged_though_it_failed() -> None:
    trace = given(job=ONCE, retry=0)
    run(trace, 1.1, "begin", job=ONCE)
    run(trace, 2, "end", "retry", job=ONCE)
    trace.ack(2.01, job=ONCE)

    assert found(trace, "W1") == []


@pytest.mark.parametrize(("renewed", "is_late"), [(False, True), (True, False)])
def test_a_job_is_given_back_only_while_the_lease_lasts(renewed: bool, is_late: bool) -> None:
    trace = given()
    run(trace, 1.1, "begin")
    if renewed:
        ask(trace, 5)
    run(trace, 11.5, "end", "retry")
    trace.row(11.5, "nack.invoke", "n1", job=JOB, client="c1", ref=70)

    assert bool(found(trace, "W2")) is is_late


def test_an_answer_about_an_earlier_delivery_says_nothing_of_this_one() -> None:
    """workers-engine, seed 401107: a WORKING for the delivery before is answered LOST only when the
    worker has the job again."""
    trace = given()
    run(trace, 1.1, "begin")
    trace.row(2, "working.invoke", "n1", job=JOB, client="c1", ref=2)
    run(trace, 2, "end", "retry")
    trace.requeue(2, "n1", "nack")
    trace.serve(2)
    trace.row(2.1, "working.refused", "n1", job=JOB, client="c1", ref=2, cause="LOST")
    ask(trace, 6)
    trace.row(14, "release.invoke", "n1", job=JOB, client="c1", ref=70)

    assert found(trace, "W2") == []


# W3, W5, W9, W10: jobs that begin.


@pytest.mark.parametrize(("time", "is_late"), [(10.6, False), (10.8, True)])
def test_a_job_begins_only_with_enough_of_its_lease(time: float, is_late: bool) -> None:
    trace = given()
    run(trace, time, "begin")

    assert bool(found(trace, "W3")) is is_late


@pytest.mark.parametrize(
    ("cause", "is_late"), [("NOJOB", False), ("MISCONF", False), ("LOST", True)]
)
def test_a_lease_goes_on_after_the_refusal_of_a_node_that_does_not_know(
    cause: str, *, is_late: bool
) -> None:
    trace = given()
    ask(trace, 2, "refused", cause)
    ask(trace, 6)
    run(trace, 11, "begin")

    assert bool(found(trace, "W3")) is is_late


@pytest.mark.parametrize(("node", "is_late"), [("n1", False), ("n2", True)])
def test_a_worker_does_not_know_how_long_its_job_waited_for_a_disk(
    node: str, *, is_late: bool
) -> None:
    trace = given(1, lag=8)
    trace.row(0.5, "disk.stall", node, detail="yes")
    trace.row(9, "disk.stall", node, detail="no")
    run(trace, 10.8, "begin")

    assert bool(found(trace, "W3")) is is_late


@pytest.mark.parametrize(
    ("node", "resumed", "is_late"), [("n1", 9, False), ("n2", 9, True), ("n1", 0.9, True)]
)
def test_a_worker_does_not_know_how_long_its_job_waited_at_a_stopped_node(
    node: str, resumed: float, *, is_late: bool
) -> None:
    """everything, seed 8585: the node was stopped between the delivery and the reply."""
    trace = given(1, lag=8)
    trace.row(0.5, "pause", node)
    trace.row(resumed, "resume", node)
    run(trace, 10.8, "begin")

    assert bool(found(trace, "W3")) is is_late


def test_a_job_that_was_not_delivered_does_not_begin() -> None:
    trace = given()
    run(trace, 2, "begin", job=OTHER)

    assert found(trace, "W3") == ["c1 begins it and was not given it"]


@pytest.mark.parametrize(("prefetch", "is_broken"), [(0, True), (1, False)])
def test_no_more_are_in_hand_than_may_be(prefetch: int, is_broken: bool) -> None:
    trace = given(prefetch=prefetch)
    for letter in "CD":
        job = JOB.replace("AAAA", f"AAA{letter}")
        trace.add(1, job=job, body=letter)
        trace.serve(2, job=job, body=letter)

    assert bool(found(trace, "W5")) is is_broken


@pytest.mark.parametrize(
    ("time", "prefetch_window", "is_broken"),
    [
        (4.2, 250_000, False),
        (4.5, 250_000, True),
        (4.5, 0, False),
    ],
)
def test_a_job_that_is_held_by_time_begins_soon(
    time: float, prefetch_window: int, is_broken: bool
) -> None:
    trace = given(prefetch=1, prefetch_window=prefetch_window)
    run(trace, time, "begin")

    assert bool(found(trace, "W5")) is is_broken


def test_a_worker_runs_a_job_once_at_a_time() -> None:
    trace = given()
    run(trace, 1.1, "begin")
    run(trace, 1.2, "begin")

    assert found(trace, "W9") == ["c1 runs it already"]


@pytest.mark.parametrize("excuse", ["", "ended", "cancelled", "killed", "stalled"])
def test_two_workers_do_not_run_a_job_at_once_while_nothing_is_wrong(excuse: str) -> None:
    trace = given()
    run(trace, 1.1, "begin")
    if excuse == "ended":
        run(trace, 2, "end", "retry")
    elif excuse == "cancelled":
        run(trace, 2, "cancel", "lost")
    elif excuse == "killed":
        trace.row(2, "worker.kill", "", client="c1")
    elif excuse == "stalled":
        trace.row(2, "worker.stall", "", client="c1")
    trace.requeue(3, "n2", "nack")
    trace.serve(3, "n2", "c2")
    run(trace, 3.1, "begin", client="c2")

    assert bool(found(trace, "W9")) is (not excuse)


def test_what_is_held_when_a_worker_stops_has_a_word() -> None:
    trace = given()
    trace.row(2, "worker.stop", "", client="c1")
    trace.row(3, "worker.stopped", "", client="c1")
    assert found(trace, "W10") == ["c1 has stopped and held it, without a word"]

    trace = given()
    run(trace, 2, "drop", "released")
    trace.row(3, "worker.stopped", "", client="c1")
    assert found(trace, "W10") == []


def test_what_is_held_beyond_its_lease_has_a_word() -> None:
    assert found(given(), "W10") == ["c1 holds it beyond its lease, without a word"]


# W4: renewals.


@pytest.mark.parametrize(("times", "is_late"), [((4, 7, 10), False), ((4, 9.9), True), ((), True)])
def test_a_lease_is_renewed_in_time(times: tuple[float, ...], is_late: bool) -> None:
    trace = given()
    run(trace, 1.1, "begin")
    for time in times:
        ask(trace, time)
    run(trace, 12, "end", "done")

    assert bool(found(trace, "W4")) is is_late


@pytest.mark.parametrize("excuse", ["TOOLATE", "stalled", "crash"])
def test_no_more_time_is_asked_for_in_vain(excuse: str) -> None:
    trace = given()
    run(trace, 1.1, "begin")
    if excuse == "TOOLATE":
        ask(trace, 4, "refused", "TOOLATE")
    elif excuse == "stalled":
        trace.row(4, "worker.stall", "", client="c1")
        trace.row(10, "worker.resume", "", client="c1")
    else:
        trace.plan = attrs.evolve(trace.plan, faults=(Fault(kind="crash", at=4_000_000),))
        trace.row(4, "crash", "n2", cause="kill")
        trace.row(5, "start", "n2", cause="empty")
    run(trace, 10.5, "end", "done")

    assert found(trace, "W4") == []


# W6, W7, W8: the ends of workers, and idle ones.


@pytest.mark.parametrize(("time", "is_late"), [(11.2, False), (15, True)])
def test_the_jobs_of_a_killed_worker_are_queued_again(time: float, is_late: bool) -> None:
    trace = given()
    run(trace, 1.1, "begin")
    trace.row(2, "worker.kill", "", client="c1")
    trace.requeue(time + 1, "n1")

    assert bool(found(trace, "W6")) is is_late


def test_a_job_that_was_given_back_before_does_not_depend_on_its_end() -> None:
    trace = given()
    run(trace, 1.1, "begin")
    run(trace, 1.5, "end", "retry")
    trace.requeue(1.6, "n1", "nack")
    trace.row(2, "worker.kill", "", client="c1")
    trace.requeue(30, "n1")

    assert found(trace, "W6") == []


def test_nor_does_one_that_another_worker_has_since() -> None:
    """workers-engine, seed 401666: that one asks for more time for as long as it likes."""
    trace = given()
    run(trace, 1.1, "begin")
    trace.requeue(11.5, "n1")
    trace.serve(11.5, "n1", "c2")
    trace.row(12, "worker.kill", "", client="c1")
    trace.requeue(40, "n1", "nack")

    assert found(trace, "W6") == []


def test_a_worker_with_a_free_slot_takes_what_is_queued() -> None:
    trace = given()
    trace.add(5, job=OTHER, body="c", node="n1")
    trace.add(9, job=JOB.replace("AAAA", "AAAD"), body="d", node="n1")

    assert found(trace, "W7")


@pytest.mark.parametrize("excuse", ["busy", "stopping", "killed"])
def test_one_that_cannot_take_it_is_not_silent(excuse: str) -> None:
    trace = given()
    for client in ("c1", "c2"):
        if excuse == "stopping":
            trace.row(2, "worker.stop", "", client=client)
        elif excuse == "killed":
            trace.row(2, "worker.kill", "", client=client)
        else:
            for job in (JOB, OTHER):
                trace.row(2, "run.begin", "", job=job, client=client)
    trace.add(5, job=JOB.replace("AAAA", "AAAD"), body="d", node="n1")
    trace.add(9, job=JOB.replace("AAAA", "AAAE"), body="e", node="n1")

    assert found(trace, "W7") == []


@pytest.mark.parametrize(("took", "is_late"), [(4.4, False), (4.6, True)])
def test_a_worker_stops_in_time(took: float, is_late: bool) -> None:
    trace = given()
    run(trace, 1.1, "drop", "released")
    trace.row(2, "worker.stop", "", client="c1")
    trace.row(2 + took, "worker.stopped", "", client="c1")

    assert bool(found(trace, "W8")) is is_late
