import pytest

from disque_trio.sim.scenarios.plan import Expect
from disque_trio.tracing.rows import Row
from tests.sim.checkers.duplicated import acknowledged, again, behind_a_cut, leased
from tests.sim.checkers.scenario import JOB, ONCE, Tale, broken


@pytest.mark.parametrize(("is_introduced", "cause"), [(True, "DX"), (False, "D6")])
def test_d6_the_server_did_not_know_the_holder_and_nothing_once_it_was_told(
    is_introduced: bool, cause: str
) -> None:
    tale = Tale()
    tale.add(0, to=("n3",), options="replicate=2 retry=10 ttl=3600")
    tale.copy(1, "n3", "n2")
    if is_introduced:
        tale.tell(2, "holders", "n3", "n1", detail="holders=n1,n3,n2")
    tale.serve(5)
    tale.working(5, "n1", "n3")
    again(tale, 10)

    assert tale.verdict().duplicates == {cause: 1}


def test_d6_the_acker_did_not_know_the_holder() -> None:
    tale = Tale()
    tale.add(0, to=("n3",), options="replicate=2 retry=10 ttl=3600")
    tale.copy(0.5, "n3", "n2")
    tale.serve(1)
    tale.working(1, "n1", "n3")
    tale.working(1, "n3", "n2")
    tale.crash(4, "n3")
    tale.ack(5)
    again(tale, 12)

    assert tale.verdict().duplicates == {"D6": 1}


@pytest.mark.parametrize(
    ("stopped", "cause"), [("n1", "D9"), ("n3", "D9"), ("n2", "D6"), ("", "D6")]
)
def test_d9_the_node_of_the_fastack_could_not_be_told_of_a_holder_that_was_added_later(
    stopped: str, cause: str
) -> None:
    tale = Tale()
    tale.add(0, to=("n3",), options="replicate=2 retry=10 ttl=3600")
    if stopped:
        tale.say(0.1, "pause", stopped)
        tale.say(0.2, "resume", stopped)
    tale.copy(0.5, "n1", "n2")
    tale.serve(1)
    tale.working(1, "n1", "n2", "n3")
    tale.fastack(5, "n3")
    tale.tell(5.001, "deljob", "n3", "n1")
    tale.say(5.003, "drop", "n1", job=JOB, cause="deljob")
    again(tale, 10.9)

    assert tale.verdict().duplicates == {cause: 1}


@pytest.mark.parametrize(("have_met", "cause"), [(True, "DX"), (False, "D4")])
def test_d4_of_two_holders_that_have_not_met_and_nothing_once_they_have(
    have_met: bool, cause: str
) -> None:
    tale = Tale()
    tale.say(-300, "wipe", "n3")
    tale.say(-300, "start", "n3", cause="fresh")
    tale.add(0, to=(), is_queued=False)
    for node in ("n2", "n3"):
        tale.tell(0, "repljob", "n1", node, detail=f"jobs={JOB} holders=n1,n2,n3")
        tale.say(0.002, "hold", node, job=JOB, cause="repljob")
    tale.requeue(60, "n2")
    tale.serve(60, "n2", "c1")
    tale.tell(60, "working", "n2", "n1")
    if have_met:
        for node, peer in (("n2", "n3"), ("n3", "n2")):
            tale.tell(2, "setack", node, peer, ONCE, detail="holders=0")
    again(tale, 60.5, "n3")

    assert tale.verdict().duplicates == {cause: 1}


def test_d7_a_copy_came_too_late() -> None:
    tale = acknowledged(told=("n3",))
    tale.told_of_ack(5.001, "n1", "n2")
    tale.collect(5.1, "n1", "n2", "n3")
    tale.copy(8, "n1", "n2")
    again(tale, 19)

    verdict = tale.verdict()

    assert verdict.duplicates == {"D7": 1}
    assert verdict.marks["late_repljob"] == 1


def test_a_dummy_ack_is_no_copy_that_came_too_late() -> None:
    """n2 gives the job to n3 over a slow link, and has dropped its copy when an ack comes to it."""
    tale = leased()
    tale.requeue(11, "n2")
    tale.say(11.5, "unqueue", "n2", job=JOB, cause="given")
    tale.say(11.5, "give", "n2", job=JOB, peer="n3", cause="given")
    tale.say(
        11.5, "send", "n2", peer="n3", cause="yourjobs", detail=f"jobs={JOB} holders=n2", ref=99
    )
    tale.requeue(12, "n3")
    tale.serve(12, "n3", "c2")
    tale.fastack(12.1, "n1")
    tale.tell(12.101, "deljob", "n1", "n2")
    tale.say(12.103, "drop", "n2", job=JOB, cause="deljob")
    tale.say(12.2, "hold", "n2", job=JOB, cause="dummy")
    tale.tell(12.2, "setack", "n2", "n3", lag=2, detail="holders=0")
    tale.say(13, "recv", "n3", peer="n2", cause="yourjobs", detail=f"jobs={JOB} holders=n2", ref=99)
    again(tale, 13, "n3", "import")

    assert "D7" not in tale.verdict().duplicates


