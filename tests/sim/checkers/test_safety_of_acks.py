import pytest

from disque_trio.sim.scenarios.plan import Fault
from tests.sim.checkers.scenario import JOB, Tale, broken

# S8, S9


def test_an_acknowledged_job_is_not_queued_again_where_it_is_acknowledged() -> None:
    tale = Tale()
    tale.add(0)
    tale.serve(1)
    tale.ack(2)
    tale.requeue(20, "n1")

    assert "S8" in broken(tale.verdict())


def test_it_may_be_once_it_was_forgotten_there() -> None:
    tale = Tale()
    tale.add(0)
    tale.serve(1)
    tale.ack(2)
    tale.crash(3, "n1", back=4)
    tale.copy(5, "n2", "n1")
    tale.requeue(25, "n1")
    tale.serve(25, "n1")

    verdict = tale.verdict()

    assert "S8" not in broken(verdict)
    assert verdict.duplicates == {"D3a": 1}


def test_a_node_that_was_told_does_not_deliver() -> None:
    tale = Tale()
    tale.add(0)
    tale.serve(1)
    tale.ack(2)
    tale.tell(2.001, "setack", "n1", "n2")
    tale.requeue(15, "n2")
    tale.serve(15.1, "n2", "c2")

    assert "S9" in broken(tale.verdict())


def test_in_calm_a_holder_that_hears_of_anything_hears_of_the_ack() -> None:
    tale = Tale()
    tale.add(0)
    tale.serve(1)
    tale.working(1, "n1", "n2", "n3")
    tale.ack(2)
    tale.tell(2.1, "ping", "n1", "n2", job="")
    tale.requeue(15, "n2")
    tale.serve(15.1, "n2", "c2")

    verdict = tale.verdict()

    assert "S9" in broken(verdict)
    assert verdict.duplicates == {"DX": 1}


def test_nobody_can_be_blamed_for_an_ack_behind_a_cut() -> None:
    tale = Tale()
    tale.add(0)
    tale.serve(1)
    tale.working(1, "n1", "n2", "n3")
    tale.cut(1.5, ["n1"], ["n2", "n3"], until=30)
    tale.ack(2)
    tale.tell(2.001, "setack", "n1", "n2", lost=10)
    tale.tell(2.001, "setack", "n1", "n3", lost=10)
    tale.requeue(15, "n2")
    tale.serve(15.1, "n2", "c2")

    verdict = tale.verdict()

    assert verdict.ok
    assert verdict.duplicates == {"D2": 1}


# S10


def test_two_nodes_may_queue_a_job_at_once_and_settle_it() -> None:
    tale = Tale()
    tale.add(0)
    tale.requeue(10, "n2")
    tale.tell(10, "queued", "n2", "n1", detail="redelivery")
    tale.say(10.002, "unqueue", "n1", job=JOB, cause="yield")

    verdict = tale.verdict(end=20)

    assert verdict.ok
    assert verdict.marks["queued.yield"] == 1


@pytest.mark.parametrize("is_settled", [True, False])
def test_in_calm_they_settle_it_soon(is_settled: bool) -> None:
    tale = Tale()
    tale.add(0)
    tale.requeue(10, "n2")
    if is_settled:
        tale.say(11, "unqueue", "n1", job=JOB, cause="yield")

    assert broken(tale.verdict(end=20)) == ["S10"]


def test_what_two_sides_queue_behind_a_cut_may_stay_queued() -> None:
    tale = Tale()
    tale.add(0)
    tale.cut(1, ["n1"], ["n2", "n3"], until=20)
    tale.requeue(10, "n2")

    assert tale.verdict(end=60).ok


# S11


def test_in_calm_a_lease_lasts_for_retry() -> None:
    tale = Tale()
    tale.add(0)
    tale.serve(1)
    tale.working(1, "n1", "n2", "n3")
    tale.requeue(6, "n2")
    tale.serve(6, "n2", "c2")

    assert "S11" in broken(tale.verdict())


