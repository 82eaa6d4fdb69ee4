from zlib import crc32

import pytest

from disque_trio.sim.scenarios.plan import Fault
from tests.sim.checkers.trace import JOB, Trace, broken

# S8, S9


def test_an_acknowledged_job_is_not_queued_again_where_it_is_acknowledged() -> None:
    trace = Trace()
    trace.add(0)
    trace.serve(1)
    trace.ack(2)
    trace.requeue(20, "n1")

    assert "S8" in broken(trace.verdict())


def test_it_may_be_once_it_was_forgotten_there() -> None:
    trace = Trace()
    trace.add(0)
    trace.serve(1)
    trace.ack(2)
    trace.crash(3, "n1", back=4)
    trace.copy(5, "n2", "n1")
    trace.requeue(25, "n1")
    trace.serve(25, "n1")

    verdict = trace.verdict()

    assert "S8" not in broken(verdict)
    assert verdict.duplicates == {"D3a": 1}


def test_a_node_that_was_told_does_not_deliver() -> None:
    trace = Trace()
    trace.add(0)
    trace.serve(1)
    trace.ack(2)
    trace.send(2.001, "setack", "n1", "n2")
    trace.requeue(15, "n2")
    trace.serve(15.1, "n2", "c2")

    assert "S9" in broken(trace.verdict())


def test_in_calm_a_holder_that_is_told_anything_is_told_of_the_ack() -> None:
    trace = Trace()
    trace.add(0)
    trace.serve(1)
    trace.working(1, "n1", "n2", "n3")
    trace.ack(2)
    trace.send(2.1, "ping", "n1", "n2", job="")
    trace.requeue(15, "n2")
    trace.serve(15.1, "n2", "c2")

    verdict = trace.verdict()

    assert "S9" in broken(verdict)
    assert verdict.duplicates == {"DX": 1}


def test_no_node_is_to_blame_for_an_ack_behind_a_cut() -> None:
    trace = Trace()
    trace.add(0)
    trace.serve(1)
    trace.working(1, "n1", "n2", "n3")
    trace.cut(1.5, ["n1"], ["n2", "n3"], until=30)
    trace.ack(2)
    trace.send(2.001, "setack", "n1", "n2", lost=10)
    trace.send(2.001, "setack", "n1", "n3", lost=10)
    trace.requeue(15, "n2")
    trace.serve(15.1, "n2", "c2")

    verdict = trace.verdict()

    assert verdict.ok
    assert verdict.duplicates == {"D2": 1}


# S10


def test_two_nodes_may_queue_a_job_at_once_and_settle_it() -> None:
    trace = Trace()
    trace.add(0)
    trace.requeue(10, "n2")
    trace.send(10, "queued", "n2", "n1", detail="redelivery")
    trace.row(10.002, "unqueue", "n1", job=JOB, cause="yield")

    verdict = trace.verdict(end=20)

    assert verdict.ok
    assert verdict.marks["queued.yield"] == 1


@pytest.mark.parametrize("is_settled", [True, False])
def test_in_calm_they_settle_it_soon(is_settled: bool) -> None:
    trace = Trace()
    trace.add(0)
    trace.requeue(10, "n2")
    if is_settled:
        trace.row(11, "unqueue", "n1", job=JOB, cause="yield")

    assert broken(trace.verdict(end=20)) == ["S10"]


def test_what_two_sides_queue_behind_a_cut_may_stay_queued() -> None:
    trace = Trace()
    trace.add(0)
    trace.cut(1, ["n1"], ["n2", "n3"], until=20)
    trace.requeue(10, "n2")

    assert trace.verdict(end=60).ok


# S11


def test_in_calm_a_lease_lasts_for_retry() -> None:
    trace = Trace()
    trace.add(0)
    trace.serve(1)
    trace.working(1, "n1", "n2", "n3")
    trace.requeue(6, "n2")
    trace.serve(6, "n2", "c2")

    assert "S11" in broken(trace.verdict())


@pytest.mark.parametrize(("journal", "due"), [("yes", []), ("no", ["S11"])])
def test_a_node_announces_a_lease_once_it_is_on_the_disk(journal: str, due: list[str]) -> None:
    trace = Trace(config=(("appendonly", journal), ("appendfsync", "always")))
    trace.add(0)
    trace.requeue(6, "n1")
    trace.serve(6)
    trace.requeue(6.017, "n2")
    trace.serve(6.017, "n2", "c2")

    assert [name for name in broken(trace.verdict()) if name == "S11"] == due