def test_d7_after_a_node_said_that_it_knows_nothing() -> None:
    tale = Tale()
    tale.add(0, to=("n2",), options="replicate=2 retry=10 ttl=3600")
    tale.serve(1)
    tale.ack(2)
    tale.tell(2.001, "setack", "n1", "n3", detail="holders=3")
    tale.tell(2.003, "gotack", "n3", "n1", detail="unknown")
    tale.told_of_ack(2.001, "n1", "n2")
    tale.copy(2.5, "n1", "n3")
    tale.collect(2.6, "n1", "n2")
    again(tale, 13, "n3")

    assert tale.verdict().duplicates == {"D7": 1}


@pytest.mark.parametrize(("gone", "back", "cause"), [(2, 3, "D5"), (12.43, 12.46, "D7")])
def test_d7_only_of_a_node_that_let_the_job_go_after_the_ack(
    gone: float, back: float, cause: str
) -> None:
    tale = leased()
    tale.say(gone, "drop", "n2", job=JOB, cause="client-deljob")
    tale.copy(back, "n3", "n2")
    tale.ack(12.4)
    tale.tell(12.401, "setack", "n1", "n2", lag=0.2)
    again(tale, 12.5)

    assert tale.verdict().duplicates == {cause: 1}


def test_d5_of_a_giver_whose_copy_was_cleaned_up_before_the_ack() -> None:
    tale = leased()
    tale.requeue(10.9, "n2")
    tale.say(10.9, "unqueue", "n2", job=JOB, cause="given")
    tale.say(10.9, "give", "n2", job=JOB, peer="n3", cause="given")
    tale.tell(10.9, "yourjobs", "n2", "n3", lag=1.1, detail=f"jobs={JOB} holders=n1,n2,n3")
    tale.say(11, "drop", "n2", job=JOB, cause="deljob")
    tale.requeue(11.5, "n1")
    tale.serve(11.5, "n1")
    tale.tell(11.5, "working", "n1", "n3", lag=1)
    tale.say(11.9, "hold", "n2", job=JOB, cause="dummy")
    tale.tell(11.901, "setack", "n2", "n3", lag=0.2)
    again(tale, 12, "n3", "import")

    assert tale.verdict().duplicates == {"D1": 1, "D5": 1}


@pytest.mark.parametrize(("lag", "cause"), [(12, "D5"), (1, "DX")])
def test_d5_the_ack_had_not_come_yet_to_who_alone_could_pass_it_on(lag: int, cause: str) -> None:
    tale = leased(Tale(nodes=4))
    tale.requeue(10.9, "n2")
    tale.say(10.9, "unqueue", "n2", job=JOB, cause="given")
    tale.say(10.9, "give", "n2", job=JOB, peer="n4", cause="given")
    tale.tell(10.9, "yourjobs", "n2", "n4", detail=f"jobs={JOB} holders=n1,n2,n3,n4")
    tale.say(10.902, "hold", "n4", job=JOB, cause="yourjobs")
    again(tale, 10.902, "n4", "import")
    tale.ack(11.5)
    tale.tell(11.501, "setack", "n1", "n2", lag=lag)
    tale.told_of_ack(11.501, "n1", "n3")
    again(tale, 20.9, "n4")

    assert tale.verdict().duplicates == {"D1": 1, cause: 1}


def test_d8_a_copy_came_back_from_the_disk() -> None:
    tale = acknowledged(Tale(config=[("appendonly", "yes")]), told=("n2", "n3"))
    tale.collect(5.1, "n1", "n2", "n3")
    tale.say(6, "crash", "n2", cause="power")
    tale.say(7, "hold", "n2", job=JOB, cause="loaded")
    tale.say(7, "start", "n2", cause="loaded")
    again(tale, 18)

    assert tale.verdict().duplicates == {"D8": 1}


def test_d9_fastack_could_not_reach_a_holder() -> None:
    tale = leased()
    tale.cut(2, ["n1"], ["n2"], until=50)
    tale.fastack(5)
    tale.tell(5.001, "deljob", "n1", "n3")
    tale.say(5.003, "drop", "n3", job=JOB, cause="deljob")
    tale.tell(5.001, "deljob", "n1", "n2", lost=13)
    again(tale, 12)

    assert tale.verdict().duplicates == {"D9": 1}