@pytest.mark.parametrize(("given", "due"), [(10.01, []), (10.1, ["S11"])])
def test_a_job_that_was_on_its_way_to_another_node_could_not_hear_of_the_lease(
    given: float, due: list[str]
) -> None:
    tale = Tale()
    tale.add(0)
    tale.requeue(10, "n2")
    tale.serve(10.001)
    tale.say(given, "unqueue", "n2", job=JOB, cause="given")
    tale.say(given, "give", "n2", job=JOB, peer="n3", cause="given")
    tale.tell(10.001, "working", "n1", "n2", lag=0.01)
    tale.tell(given, "yourjobs", "n2", "n3", lag=0.02, detail=f"jobs={JOB} holders=n1,n2,n3")
    tale.requeue(given + 0.02, "n3", "import")
    tale.serve(given + 0.02, "n3", "c3")

    assert [name for name in broken(tale.verdict()) if name == "S11"] == due


def test_after_retry_it_is_over() -> None:
    tale = Tale()
    tale.add(0)
    tale.serve(1)
    tale.working(1, "n1", "n2", "n3")
    tale.requeue(10.8, "n2")
    tale.serve(10.8, "n2", "c2")

    verdict = tale.verdict()

    assert verdict.ok
    assert verdict.duplicates == {"D1": 1}


@pytest.mark.parametrize(("time", "due"), [(15.0, ["S11", "DX"]), (19.8, [])])
def test_more_time_is_a_lease_too(time: float, due: list[str]) -> None:
    tale = Tale()
    tale.add(0)
    tale.serve(1)
    tale.working(1, "n1", "n2", "n3")
    tale.say(9.99, "working.invoke", "n1", job=JOB, client="c1", ref=99)
    tale.working(9.991, "n1", "n2", "n3")
    tale.say(9.992, "working.ok", "n1", job=JOB, client="c1", ref=99, detail="10")
    tale.requeue(time, "n2")
    tale.serve(time, "n2", "c2")

    assert broken(tale.verdict()) == due


def test_a_lease_ends_when_the_worker_gives_the_job_back() -> None:
    tale = Tale()
    tale.add(0)
    tale.serve(1)
    tale.say(2, "nack.invoke", "n1", job=JOB, client="c1", ref=99)
    tale.requeue(2.1, "n1", "nack")
    tale.serve(2.1)

    assert tale.verdict().ok


@pytest.mark.parametrize(("age", "due"), [(1700, []), (1850, ["S11"])])
def test_after_half_of_the_ttl_nobody_gets_more_time(age: float, due: list[str]) -> None:
    tale = Tale()
    tale.add(0)
    tale.serve(1)
    tale.say(age, "working.invoke", "n1", job=JOB, client="c1", ref=99)
    tale.say(age + 0.1, "working.ok", "n1", job=JOB, client="c1", ref=99, detail="10")

    assert broken(tale.verdict()) == due


# S12, S13, S14


def test_an_exception_in_a_machine_breaks_robustness() -> None:
    tale = Tale()
    tale.say(1, "exception", "n1", cause="KeyError", detail="b'x'")

    assert broken(tale.verdict()) == ["S12"]


def two_jobs(tale: Tale) -> list[str]:
    jobs = [f"D-01234567-{letter * 24}-003d" for letter in "EF"]
    for time, job in enumerate(jobs):
        tale.add(time, job, body=f"b{time}")
    return jobs


def test_a_node_delivers_its_jobs_in_order() -> None:
    tale = Tale()
    first, second = two_jobs(tale)
    tale.serve(3, job=first, body="b0")
    tale.serve(4, job=second, body="b1")

    verdict = tale.verdict()

    assert verdict.ok
    assert verdict.checks["S13"] == 2


def test_it_does_not_deliver_the_younger_first() -> None:
    tale = Tale()
    first, second = two_jobs(tale)
    tale.serve(3, job=second, body="b1")
    tale.serve(4, job=first, body="b0")

    assert broken(tale.verdict()) == ["S13"]


def test_order_is_not_promised_where_faults_are_planned() -> None:
    tale = Tale(faults=[Fault(kind="pause", nodes=(3,), at=1)])
    first, second = two_jobs(tale)
    tale.serve(3, job=second, body="b1")
    tale.serve(4, job=first, body="b0")

    verdict = tale.verdict()

    assert verdict.ok
    assert "S13" in verdict.not_judged