@pytest.mark.parametrize(("told", "due"), [(5.5, []), (4.5, ["S11"])])
def test_a_nack_from_before_may_reach_a_node_after_its_delivery(
    told: float, due: list[str]
) -> None:
    trace = Trace()
    trace.add(0)
    trace.serve(1)
    trace.row(4, "nack.invoke", "n1", job=JOB, client="c1")
    trace.row(4, "postpone", "n1", job=JOB, cause="nack", detail="wait=3000")
    if told < 5:
        trace.row(told, "postpone", "n2", job=JOB, cause="postponed", detail="wait=3000")
    trace.requeue(5, "n2", "backed-off")
    trace.serve(5, "n2", "c2")
    if told > 5:
        trace.row(told, "postpone", "n2", job=JOB, cause="postponed", detail="wait=3000")
    trace.requeue(9, "n1", "backed-off")
    trace.serve(9, "n1", "c1")

    assert [name for name in broken(trace.verdict()) if name == "S11"] == due


@pytest.mark.parametrize(("given", "due"), [(10.01, []), (10.1, ["S11"])])
def test_a_job_under_way_to_another_node_could_not_be_told_of_the_lease(
    given: float, due: list[str]
) -> None:
    trace = Trace()
    trace.add(0)
    trace.requeue(10, "n2")
    trace.serve(10.001)
    trace.row(given, "unqueue", "n2", job=JOB, cause="given")
    trace.row(given, "give", "n2", job=JOB, peer="n3", cause="given")
    trace.send(10.001, "working", "n1", "n2", lag=0.01)
    trace.send(given, "yourjobs", "n2", "n3", lag=0.02, detail=f"jobs={JOB} holders=n1,n2,n3")
    trace.requeue(given + 0.02, "n3", "import")
    trace.serve(given + 0.02, "n3", "c3")

    assert [name for name in broken(trace.verdict()) if name == "S11"] == due


def test_after_retry_it_is_over() -> None:
    trace = Trace()
    trace.add(0)
    trace.serve(1)
    trace.working(1, "n1", "n2", "n3")
    trace.requeue(10.8, "n2")
    trace.serve(10.8, "n2", "c2")

    verdict = trace.verdict()

    assert verdict.ok
    assert verdict.duplicates == {"D1": 1}


@pytest.mark.parametrize(("time", "due"), [(15.0, ["S11", "DX"]), (19.8, [])])
def test_more_time_is_a_lease_too(time: float, due: list[str]) -> None:
    trace = Trace()
    trace.add(0)
    trace.serve(1)
    trace.working(1, "n1", "n2", "n3")
    trace.row(9.99, "working.invoke", "n1", job=JOB, client="c1", ref=99)
    trace.working(9.991, "n1", "n2", "n3")
    trace.row(9.992, "working.ok", "n1", job=JOB, client="c1", ref=99, detail="10")
    trace.requeue(time, "n2")
    trace.serve(time, "n2", "c2")

    assert broken(trace.verdict()) == due


def test_a_lease_ends_when_the_worker_gives_the_job_back() -> None:
    trace = Trace()
    trace.add(0)
    trace.serve(1)
    trace.row(2, "nack.invoke", "n1", job=JOB, client="c1", ref=99)
    trace.requeue(2.1, "n1", "nack")
    trace.serve(2.1)

    assert trace.verdict().ok


@pytest.mark.parametrize(("age", "due"), [(1700, []), (1850, ["S11"])])
def test_after_half_of_the_ttl_nobody_gets_more_time(age: float, due: list[str]) -> None:
    trace = Trace()
    trace.add(0)
    trace.serve(1)
    trace.row(age, "working.invoke", "n1", job=JOB, client="c1", ref=99)
    trace.row(age + 0.1, "working.ok", "n1", job=JOB, client="c1", ref=99, detail="10")

    assert broken(trace.verdict()) == due


@pytest.mark.parametrize(("age", "due"), [(1700, ["S11"]), (1850, [])])
def test_nor_is_anybody_refused_before(age: float, due: list[str]) -> None:
    trace = Trace()
    trace.add(0)
    trace.serve(1)
    trace.row(age, "working.invoke", "n1", job=JOB, client="c1", ref=99)
    trace.row(age + 0.1, "working.refused", "n1", job=JOB, client="c1", ref=99, cause="TOOLATE")

    assert [name for name in broken(trace.verdict()) if name == "S11"] == due


