"""What a node has told other nodes of the end of a job, and has again after a crash (S15)."""

import pytest

from tests.sim.checkers.scenario import JOB, ONCE, Tale, broken
from tests.sim.checkers.test_durability import back, complaints, fallen, held

FAR = "D-89abcdef-CCCCCCCCCCCCCCCCCCCCCCCC-003d"


def acked(fsync: str = "everysec") -> Tale:
    """A job that n1 has delivered, and that n2 and n3 know to be done by 2.1 s."""
    tale = held(fsync)
    tale.serve(1)
    tale.working(1, "n1", "n2", "n3")
    tale.ack(2)
    for peer in ("n2", "n3"):
        tale.told_of_ack(2.01, "n1", peer)
    return tale


def test_an_ack_that_was_confirmed_to_another_node_is_not_forgotten() -> None:
    tale = acked()
    fallen(tale, 3, "n2")
    back(tale, 4, "n2", has_job=True)

    assert complaints(tale)[0].startswith("n2 had confirmed its acknowledgement 0.98")


def test_an_ack_that_is_gone_altogether_is_missed() -> None:
    tale = acked()
    fallen(tale, 3, "n2")
    back(tale, 4, "n2", has_job=False)

    [complaint] = complaints(tale)
    assert complaint.startswith("n2 had confirmed its acknowledgement 0.98")
    assert complaint.endswith("s before the crash (kill), and has not got it back")


def test_so_is_one_of_a_job_that_was_never_there() -> None:
    tale = held()
    tale.say(1, "ack.invoke", "n1", job=FAR, client="c1", ref=80)
    tale.say(1.001, "hold", "n1", job=FAR, queue="", cause="dummy")
    tale.say(1.002, "ack.ok", "n1", job=FAR, client="c1", ref=80, detail="0")
    fallen(tale, 3, "n1")
    back(tale, 4, "n1", has_job=True)

    [complaint] = complaints(tale)
    assert complaint.startswith("n1 had confirmed its acknowledgement 1.998 s before the crash")


def test_an_ack_that_comes_back_as_one_is_content() -> None:
    tale = acked()
    fallen(tale, 3, "n2")
    back(tale, 4, "n2", has_job=True, acked=True)

    assert complaints(tale) == []


@pytest.mark.parametrize(
    ("fsync", "cause", "found"),
    [
        ("no", "kill", True),
        ("everysec", "kill", True),
        ("always", "power", True),
        ("everysec", "power", False),
        ("no", "power", False),
    ],
)
def test_what_a_node_has_said_to_be_over_is_not_pending_afterwards(
    fsync: str, cause: str, *, found: bool
) -> None:
    tale = acked(fsync)
    tale.collect(2.5, "n1", "n2", "n3")
    fallen(tale, 3, "n2", cause)
    back(tale, 4, "n2", has_job=True)

    assert bool(complaints(tale)) == found


def test_a_copy_that_came_since_has_been_promised_to_nobody() -> None:
    tale = acked()
    tale.collect(2.5, "n1", "n2", "n3")
    tale.copy(2.7, "n1", "n2")
    fallen(tale, 3, "n2")
    back(tale, 4, "n2", has_job=True)

    assert complaints(tale) == []


def test_what_was_lost_once_for_good_reason_is_not_asked_for_again() -> None:
    tale = acked("no")
    tale.collect(2.5, "n1", "n2", "n3")
    fallen(tale, 3, "n2", "power")
    back(tale, 4, "n2", has_job=True)
    fallen(tale, 5, "n2", "kill")
    back(tale, 6, "n2", has_job=True)

    assert complaints(tale) == []


def redelivered(fsync: str, cause: str) -> Tale:
    """The same, with n2 delivering the job that has come back."""
    tale = acked(fsync)
    tale.collect(2.5, "n1", "n2", "n3")
    fallen(tale, 3, "n2", cause)
    back(tale, 4, "n2", has_job=True)
    tale.requeue(15, "n2")
    tale.serve(15, "n2", "c2")
    return tale


def test_what_the_power_took_is_a_cause() -> None:
    assert redelivered("everysec", "power").verdict().duplicates == {"D8": 1}


@pytest.mark.parametrize(("fsync", "cause"), [("no", "kill"), ("always", "power")])
def test_what_no_crash_may_take_is_none(fsync: str, cause: str) -> None:
    verdict = redelivered(fsync, cause).verdict()

    assert "D8" not in verdict.duplicates
    assert "S15" in broken(verdict)


def once(*, is_served: bool) -> Tale:
    tale = Tale(config=(("appendonly", "yes"), ("appendfsync", "everysec")))
    tale.add(0, job=ONCE, to=(), options="replicate=1 retry=0 ttl=3600")
    if is_served:
        tale.serve(1, job=ONCE)
    fallen(tale, 3, "n1")
    back(tale, 4, "n1", has_job=False)
    return tale


def test_a_job_with_retry_0_that_waited_comes_back() -> None:
    assert len(complaints(once(is_served=False))) == 1


def test_one_that_was_handed_out_does_not() -> None:
    assert complaints(once(is_served=True)) == []


def given_before_a_crash(crash: str, *, confirmed: bool, again: bool = False) -> Tale:
    """n1 gives a job to n2, ends, has it back from its journal, and collects an ack."""
    tale = Tale(config=(("appendonly", "yes"), ("appendfsync", "everysec")))
    tale.add(0, to=(), options="replicate=1 retry=10 ttl=3600")
    tale.say(1, "unqueue", "n1", job=JOB, cause="given")
    tale.say(1, "give", "n1", job=JOB, peer="n2", cause="given")
    tale.tell(1, "yourjobs", "n1", "n2", "", lag=None, lost=1.1, detail=f"jobs={JOB} holders=n1,n2")
    tale.say(1.2, "crash", "n1", cause=crash)
    tale.say(3, "start", "n1", cause="loaded")
    tale.say(3, "hold", "n1", job=JOB, queue="q", cause="loaded")
    tale.say(3, "loaded", "n1", cause="kept")
    if again:
        tale.say(3.5, "crash", "n1", cause="kill")
        tale.say(3.8, "start", "n1", cause="loaded")
        tale.say(3.8, "hold", "n1", job=JOB, queue="q", cause="loaded")
        tale.say(3.8, "loaded", "n1", cause="kept")
    tale.ack(4)
    if confirmed:
        tale.tell(4.002, "setack", "n1", "n2", detail="holders=2")
        tale.tell(4.005, "gotack", "n2", "n1", detail="unknown")
    tale.say(5, "drop", "n1", job=JOB, cause="collected")
    return tale


def test_a_giver_asks_after_a_crash_whom_it_had_given_the_job() -> None:
    assert broken(given_before_a_crash("kill", confirmed=False).verdict(end=6)) == ["S2"]
    assert broken(given_before_a_crash("kill", confirmed=True).verdict(end=6)) == []


def test_unless_power_has_taken_the_record() -> None:
    assert broken(given_before_a_crash("power", confirmed=False).verdict(end=6)) == []


def test_a_record_that_power_has_taken_does_not_come_back_with_the_next_start() -> None:
    tale = given_before_a_crash("power", confirmed=False, again=True)

    assert broken(tale.verdict(end=20)) == []
