import pytest

from disque_trio.sim.scenarios.plan import ClockPlan, LinkPlan
from tests.sim.checkers.trace import JOB, ONCE, Trace, broken


def a_quiet_life() -> Trace:
    trace = Trace()
    trace.add(0)
    trace.serve(1)
    trace.working(1, "n1", "n2", "n3")
    trace.ack(2)
    trace.setack(2.001, "n1", "n2")
    trace.setack(2.001, "n1", "n3")
    trace.collect(2.01, "n1", "n2", "n3")
    return trace


def test_a_quiet_life_breaks_nothing() -> None:
    verdict = a_quiet_life().verdict()

    assert verdict.ok
    assert (verdict.deliveries, verdict.distinct, verdict.duplicates) == (1, 1, {})
    assert verdict.marks["collected"] == 1


# S1


def test_copies_that_faults_destroy_are_excused() -> None:
    trace = Trace()
    trace.add(0)
    trace.crash(1, "n2")
    trace.crash(2, "n3")

    assert trace.verdict().ok


def test_a_copy_that_just_goes_breaks_retention() -> None:
    trace = Trace()
    trace.add(0)
    trace.row(1, "drop", "n2", job=JOB, cause="deljob")

    assert "S1" in broken(trace.verdict())


def test_fewer_copies_than_promised_at_the_start_break_retention() -> None:
    trace = Trace()
    trace.add(0, to=("n2",))

    assert broken(trace.verdict()) == ["S1"]


def test_a_holder_that_crashed_before_the_reply_counts_as_destroyed() -> None:
    trace = Trace()
    trace.add(0)
    trace.crash(0.008, "n3")

    assert trace.verdict().ok


def test_async_jobs_are_promised_nothing() -> None:
    trace = Trace()
    trace.add(0, to=(), options="replicate=3 retry=10 ttl=3600 async")

    assert trace.verdict().ok


def test_nothing_is_promised_of_jobs_that_are_done() -> None:
    trace = Trace()
    trace.add(0)
    trace.serve(1)
    trace.fastack(2)
    for node in ("n2", "n3"):
        trace.send(2.001, "deljob", "n1", node)
        trace.row(2.003, "drop", node, job=JOB, cause="deljob")

    assert trace.verdict().ok


def test_a_copy_that_has_been_made_again_is_promised_as_the_first_was() -> None:
    trace = Trace()
    trace.add(0, to=("n2",), options="replicate=2 retry=10 ttl=3600")
    trace.crash(1, "n2")
    trace.copy(2, "n1", "n3")
    assert trace.verdict(end=2.5).ok

    trace.row(3, "drop", "n3", job=JOB, cause="deljob")

    assert "S1" in broken(trace.verdict())


# S3, S4


def test_a_job_that_nobody_has_added_is_an_invention() -> None:
    trace = Trace()
    trace.add(0)
    trace.row(1, "hold", "n1", job="D-01234567-CCCCCCCCCCCCCCCCCCCCCCCC-003d", cause="add")
    trace.deliver(2, job="D-01234567-CCCCCCCCCCCCCCCCCCCCCCCC-003d", body="other")

    assert "S3" in broken(trace.verdict())


@pytest.mark.parametrize(("queue", "body"), [("other", "b"), ("q", "B")])
def test_a_job_comes_out_as_it_was_put_in(queue: str, body: str) -> None:
    trace = Trace()
    trace.add(0)
    trace.row(1, "unqueue", "n1", job=JOB, cause="served")
    trace.row(1, "serve", "n1", job=JOB, client="c1", cause="served")
    trace.row(1.1, "get.deliver", "n1", job=JOB, queue=queue, client="c1", detail=f"body={body}")

    assert broken(trace.verdict()) == ["S3"]


def test_a_job_with_an_unknown_add_is_found_by_its_body() -> None:
    trace = Trace()
    trace.add(0, outcome="unknown")
    trace.serve(1)

    verdict = trace.verdict()

    assert verdict.ok
    assert verdict.metrics.recovered == 1


def test_an_id_is_given_out_once() -> None:
    trace = Trace()
    trace.add(0, body="one")
    trace.add(1, node="n2", to=(), body="two")

    assert "S4" in broken(trace.verdict())


def test_two_jobs_with_one_body_are_told_apart_by_the_replies() -> None:
    """Both come out before their producers have the replies."""
    trace = Trace()
    options = "timeout=1000 replicate=1 retry=10 ttl=3600 body=b"
    jobs = {JOB: "p1", "D-01234567-CCCCCCCCCCCCCCCCCCCCCCCC-003d": "p2"}
    for producer in jobs.values():
        trace.row(1, "add.invoke", "n1", queue="q", client=producer, ref=70, detail=options)
    for job in jobs:
        trace.row(1.001, "hold", "n1", job=job, cause="add")
        trace.row(1.001, "queue", "n1", job=job, cause="first")
    for at, (job, producer) in enumerate(jobs.items()):
        trace.serve(1.002 + at / 100, job=job)
        trace.row(1.004 + at / 100, "add.ok", "n1", job=job, client=producer, ref=70)

    assert "S4" not in broken(trace.verdict())


def test_the_parity_of_an_id_tells_retry() -> None:
    trace = Trace()
    trace.add(0, ONCE)

    assert broken(trace.verdict()) == ["S4"]


# S5


def once(trace: Trace) -> None:
    trace.add(0, ONCE, to=(), options="replicate=1 retry=0 ttl=3600")