def redriven(age: float, node: str) -> Trace:
    """n1 redrives the job at 1000 s, and the others do not learn of it. A worker asks for more
    time."""
    trace = Trace()
    trace.add(0)
    trace.row(2, "dead", "n1", job=JOB, cause="nack-dead", detail="redriven=0 left=604800000")
    trace.row(1000, "redrive", "n1", job=JOB, cause="redriven", detail="redriven=1 left=3600000")
    trace.row(age, "working.invoke", node, job=JOB, client="c1", ref=99)
    return trace


@pytest.mark.parametrize(
    ("age", "node", "due"),
    [(2600, "n1", []), (2850, "n1", ["S11"]), (1700, "n2", []), (1850, "n2", ["S11"])],
)
def test_redrive_restarts_the_ttl_where_it_is_known(age: float, node: str, due: list[str]) -> None:
    """everything, seed 6628."""
    trace = redriven(age, node)
    trace.row(age + 0.1, "working.ok", node, job=JOB, client="c1", ref=99, detail="10")

    assert [name for name in broken(trace.verdict()) if name == "S11"] == due


@pytest.mark.parametrize(
    ("age", "node", "due"),
    [(2600, "n1", ["S11"]), (2850, "n1", []), (1700, "n2", ["S11"]), (1850, "n2", [])],
)
def test_nor_does_anybody_else_refuse_before(age: float, node: str, due: list[str]) -> None:
    trace = redriven(age, node)
    trace.row(age + 0.1, "working.refused", node, job=JOB, client="c1", ref=99, cause="TOOLATE")

    assert [name for name in broken(trace.verdict()) if name == "S11"] == due


# S12, S13, S14


def test_an_exception_in_a_machine_breaks_robustness() -> None:
    trace = Trace()
    trace.row(1, "exception", "n1", cause="KeyError", detail="b'x'")

    assert broken(trace.verdict()) == ["S12"]


def two_jobs(trace: Trace) -> list[str]:
    jobs = [f"D-01234567-{letter * 24}-003d" for letter in "EF"]
    for time, job in enumerate(jobs):
        trace.add(time, job, body=f"b{time}")
    return jobs


def test_a_node_delivers_its_jobs_in_order() -> None:
    trace = Trace()
    first, second = two_jobs(trace)
    trace.serve(3, job=first, body="b0")
    trace.serve(4, job=second, body="b1")

    verdict = trace.verdict()

    assert verdict.ok
    assert verdict.checks["S13"] == 2


def test_it_does_not_deliver_the_younger_first() -> None:
    trace = Trace()
    first, second = two_jobs(trace)
    trace.serve(3, job=second, body="b1")
    trace.serve(4, job=first, body="b0")

    assert broken(trace.verdict()) == ["S13"]


@pytest.mark.parametrize(("follows", "finds"), [(" follows=1", []), ("", ["S13"])])
def test_a_job_that_follows_another_one_may_have_a_later_stamp(
    follows: str, finds: list[str]
) -> None:
    trace = Trace()
    record = f"replicate=3 retry=10000 delay=0 made=1000000 body={crc32(b'b')}{follows}"
    first, second = (f"D-01234567-{letter * 24}-003d" for letter in "EF")
    trace.add(0, first, record=f"{record} left=3600000 due=10000")
    trace.add(1, second, body="b1")
    trace.serve(3, job=second, body="b1")
    trace.serve(4, job=first)

    assert [each for each in broken(trace.verdict()) if each == "S13"] == finds


def test_order_is_not_promised_where_faults_are_planned() -> None:
    trace = Trace(faults=[Fault(kind="pause", nodes=(3,), at=1)])
    first, second = two_jobs(trace)
    trace.serve(3, job=second, body="b1")
    trace.serve(4, job=first, body="b0")

    verdict = trace.verdict()

    assert verdict.ok
    assert "S13" in verdict.not_judged


