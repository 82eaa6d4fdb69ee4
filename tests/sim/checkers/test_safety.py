import pytest

from disque_trio.sim.plan import ClockPlan, Fault, LinkPlan
from tests.sim.checkers.tale import JOB, ONCE, Tale, broken


def a_quiet_life() -> Tale:
    tale = Tale()
    tale.add(0)
    tale.serve(1)
    tale.working(1, "n1", "n2", "n3")
    tale.ack(2)
    tale.told_of_ack(2.001, "n1", "n2")
    tale.told_of_ack(2.001, "n1", "n3")
    tale.collect(2.01, "n1", "n2", "n3")
    return tale


def test_a_quiet_life_breaks_nothing() -> None:
    verdict = a_quiet_life().verdict()

    assert verdict.ok
    assert (verdict.deliveries, verdict.distinct, verdict.duplicates) == (1, 1, {})
    assert verdict.marks["collected"] == 1


# S1


def test_copies_that_faults_destroy_are_excused() -> None:
    tale = Tale()
    tale.add(0)
    tale.crash(1, "n2")
    tale.crash(2, "n3")

    assert tale.verdict().ok


def test_a_copy_that_just_goes_breaks_retention() -> None:
    tale = Tale()
    tale.add(0)
    tale.say(1, "drop", "n2", job=JOB, cause="deljob")

    assert "S1" in broken(tale.verdict())


def test_fewer_copies_than_promised_at_the_start_break_retention() -> None:
    tale = Tale()
    tale.add(0, to=("n2",))

    assert broken(tale.verdict()) == ["S1"]


def test_a_holder_that_crashed_before_the_reply_counts_as_destroyed() -> None:
    tale = Tale()
    tale.add(0)
    tale.crash(0.008, "n3")

    assert tale.verdict().ok


def test_async_jobs_are_promised_nothing() -> None:
    tale = Tale()
    tale.add(0, to=(), options="replicate=3 retry=10 ttl=3600 async")

    assert tale.verdict().ok


def test_nothing_is_promised_of_jobs_that_are_done() -> None:
    tale = Tale()
    tale.add(0)
    tale.serve(1)
    tale.fastack(2)
    for node in ("n2", "n3"):
        tale.tell(2.001, "deljob", "n1", node)
        tale.say(2.003, "drop", node, job=JOB, cause="deljob")

    assert tale.verdict().ok


def test_a_copy_that_has_been_made_again_is_promised_as_the_first_was() -> None:
    tale = Tale()
    tale.add(0, to=("n2",), options="replicate=2 retry=10 ttl=3600")
    tale.crash(1, "n2")
    tale.copy(2, "n1", "n3")
    assert tale.verdict(end=2.5).ok

    tale.say(3, "drop", "n3", job=JOB, cause="deljob")

    assert "S1" in broken(tale.verdict())


# S3, S4


def test_a_job_that_nobody_has_added_is_an_invention() -> None:
    tale = Tale()
    tale.add(0)
    tale.say(1, "hold", "n1", job="D-01234567-CCCCCCCCCCCCCCCCCCCCCCCC-003d", cause="add")
    tale.deliver(2, job="D-01234567-CCCCCCCCCCCCCCCCCCCCCCCC-003d", body="other")

    assert "S3" in broken(tale.verdict())


@pytest.mark.parametrize(("queue", "body"), [("other", "b"), ("q", "B")])
def test_a_job_comes_out_as_it_was_put_in(queue: str, body: str) -> None:
    tale = Tale()
    tale.add(0)
    tale.say(1, "unqueue", "n1", job=JOB, cause="served")
    tale.say(1, "serve", "n1", job=JOB, client="c1", cause="served")
    tale.say(1.1, "get.deliver", "n1", job=JOB, queue=queue, client="c1", detail=f"body={body}")

    assert broken(tale.verdict()) == ["S3"]


def test_a_job_whose_producer_never_heard_of_it_is_found_by_its_body() -> None:
    tale = Tale()
    tale.add(0, outcome="unknown")
    tale.serve(1)

    verdict = tale.verdict()

    assert verdict.ok
    assert verdict.metrics.recovered == 1


def test_an_id_is_given_out_once() -> None:
    tale = Tale()
    tale.add(0, body="one")
    tale.add(1, node="n2", to=(), body="two")

    assert "S4" in broken(tale.verdict())


def test_the_parity_of_an_id_tells_retry() -> None:
    tale = Tale()
    tale.add(0, ONCE)

    assert broken(tale.verdict()) == ["S4"]


# S5


def once(tale: Tale) -> None:
    tale.add(0, ONCE, to=(), options="replicate=1 retry=0 ttl=3600")


def test_a_job_of_at_most_one_delivery_may_move_and_be_served_there() -> None:
    tale = Tale()
    once(tale)
    tale.say(1, "unqueue", "n1", job=ONCE, cause="given")
    tale.say(1, "give", "n1", job=ONCE, peer="n2", cause="given")
    tale.say(1, "drop", "n1", job=ONCE, cause="moved")
    tale.tell(1, "yourjobs", "n1", "n2", ONCE, detail=f"jobs={ONCE} holders=n1")
    tale.say(1.002, "hold", "n2", job=ONCE, cause="yourjobs")
    tale.requeue(1.002, "n2", "import", ONCE)
    tale.serve(1.002, "n2", "c2", ONCE)

    verdict = tale.verdict()

    assert verdict.ok
    assert verdict.marks["federation.moved_once"] == 1


