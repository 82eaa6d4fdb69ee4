import pytest

from disque_trio.sim.scenarios.plan import Expect, LinkPlan
from disque_trio.tracing.rows import Row
from tests.sim.checkers.duplicated import acknowledged, again, behind_a_cut, leased
from tests.sim.checkers.trace import JOB, ONCE, Trace, broken


@pytest.mark.parametrize("is_given", [True, False])
def test_d0_goes_back_over_the_giver_to_a_node_whose_addjob_waited(*, is_given: bool) -> None:
    trace = Trace()
    asked = "timeout=20000 replicate=2 retry=10 ttl=3600 body=b"
    trace.row(0, "add.invoke", "n1", queue="q", client="p1", ref=77, detail=asked)
    trace.row(0, "hold", "n1", job=JOB, cause="add")
    trace.copy(0, "n1", "n2")
    trace.requeue(10.9, "n2")
    trace.serve(10.9, "n2")
    trace.working(10.9, "n2", "n1")
    trace.row(11, "nack.invoke", "n2", job=JOB, client="c1", ref=99)
    trace.requeue(11, "n2", "nack")
    if is_given:
        trace.row(11.1, "unqueue", "n2", job=JOB, cause="given")
        trace.row(11.1, "give", "n2", job=JOB, peer="n1", cause="given")
        trace.send(11.1, "yourjobs", "n2", "n1", detail=f"jobs={JOB} holders=n1,n2")
    again(trace, 11.2, "n1", "first")

    assert trace.verdict().duplicates == ({"D0": 1} if is_given else {"DX": 1})


@pytest.mark.parametrize(("is_introduced", "cause"), [(True, "DX"), (False, "D6")])
def test_d6_the_server_did_not_know_the_holder_and_nothing_once_it_was_told(
    is_introduced: bool, cause: str
) -> None:
    trace = Trace()
    trace.add(0, to=("n3",), options="replicate=2 retry=10 ttl=3600")
    trace.copy(1, "n3", "n2")
    if is_introduced:
        trace.send(2, "holders", "n3", "n1", detail="holders=n1,n3,n2")
    trace.serve(5)
    trace.working(5, "n1", "n3")
    again(trace, 10)

    assert trace.verdict().duplicates == {cause: 1}


def test_d6_the_acker_did_not_know_the_holder() -> None:
    trace = Trace()
    trace.add(0, to=("n3",), options="replicate=2 retry=10 ttl=3600")
    trace.copy(0.5, "n3", "n2")
    trace.serve(1)
    trace.working(1, "n1", "n3")
    trace.working(1, "n3", "n2")
    trace.crash(4, "n3")
    trace.ack(5)
    again(trace, 12)

    assert trace.verdict().duplicates == {"D6": 1}


@pytest.mark.parametrize(("have_met", "cause"), [(True, "DX"), (False, "D4")])
def test_d4_of_two_holders_that_have_not_met_and_nothing_once_they_have(
    have_met: bool, cause: str
) -> None:
    trace = Trace()
    trace.row(-300, "wipe", "n3")
    trace.row(-300, "start", "n3", cause="fresh")
    trace.add(0, to=(), is_queued=False)
    for node in ("n2", "n3"):
        trace.send(0, "repljob", "n1", node, detail=f"jobs={JOB} holders=n1,n2,n3")
        trace.row(0.002, "hold", node, job=JOB, cause="repljob")
    trace.requeue(60, "n2")
    trace.serve(60, "n2", "c1")
    trace.send(60, "working", "n2", "n1")
    if have_met:
        for node, peer in (("n2", "n3"), ("n3", "n2")):
            trace.send(2, "setack", node, peer, ONCE, detail="holders=0")
    again(trace, 60.5, "n3")

    assert trace.verdict().duplicates == {cause: 1}


def test_d7_a_copy_came_too_late() -> None:
    trace = acknowledged(told=("n3",))
    trace.setack(5.001, "n1", "n2")
    trace.collect(5.1, "n1", "n2", "n3")
    trace.copy(8, "n1", "n2")
    again(trace, 19)

    verdict = trace.verdict()

    assert verdict.duplicates == {"D7": 1}
    assert verdict.marks["late_repljob"] == 1