def counting(additional: list[int]) -> Trace:
    trace = Trace()
    trace.add(0)
    for count, more in enumerate(additional):
        time = 1 + 11 * count
        if count:
            trace.requeue(time, "n1")
        trace.row(time, "unqueue", "n1", job=JOB, cause="served")
        trace.row(time, "serve", "n1", job=JOB, client="c1", cause="served")
        trace.working(time, "n1", "n2", "n3")
        detail = f"nacks=0 additional={more} body=b"
        trace.row(time + 0.1, "get.deliver", "n1", job=JOB, client="c1", detail=detail)
    return trace


def test_counters_count_deliveries() -> None:
    assert counting([0, 1, 2]).verdict().ok


@pytest.mark.parametrize(("additional", "due"), [((0, 1), []), ((1, 0), ["S14"])])
def test_counters_are_compared_in_the_order_of_serving(
    additional: tuple[int, int], due: list[str]
) -> None:
    """The first reply comes after the second."""
    trace = Trace()
    trace.add(0)
    for time, more, lag in zip((1, 12), additional, (20, 0.1), strict=True):
        if time > 1:
            trace.requeue(time, "n1")
        trace.row(time, "unqueue", "n1", job=JOB, cause="served")
        trace.row(time, "serve", "n1", job=JOB, client=f"c{time}", cause="served")
        trace.working(time, "n1", "n2", "n3")
        detail = f"nacks=0 additional={more} body=b"
        trace.row(time + lag, "get.deliver", "n1", job=JOB, client=f"c{time}", detail=detail)

    assert broken(trace.verdict()) == due


def test_counters_count_no_more_than_there_was_when_the_job_was_served() -> None:
    trace = Trace()
    trace.add(0)
    trace.row(1, "unqueue", "n1", job=JOB, cause="served")
    trace.row(1, "serve", "n1", job=JOB, client="c1", cause="served")
    trace.requeue(12, "n2")
    detail = "nacks=0 additional=1 body=b"
    trace.row(13, "get.deliver", "n1", job=JOB, client="c1", detail=detail)

    assert broken(trace.verdict()) == ["S14"]


def test_a_copy_that_came_with_counters_may_be_told_of_a_requeue_once_more() -> None:
    trace = Trace()
    trace.add(0)
    trace.crash(1, "n3", back=2)
    trace.requeue(3, "n2")
    trace.copy(4, "n2", "n3")
    trace.requeue(14, "n3")
    trace.row(15, "unqueue", "n3", job=JOB, cause="served")
    trace.row(15, "serve", "n3", job=JOB, client="c1", cause="served")
    detail = "nacks=0 additional=3 body=b"
    trace.row(15.1, "get.deliver", "n3", job=JOB, client="c1", detail=detail)

    assert "S14" not in broken(trace.verdict())


@pytest.mark.parametrize("additional", [[0, 1, 0], [1, 1, 1], [0, 0, 0], [0, 1, 1]])
def test_counters_neither_go_down_nor_invent_nor_forget(additional: list[int]) -> None:
    assert broken(counting(additional).verdict()) == ["S14"]


@pytest.mark.parametrize(("nacks", "due"), [(0, ["S14"]), (1, [])])
def test_a_nack_is_counted_where_it_was_given(nacks: int, due: list[str]) -> None:
    trace = Trace()
    trace.add(0)
    trace.serve(1)
    trace.row(2, "nack.invoke", "n1", job=JOB, client="c1", ref=7)
    trace.requeue(2, "n1", "nack")
    trace.row(2.1, "unqueue", "n1", job=JOB, cause="served")
    trace.row(2.1, "serve", "n1", job=JOB, client="c2", cause="served")
    detail = f"nacks={nacks} additional=0 body=b"
    trace.row(2.2, "get.deliver", "n1", job=JOB, client="c2", detail=detail)

    assert broken(trace.verdict()) == due


def test_a_copy_that_begins_anew_begins_to_count_anew() -> None:
    trace = Trace()
    trace.add(0)
    trace.requeue(11, "n2")
    trace.crash(12, "n2", back=13)
    trace.copy(14, "n1", "n2")
    trace.row(20, "queue", "n2", job=JOB, cause="enqueue-message")
    trace.row(21, "unqueue", "n2", job=JOB, cause="served")
    trace.row(21, "serve", "n2", job=JOB, client="c1", cause="served")
    detail = "nacks=0 additional=0 body=b"
    trace.row(21.1, "get.deliver", "n2", job=JOB, client="c1", detail=detail)

    assert "S14" not in broken(trace.verdict())
