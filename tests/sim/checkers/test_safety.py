import pytest

from disque_trio.sim.scenarios.plan import ClockPlan, LinkPlan
from tests.sim.checkers.scenario import JOB, ONCE, Tale, broken


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