def test_a_job_of_at_most_one_delivery_may_move_and_be_served_there() -> None:
    trace = Trace()
    once(trace)
    trace.row(1, "unqueue", "n1", job=ONCE, cause="given")
    trace.row(1, "give", "n1", job=ONCE, peer="n2", cause="given")
    trace.row(1, "drop", "n1", job=ONCE, cause="moved")
    trace.send(1, "yourjobs", "n1", "n2", ONCE, detail=f"jobs={ONCE} holders=n1")
    trace.row(1.002, "hold", "n2", job=ONCE, cause="yourjobs")
    trace.requeue(1.002, "n2", "import", ONCE)
    trace.serve(1.002, "n2", "c2", ONCE)

    verdict = trace.verdict()

    assert verdict.ok
    assert verdict.marks["federation.moved_once"] == 1


def test_a_second_delivery_of_it_breaks_the_promise() -> None:
    trace = Trace()
    once(trace)
    trace.serve(1, job=ONCE)
    trace.requeue(2, "n1", "retry", ONCE)
    trace.serve(3, job=ONCE)

    assert "S5" in broken(trace.verdict())


def test_hostile_links_promise_no_single_delivery() -> None:
    trace = Trace(link=LinkPlan(model="hostile"))
    once(trace)
    trace.serve(1, job=ONCE)
    trace.requeue(20, "n1", "retry", ONCE)
    trace.serve(30, job=ONCE)

    verdict = trace.verdict()

    assert "S5" not in broken(verdict)
    assert "S5" in verdict.not_judged


def test_a_crash_explains_that_it_never_comes() -> None:
    trace = Trace()
    once(trace)
    trace.crash(1, "n1", back=2)
    trace.heal(3)

    verdict = trace.verdict(end=400)

    assert verdict.ok
    assert verdict.lost_once == 1


def test_without_a_cause_it_must_come() -> None:
    trace = Trace()
    once(trace)
    trace.row(1, "drop", "n1", job=ONCE, cause="moved")

    assert "S5" in broken(trace.verdict(end=10))


# S6, S7


@pytest.mark.parametrize(("wait", "due"), [(5.0, []), (4.9, ["S6"])])
def test_a_job_waits_for_its_delay(wait: float, due: list[str]) -> None:
    trace = Trace()
    trace.add(0, options="replicate=3 retry=10 ttl=3600 delay=5", is_queued=False)
    trace.requeue(wait, "n1", "delay-over")

    assert broken(trace.verdict()) == due


@pytest.mark.parametrize("outcome", ["ok", "unknown"])
def test_a_job_that_is_queued_before_its_producer_knows_of_it_waits_too(outcome: str) -> None:
    trace = Trace()
    trace.add(0, options="replicate=3 retry=10 ttl=3600 delay=5", outcome=outcome)
    trace.serve(1)

    assert broken(trace.verdict()) == ["S6"]


def test_a_fast_clock_may_be_early() -> None:
    trace = Trace(clocks=[ClockPlan(drift_ppm=50_000)])
    trace.add(0, options="replicate=3 retry=10 ttl=3600 delay=5", is_queued=False)
    trace.requeue(4.8, "n1", "delay-over")

    assert trace.verdict().ok


def test_a_client_may_queue_a_job_before_its_delay() -> None:
    trace = Trace()
    trace.add(0, options="replicate=3 retry=10 ttl=3600 delay=5", is_queued=False)
    trace.requeue(1, "n1", "enqueue")

    assert trace.verdict().ok


@pytest.mark.parametrize(("mode", "due"), [("out", []), ("in", ["S6"]), ("all", ["S6"])])
def test_a_queue_that_is_paused_takes_no_job_back(mode: str, due: list[str]) -> None:
    trace = Trace()
    trace.add(0)
    trace.serve(1)
    trace.working(1, "n1", "n2", "n3")
    trace.row(2, "pause-queue", "n2", detail=f"q {mode}")
    trace.requeue(11.5, "n2")

    assert broken(trace.verdict()) == due


@pytest.mark.parametrize(("mode", "due"), [("in", []), ("out", ["S6"]), ("none", [])])
def test_a_queue_that_is_paused_delivers_nothing(mode: str, due: list[str]) -> None:
    trace = Trace()
    trace.add(0)
    trace.row(2, "pause-queue", "n1", detail=f"q {mode}")
    trace.serve(4)

    assert broken(trace.verdict()) == due


def test_a_restart_forgets_that_a_queue_was_paused() -> None:
    trace = Trace()
    trace.add(0)
    trace.row(2, "pause-queue", "n1", detail="q out")
    trace.crash(3, "n1", back=4)
    trace.copy(5, "n2", "n1")
    trace.requeue(16, "n1")
    trace.serve(17)

    assert "S6" not in broken(trace.verdict())


@pytest.mark.parametrize(("time", "due"), [(59.9, []), (60.1, ["S7"])])
def test_nothing_is_delivered_after_its_ttl(time: float, due: list[str]) -> None:
    trace = Trace()
    trace.add(0, options="replicate=3 retry=100 ttl=60")
    trace.serve(time)

    assert broken(trace.verdict()) == due


@pytest.mark.parametrize(("time", "due"), [(61.0, []), (61.1, ["S7"])])
def test_a_copy_lives_a_second_longer_for_its_seconds_are_rounded_up(
    time: float, due: list[str]
) -> None:
    trace = Trace()
    trace.add(0, options="replicate=3 retry=50 ttl=60", is_queued=False)
    trace.requeue(50, "n2")
    trace.serve(time, "n2", "c2")

    assert broken(trace.verdict())[:1] == due