def test_a_dummy_ack_is_no_copy_that_came_too_late() -> None:
    """n2 gives the job to n3 over a slow link, and has dropped its copy when an ack comes to it."""
    trace = leased()
    trace.requeue(11, "n2")
    trace.row(11.5, "unqueue", "n2", job=JOB, cause="given")
    trace.row(11.5, "give", "n2", job=JOB, peer="n3", cause="given")
    trace.row(
        11.5, "send", "n2", peer="n3", cause="yourjobs", detail=f"jobs={JOB} holders=n2", ref=99
    )
    trace.requeue(12, "n3")
    trace.serve(12, "n3", "c2")
    trace.fastack(12.1, "n1")
    trace.send(12.101, "deljob", "n1", "n2")
    trace.row(12.103, "drop", "n2", job=JOB, cause="deljob")
    trace.row(12.2, "hold", "n2", job=JOB, cause="dummy")
    trace.send(12.2, "setack", "n2", "n3", lag=2, detail="holders=0")
    trace.row(
        13, "recv", "n3", peer="n2", cause="yourjobs", detail=f"jobs={JOB} holders=n2", ref=99
    )
    again(trace, 13, "n3", "import")

    assert "D7" not in trace.verdict().duplicates


@pytest.mark.parametrize(("told", "is_late"), [(13, False), (12.5, True)])
def test_a_node_that_hears_of_the_end_with_the_copy_had_not_forgotten_the_job(
    told: float, *, is_late: bool
) -> None:
    """n1 gives the job to n3, which stands still. After RETRY n1 serves the job."""
    trace = Trace()
    trace.add(0, to=(), options="replicate=1 retry=10 ttl=3600")
    trace.row(2.5, "unqueue", "n1", job=JOB, cause="given")
    trace.row(2.5, "give", "n1", job=JOB, peer="n3", cause="given")
    trace.row(
        2.5, "send", "n1", peer="n3", cause="yourjobs", detail=f"jobs={JOB} holders=n1", ref=99
    )
    trace.requeue(12, "n1")
    trace.serve(12, "n1")
    trace.fastack(12.1, "n1")
    trace.row(12.1, "send", "n1", peer="n3", job=JOB, cause="deljob", ref=98)
    trace.row(
        13, "recv", "n3", peer="n1", cause="yourjobs", detail=f"jobs={JOB} holders=n1", ref=99
    )
    trace.row(told, "recv", "n3", peer="n1", job=JOB, cause="deljob", ref=98)
    trace.row(13, "hold", "n3", job=JOB, queue="q", cause="yourjobs")
    again(trace, 13, "n3", "import")

    assert ("D7" in trace.verdict().duplicates) == is_late


@pytest.mark.parametrize(("why", "cause"), [("client-deljob", "D5"), ("expired", "DX")])
def test_d5_of_a_job_that_was_given_twice_by_one_message(why: str, cause: str) -> None:
    trace = Trace()
    trace.add(0, to=("n3",), options="replicate=2 retry=10 ttl=3600")
    trace.row(2, "unqueue", "n1", job=JOB, cause="given")
    trace.row(2, "give", "n1", job=JOB, peer="n2", cause="given")
    what = f"jobs={JOB} holders=n1,n2,n3"
    trace.row(2, "send", "n1", peer="n2", cause="yourjobs", detail=what, ref=99)
    for time, client in ((2.01, "c1"), (2.3, "c2")):
        trace.row(time, "recv", "n2", peer="n1", cause="yourjobs", detail=what, ref=99)
        trace.row(time, "hold", "n2", job=JOB, queue="q", cause="yourjobs")
        trace.requeue(time, "n2", "import")
        trace.serve(time, "n2", client)
        trace.working(time, "n2", "n1", "n3")
        trace.row(time + 0.1, "drop", "n2", job=JOB, cause=why)

    assert trace.verdict().duplicates == {cause: 1}


@pytest.mark.parametrize(
    ("lease", "link", "cause"),
    [("no", "hostile", "D5"), ("yes", "hostile", "DX"), ("no", "stream", "DX")],
)
def test_d5_of_a_job_that_came_twice_to_a_node_without_leases(
    lease: str, link: str, cause: str
) -> None:
    trace = Trace(link=LinkPlan(model=link), config=[("delivery-lease", lease)])
    trace.add(0)
    trace.row(2, "unqueue", "n1", job=JOB, cause="given")
    trace.row(2, "give", "n1", job=JOB, peer="n2", cause="given")
    what = f"jobs={JOB} holders=n1,n2,n3"
    trace.row(2, "send", "n1", peer="n2", cause="yourjobs", detail=what, ref=99)
    for time, client in ((2.01, "c1"), (2.05, "c2")):
        trace.row(time, "recv", "n2", peer="n1", cause="yourjobs", detail=what, ref=99)
        again(trace, time, "n2", "import", client)

    assert trace.verdict().duplicates == {cause: 1}