def test_d10_a_clock_jumped() -> None:
    tale = leased()
    tale.say(3, "clock.step", "n2", detail="3600000")
    again(tale, 4)

    assert tale.verdict().duplicates == {"D10": 1}


def test_d11_acknowledged_while_it_moved() -> None:
    tale = leased()
    tale.requeue(11, "n3")
    tale.ack(10.95)
    tale.tell(10.951, "setack", "n1", "n3", lag=0.2)
    tale.say(11, "unqueue", "n3", job=JOB, cause="given")
    tale.say(11, "give", "n3", job=JOB, peer="n2", cause="given")
    tale.tell(11, "yourjobs", "n3", "n2", lag=0.1, detail=f"jobs={JOB} holders=n1,n2,n3")
    tale.say(11.05, "acked", "n3", job=JOB, cause="ackjob")
    tale.tell(11.051, "setack", "n3", "n2", lag=0.1)
    again(tale, 11.1, "n2", "import")

    assert tale.verdict().duplicates == {"D11": 1}


def test_d12_an_add_that_failed_left_copies() -> None:
    tale = Tale()
    tale.add(0, outcome="unknown")
    tale.serve(1)
    tale.working(1, "n1", "n2", "n3")
    again(tale, 5)

    assert tale.verdict().duplicates == {"D12": 1}


def test_d13_is_told_apart_for_it_is_no_duplicate() -> None:
    tale = Tale()
    other = "D-01234567-CCCCCCCCCCCCCCCCCCCCCCCC-003d"
    tale.add(0)
    tale.add(1, other)
    tale.serve(2)
    tale.serve(3, job=other)

    verdict = tale.verdict()

    assert verdict.ok
    assert verdict.duplicates == {}
    assert verdict.metrics.repeated == 1


def test_dx_a_node_that_was_told_delivers_all_the_same() -> None:
    tale = Tale()
    tale.add(0)
    tale.requeue(0.5, "n2")
    tale.serve(1)
    tale.working(1, "n1", "n2", "n3")
    tale.serve(2, "n2", "c2")

    verdict = tale.verdict()

    assert verdict.duplicates == {"DX": 1}
    assert "DX" in broken(verdict)


def test_a_cause_that_the_plan_does_not_expect_fails_the_run() -> None:
    tale = leased(Tale(expect=Expect(duplicates=("D0", "D2"))))
    again(tale, 10.9)

    assert broken(tale.verdict()) == ["D1"]


def test_a_delivery_after_one_that_never_arrived_is_no_duplicate() -> None:
    tale = Tale()
    tale.add(0)
    tale.say(1, "unqueue", "n1", job=JOB, cause="served")
    tale.say(1, "serve", "n1", job=JOB, client="c1", cause="served")
    tale.working(1, "n1", "n2", "n3")
    again(tale, 10.9)

    verdict = tale.verdict()

    assert verdict.ok
    assert verdict.duplicates == {}
    assert verdict.marks["reply.lost"] == 1


def test_a_delivery_that_another_has_overtaken_repeats_that_one() -> None:
    tale = Tale()
    tale.add(0)
    tale.say(1, "unqueue", "n1", job=JOB, cause="served")
    tale.say(1, "serve", "n1", job=JOB, client="c1", cause="served")
    tale.working(1, "n1", "n2", "n3")
    again(tale, 10.9)
    tale.deliver(11.5, "n1", "c1")

    assert tale.verdict().duplicates == {"D1": 1}


# Traces that tell less.


def without(rows: list[Row], *kinds: str) -> list[Row]:
    return [row for row in rows if row.kind not in kinds]


def judged(tale: Tale, *kinds: str) -> dict[str, int]:
    """The duplicates, if the trace has no such rows."""
    shorn = Tale(expect=tale.plan.expect)
    shorn.plan = tale.plan
    rows = without(tale.rows(), *kinds)
    shorn.rows = lambda: rows  # type: ignore[method-assign]
    return shorn.verdict().duplicates


def test_without_messages_times_and_cuts_must_do() -> None:
    assert judged(behind_a_cut_and_again(), "send", "recv", "lost") == {"D4": 1}
    late = Tale()
    late.add(0)
    late.serve(9.9)
    again(late, 10)
    assert judged(late, "send", "recv", "lost") == {"D5": 1}


def behind_a_cut_and_again() -> Tale:
    tale = behind_a_cut()
    again(tale, 10)
    return tale


def test_without_rows_of_nodes_a_delivery_is_taken_as_queued_when_it_came() -> None:
    nodes = ("send", "recv", "lost", "hold", "drop", "queue", "unqueue", "serve", "acked")
    tale = leased()
    again(tale, 12)

    assert judged(tale, *nodes) == {"D1": 1}