def test_a_second_delivery_of_it_breaks_the_promise() -> None:
    tale = Tale()
    once(tale)
    tale.serve(1, job=ONCE)
    tale.requeue(2, "n1", "retry", ONCE)
    tale.serve(3, job=ONCE)

    assert "S5" in broken(tale.verdict())


def test_hostile_links_promise_no_single_delivery() -> None:
    tale = Tale(link=LinkPlan(model="hostile"))
    once(tale)
    tale.serve(1, job=ONCE)
    tale.requeue(20, "n1", "retry", ONCE)
    tale.serve(30, job=ONCE)

    verdict = tale.verdict()

    assert "S5" not in broken(verdict)
    assert "S5" in verdict.not_judged


def test_a_crash_explains_that_it_never_comes() -> None:
    tale = Tale()
    once(tale)
    tale.crash(1, "n1", back=2)
    tale.heal(3)

    verdict = tale.verdict(end=400)

    assert verdict.ok
    assert verdict.lost_once == 1


def test_without_a_cause_it_must_come() -> None:
    tale = Tale()
    once(tale)
    tale.say(1, "drop", "n1", job=ONCE, cause="moved")

    assert "S5" in broken(tale.verdict(end=10))


# S6, S7


@pytest.mark.parametrize(("wait", "due"), [(5.0, []), (4.9, ["S6"])])
def test_a_job_waits_for_its_delay(wait: float, due: list[str]) -> None:
    tale = Tale()
    tale.add(0, options="replicate=3 retry=10 ttl=3600 delay=5", is_queued=False)
    tale.requeue(wait, "n1", "delay-over")

    assert broken(tale.verdict()) == due


@pytest.mark.parametrize("outcome", ["ok", "unknown"])
def test_a_job_that_is_queued_before_its_producer_knows_of_it_waits_too(outcome: str) -> None:
    tale = Tale()
    tale.add(0, options="replicate=3 retry=10 ttl=3600 delay=5", outcome=outcome)
    tale.serve(1)

    assert broken(tale.verdict()) == ["S6"]


def test_a_fast_clock_may_be_early() -> None:
    tale = Tale(clocks=[ClockPlan(drift_ppm=50_000)])
    tale.add(0, options="replicate=3 retry=10 ttl=3600 delay=5", is_queued=False)
    tale.requeue(4.8, "n1", "delay-over")

    assert tale.verdict().ok


def test_a_client_may_queue_a_job_before_its_delay() -> None:
    tale = Tale()
    tale.add(0, options="replicate=3 retry=10 ttl=3600 delay=5", is_queued=False)
    tale.requeue(1, "n1", "enqueue")

    assert tale.verdict().ok


@pytest.mark.parametrize(("mode", "due"), [("out", []), ("in", ["S6"]), ("all", ["S6"])])
def test_a_queue_that_is_paused_takes_no_job_back(mode: str, due: list[str]) -> None:
    tale = Tale()
    tale.add(0)
    tale.serve(1)
    tale.working(1, "n1", "n2", "n3")
    tale.say(2, "pause-queue", "n2", detail=f"q {mode}")
    tale.requeue(11.5, "n2")

    assert broken(tale.verdict()) == due


@pytest.mark.parametrize(("mode", "due"), [("in", []), ("out", ["S6"]), ("none", [])])
def test_a_queue_that_is_paused_delivers_nothing(mode: str, due: list[str]) -> None:
    tale = Tale()
    tale.add(0)
    tale.say(2, "pause-queue", "n1", detail=f"q {mode}")
    tale.serve(4)

    assert broken(tale.verdict()) == due


def test_a_restart_forgets_that_a_queue_was_paused() -> None:
    tale = Tale()
    tale.add(0)
    tale.say(2, "pause-queue", "n1", detail="q out")
    tale.crash(3, "n1", back=4)
    tale.copy(5, "n2", "n1")
    tale.requeue(16, "n1")
    tale.serve(17)

    assert "S6" not in broken(tale.verdict())


@pytest.mark.parametrize(("time", "due"), [(59.9, []), (60.1, ["S7"])])
def test_nothing_is_delivered_after_its_ttl(time: float, due: list[str]) -> None:
    tale = Tale()
    tale.add(0, options="replicate=3 retry=100 ttl=60")
    tale.serve(time)

    assert broken(tale.verdict()) == due


@pytest.mark.parametrize(("time", "due"), [(61.0, []), (61.1, ["S7"])])
def test_a_copy_lives_a_second_longer_for_its_seconds_are_rounded_up(
    time: float, due: list[str]
) -> None:
    tale = Tale()
    tale.add(0, options="replicate=3 retry=50 ttl=60", is_queued=False)
    tale.requeue(50, "n2")
    tale.serve(time, "n2", "c2")

    assert broken(tale.verdict())[:1] == due


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


@pytest.mark.parametrize("additional", [[0, 1, 0], [1, 1, 1]])
def test_counters_neither_go_down_nor_invent(additional: list[int]) -> None:
    assert broken(counting(additional).verdict()) == ["S14"]