@pytest.mark.parametrize(("lease", "cause"), [("no", "D5"), ("yes", "DX")])
def test_d5_also_if_that_node_gave_it_on_the_second_time(lease: str, cause: str) -> None:
    """everything, seed 905."""
    config = [("delivery-lease", lease)]
    trace = Trace(link=LinkPlan(model="hostile"), config=config)
    trace.add(0)
    what = f"jobs={JOB} holders=n1,n2,n3"
    for time, giver, taker, ref in ((2, "n1", "n2", 99), (3, "n2", "n3", 100)):
        trace.row(time, "unqueue", giver, job=JOB, cause="given")
        trace.row(time, "give", giver, job=JOB, peer=taker, cause="given")
        trace.row(time, "send", giver, peer=taker, cause="yourjobs", detail=what, ref=ref)
        trace.row(time + 0.1, "recv", taker, peer=giver, cause="yourjobs", detail=what, ref=ref)
        again(trace, time + 0.1, taker, "import", f"c{taker[1:]}")
        if taker == "n2":
            trace.row(2.2, "recv", "n2", peer="n1", cause="yourjobs", detail=what, ref=ref)
            trace.requeue(2.2, "n2", "import")

    assert trace.verdict().duplicates == {cause: 1}


def test_d7_after_a_node_said_that_it_knows_nothing() -> None:
    trace = Trace()
    trace.add(0, to=("n2",), options="replicate=2 retry=10 ttl=3600")
    trace.serve(1)
    trace.ack(2)
    trace.send(2.001, "setack", "n1", "n3", detail="holders=3")
    trace.send(2.003, "gotack", "n3", "n1", detail="unknown")
    trace.setack(2.001, "n1", "n2")
    trace.copy(2.5, "n1", "n3")
    trace.collect(2.6, "n1", "n2")
    again(trace, 13, "n3")

    assert trace.verdict().duplicates == {"D7": 1}


@pytest.mark.parametrize(
    ("gone", "why", "back", "cause"),
    [
        (2, "deljob", 3, "D5"),
        (12.43, "deljob", 12.46, "D7"),
        (12.43, "client-deljob", 12.46, "D5"),
        (12.43, "add-failed", 12.46, "D5"),
    ],
)
def test_d7_only_of_a_node_that_let_the_job_go_with_the_ack(
    gone: float, why: str, back: float, cause: str
) -> None:
    trace = leased()
    trace.row(gone, "drop", "n2", job=JOB, cause=why)
    trace.copy(back, "n3", "n2")
    trace.ack(12.4)
    trace.send(12.401, "setack", "n1", "n2", lag=0.2)
    again(trace, 12.5)

    assert trace.verdict().duplicates == {cause: 1}


def test_d5_of_a_giver_whose_copy_was_cleaned_up_before_the_ack() -> None:
    trace = leased()
    trace.requeue(10.9, "n2")
    trace.row(10.9, "unqueue", "n2", job=JOB, cause="given")
    trace.row(10.9, "give", "n2", job=JOB, peer="n3", cause="given")
    trace.send(10.9, "yourjobs", "n2", "n3", lag=1.1, detail=f"jobs={JOB} holders=n1,n2,n3")
    trace.row(11, "drop", "n2", job=JOB, cause="deljob")
    trace.requeue(11.5, "n1")
    trace.serve(11.5, "n1")
    trace.send(11.5, "working", "n1", "n3", lag=1)
    trace.row(11.9, "hold", "n2", job=JOB, cause="dummy")
    trace.send(11.901, "setack", "n2", "n3", lag=0.2)
    again(trace, 12, "n3", "import")

    assert trace.verdict().duplicates == {"D1": 1, "D5": 1}


@pytest.mark.parametrize(("lag", "cause"), [(12, "D5"), (1, "DX")])
def test_d5_the_ack_had_not_reached_the_only_node_that_could_pass_it_on(
    lag: int, cause: str
) -> None:
    trace = leased(Trace(nodes=4))
    trace.requeue(10.9, "n2")
    trace.row(10.9, "unqueue", "n2", job=JOB, cause="given")
    trace.row(10.9, "give", "n2", job=JOB, peer="n4", cause="given")
    trace.send(10.9, "yourjobs", "n2", "n4", detail=f"jobs={JOB} holders=n1,n2,n3,n4")
    trace.row(10.902, "hold", "n4", job=JOB, cause="yourjobs")
    again(trace, 10.902, "n4", "import")
    trace.ack(11.5)
    trace.send(11.501, "setack", "n1", "n2", lag=lag)
    trace.setack(11.501, "n1", "n3")
    again(trace, 20.9, "n4")

    assert trace.verdict().duplicates == {"D1": 1, cause: 1}


def test_d8_a_copy_came_back_from_the_disk() -> None:
    trace = acknowledged(Trace(config=[("appendonly", "yes")]), told=("n2", "n3"))
    trace.collect(5.1, "n1", "n2", "n3")
    trace.row(6, "crash", "n2", cause="power")
    trace.row(7, "hold", "n2", job=JOB, cause="loaded")
    trace.row(7, "start", "n2", cause="loaded")
    again(trace, 18)

    assert trace.verdict().duplicates == {"D8": 1}