def counting(additional: list[int]) -> Tale:
    tale = Tale()
    tale.add(0)
    for count, more in enumerate(additional):
        time = 1 + 11 * count
        if count:
            tale.requeue(time, "n1")
        tale.say(time, "unqueue", "n1", job=JOB, cause="served")
        tale.say(time, "serve", "n1", job=JOB, client="c1", cause="served")
        tale.working(time, "n1", "n2", "n3")
        detail = f"nacks=0 additional={more} body=b"
        tale.say(time + 0.1, "get.deliver", "n1", job=JOB, client="c1", detail=detail)
    return tale


def test_counters_count_deliveries() -> None:
    assert counting([0, 1, 2]).verdict().ok


@pytest.mark.parametrize(("additional", "due"), [((0, 1), []), ((1, 0), ["S14"])])
def test_counters_are_compared_in_the_order_of_serving(
    additional: tuple[int, int], due: list[str]
) -> None:
    """The first reply comes after the second."""
    tale = Tale()
    tale.add(0)
    for time, more, lag in zip((1, 12), additional, (20, 0.1), strict=True):
        if time > 1:
            tale.requeue(time, "n1")
        tale.say(time, "unqueue", "n1", job=JOB, cause="served")
        tale.say(time, "serve", "n1", job=JOB, client=f"c{time}", cause="served")
        tale.working(time, "n1", "n2", "n3")
        detail = f"nacks=0 additional={more} body=b"
        tale.say(time + lag, "get.deliver", "n1", job=JOB, client=f"c{time}", detail=detail)

    assert broken(tale.verdict()) == due


def test_counters_count_no_more_than_there_was_when_the_job_was_served() -> None:
    tale = Tale()
    tale.add(0)
    tale.say(1, "unqueue", "n1", job=JOB, cause="served")
    tale.say(1, "serve", "n1", job=JOB, client="c1", cause="served")
    tale.requeue(12, "n2")
    detail = "nacks=0 additional=1 body=b"
    tale.say(13, "get.deliver", "n1", job=JOB, client="c1", detail=detail)

    assert broken(tale.verdict()) == ["S14"]


def test_a_copy_that_came_with_counters_may_be_told_of_a_requeue_once_more() -> None:
    tale = Tale()
    tale.add(0)
    tale.crash(1, "n3", back=2)
    tale.requeue(3, "n2")
    tale.copy(4, "n2", "n3")
    tale.requeue(14, "n3")
    tale.say(15, "unqueue", "n3", job=JOB, cause="served")
    tale.say(15, "serve", "n3", job=JOB, client="c1", cause="served")
    detail = "nacks=0 additional=3 body=b"
    tale.say(15.1, "get.deliver", "n3", job=JOB, client="c1", detail=detail)

    assert "S14" not in broken(tale.verdict())


@pytest.mark.parametrize("additional", [[0, 1, 0], [1, 1, 1], [0, 0, 0], [0, 1, 1]])
def test_counters_neither_go_down_nor_invent_nor_forget(additional: list[int]) -> None:
    assert broken(counting(additional).verdict()) == ["S14"]


@pytest.mark.parametrize(("nacks", "due"), [(0, ["S14"]), (1, [])])
def test_a_nack_is_counted_where_it_was_given(nacks: int, due: list[str]) -> None:
    tale = Tale()
    tale.add(0)
    tale.serve(1)
    tale.say(2, "nack.invoke", "n1", job=JOB, client="c1", ref=7)
    tale.requeue(2, "n1", "nack")
    tale.say(2.1, "unqueue", "n1", job=JOB, cause="served")
    tale.say(2.1, "serve", "n1", job=JOB, client="c2", cause="served")
    detail = f"nacks={nacks} additional=0 body=b"
    tale.say(2.2, "get.deliver", "n1", job=JOB, client="c2", detail=detail)

    assert broken(tale.verdict()) == due


def test_a_copy_that_begins_anew_begins_to_count_anew() -> None:
    tale = Tale()
    tale.add(0)
    tale.requeue(11, "n2")
    tale.crash(12, "n2", back=13)
    tale.copy(14, "n1", "n2")
    tale.say(20, "queue", "n2", job=JOB, cause="enqueue-message")
    tale.say(21, "unqueue", "n2", job=JOB, cause="served")
    tale.say(21, "serve", "n2", job=JOB, client="c1", cause="served")
    detail = "nacks=0 additional=0 body=b"
    tale.say(21.1, "get.deliver", "n2", job=JOB, client="c1", detail=detail)

    assert "S14" not in broken(tale.verdict())