def test_d10_a_clock_jumped() -> None:
    trace = leased()
    trace.row(3, "clock.step", "n2", detail="3600000")
    again(trace, 4)

    assert trace.verdict().duplicates == {"D10": 1}


def test_d11_acknowledged_while_it_moved() -> None:
    trace = leased()
    trace.requeue(11, "n3")
    trace.ack(10.95)
    trace.send(10.951, "setack", "n1", "n3", lag=0.2)
    trace.row(11, "unqueue", "n3", job=JOB, cause="given")
    trace.row(11, "give", "n3", job=JOB, peer="n2", cause="given")
    trace.send(11, "yourjobs", "n3", "n2", lag=0.1, detail=f"jobs={JOB} holders=n1,n2,n3")
    trace.row(11.05, "acked", "n3", job=JOB, cause="ackjob")
    trace.send(11.051, "setack", "n3", "n2", lag=0.1)
    again(trace, 11.1, "n2", "import")

    assert trace.verdict().duplicates == {"D11": 1}


def test_d12_an_add_that_failed_left_copies() -> None:
    trace = Trace()
    trace.add(0, outcome="unknown")
    trace.serve(1)
    trace.working(1, "n1", "n2", "n3")
    again(trace, 5)

    assert trace.verdict().duplicates == {"D12": 1}


def test_d13_is_told_apart_for_it_is_no_duplicate() -> None:
    trace = Trace()
    other = "D-01234567-CCCCCCCCCCCCCCCCCCCCCCCC-003d"
    trace.add(0)
    trace.add(1, other)
    trace.serve(2)
    trace.serve(3, job=other)

    verdict = trace.verdict()

    assert verdict.ok
    assert verdict.duplicates == {}
    assert verdict.metrics.repeated == 1


def test_dx_a_node_that_was_told_delivers_all_the_same() -> None:
    trace = Trace()
    trace.add(0)
    trace.requeue(0.5, "n2")
    trace.serve(1)
    trace.working(1, "n1", "n2", "n3")
    trace.serve(2, "n2", "c2")

    verdict = trace.verdict()

    assert verdict.duplicates == {"DX": 1}
    assert "DX" in broken(verdict)


def test_a_cause_that_the_plan_does_not_expect_fails_the_run() -> None:
    trace = leased(Trace(expect=Expect(duplicates=("D0", "D2"))))
    again(trace, 10.9)

    assert broken(trace.verdict()) == ["D1"]


def test_a_delivery_after_one_that_never_arrived_is_no_duplicate() -> None:
    trace = Trace()
    trace.add(0)
    trace.row(1, "unqueue", "n1", job=JOB, cause="served")
    trace.row(1, "serve", "n1", job=JOB, client="c1", cause="served")
    trace.working(1, "n1", "n2", "n3")
    again(trace, 10.9)

    verdict = trace.verdict()

    assert verdict.ok
    assert verdict.duplicates == {}
    assert verdict.marks["reply.lost"] == 1


def test_a_delivery_that_another_has_overtaken_repeats_that_one() -> None:
    trace = Trace()
    trace.add(0)
    trace.row(1, "unqueue", "n1", job=JOB, cause="served")
    trace.row(1, "serve", "n1", job=JOB, client="c1", cause="served")
    trace.working(1, "n1", "n2", "n3")
    again(trace, 10.9)
    trace.deliver(11.5, "n1", "c1")

    assert trace.verdict().duplicates == {"D1": 1}


# Traces that tell less.


def without(rows: list[Row], *kinds: str) -> list[Row]:
    return [row for row in rows if row.kind not in kinds]


def judged(trace: Trace, *kinds: str) -> dict[str, int]:
    """The duplicates, if the trace has no such rows."""
    shorn = Trace(expect=trace.plan.expect)
    shorn.plan = trace.plan
    rows = without(trace.rows(), *kinds)
    shorn.rows = lambda: rows  # type: ignore[method-assign]
    return shorn.verdict().duplicates


def test_without_messages_times_and_cuts_must_do() -> None:
    assert judged(behind_a_cut_and_again(), "send", "recv", "lost") == {"D4": 1}
    late = Trace()
    late.add(0)
    late.serve(9.9)
    again(late, 10)
    assert judged(late, "send", "recv", "lost") == {"D5": 1}


def behind_a_cut_and_again() -> Trace:
    trace = behind_a_cut()
    again(trace, 10)
    return trace


def test_without_rows_of_nodes_a_delivery_is_taken_as_queued_when_it_came() -> None:
    nodes = ("send", "recv", "lost", "hold", "drop", "queue", "unqueue", "serve", "acked")
    trace = leased()
    again(trace, 12)

    assert judged(trace, *nodes) == {"D1": 1}
