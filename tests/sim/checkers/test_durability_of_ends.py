"""What a node has told other nodes of the end of a job, and has again after a crash (S15)."""

import pytest

from tests.sim.checkers.test_durability import back, fallen, held, problems
from tests.sim.checkers.trace import JOB, ONCE, Trace, broken

FAR = "D-89abcdef-CCCCCCCCCCCCCCCCCCCCCCCC-003d"


def acked(fsync: str = "everysec") -> Trace:
    """A job that n1 has delivered, and that n2 and n3 know to be done by 2.1 s."""
    trace = held(fsync)
    trace.serve(1)
    trace.working(1, "n1", "n2", "n3")
    trace.ack(2)
    for peer in ("n2", "n3"):
        trace.setack(2.01, "n1", peer)
    return trace


def test_an_ack_that_was_confirmed_to_another_node_is_not_forgotten() -> None:
    trace = acked()
    fallen(trace, 3, "n2")
    back(trace, 4, "n2", has_job=True)

    assert problems(trace)[0].startswith("n2 had confirmed its acknowledgement 0.98")


def test_an_ack_that_is_gone_altogether_is_missed() -> None:
    trace = acked()
    fallen(trace, 3, "n2")
    back(trace, 4, "n2", has_job=False)

    [problem] = problems(trace)
    assert problem.startswith("n2 had confirmed its acknowledgement 0.98")
    assert problem.endswith("s before the crash (kill), and has not got it back")


def test_so_is_one_of_a_job_that_was_never_there() -> None:
    trace = held()
    trace.row(1, "ack.invoke", "n1", job=FAR, client="c1", ref=80)
    trace.row(1.001, "hold", "n1", job=FAR, queue="", cause="dummy")
    trace.row(1.002, "ack.ok", "n1", job=FAR, client="c1", ref=80, detail="0")
    fallen(trace, 3, "n1")
    back(trace, 4, "n1", has_job=True)

    [problem] = problems(trace)
    assert problem.startswith("n1 had confirmed its acknowledgement 1.998 s before the crash")


def test_an_ack_that_comes_back_as_one_is_content() -> None:
    trace = acked()
    fallen(trace, 3, "n2")
    back(trace, 4, "n2", has_job=True, acked=True)

    assert problems(trace) == []


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
    trace = acked(fsync)
    trace.collect(2.5, "n1", "n2", "n3")
    fallen(trace, 3, "n2", cause)
    back(trace, 4, "n2", has_job=True)

    assert bool(problems(trace)) == found


def test_a_copy_that_came_since_has_been_promised_to_nobody() -> None:
    trace = acked()
    trace.collect(2.5, "n1", "n2", "n3")
    trace.copy(2.7, "n1", "n2")
    fallen(trace, 3, "n2")
    back(trace, 4, "n2", has_job=True)

    assert problems(trace) == []


def test_what_was_lost_once_for_good_reason_is_not_asked_for_again() -> None:
    trace = acked("no")
    trace.collect(2.5, "n1", "n2", "n3")
    fallen(trace, 3, "n2", "power")
    back(trace, 4, "n2", has_job=True)
    fallen(trace, 5, "n2", "kill")
    back(trace, 6, "n2", has_job=True)

    assert problems(trace) == []


def redelivered(fsync: str, cause: str) -> Trace:
    """The same, with n2 delivering the job that has come back."""
    trace = acked(fsync)
    trace.collect(2.5, "n1", "n2", "n3")
    fallen(trace, 3, "n2", cause)
    back(trace, 4, "n2", has_job=True)
    trace.requeue(15, "n2")
    trace.serve(15, "n2", "c2")
    return trace


def test_what_the_power_took_is_a_cause() -> None:
    assert redelivered("everysec", "power").verdict().duplicates == {"D8": 1}


@pytest.mark.parametrize(("fsync", "cause"), [("no", "kill"), ("always", "power")])
def test_what_no_crash_may_take_is_none(fsync: str, cause: str) -> None:
    verdict = redelivered(fsync, cause).verdict()

    assert "D8" not in verdict.duplicates
    assert "S15" in broken(verdict)


def once(*, is_served: bool) -> Trace:
    trace = Trace(config=(("appendonly", "yes"), ("appendfsync", "everysec")))
    trace.add(0, job=ONCE, to=(), options="replicate=1 retry=0 ttl=3600")
    if is_served:
        trace.serve(1, job=ONCE)
    fallen(trace, 3, "n1")
    back(trace, 4, "n1", has_job=False)
    return trace


def test_a_job_with_retry_0_that_waited_comes_back() -> None:
    assert len(problems(once(is_served=False))) == 1


def test_one_that_was_handed_out_does_not() -> None:
    assert problems(once(is_served=True)) == []


def given_before_a_crash(
    crash: str, *, confirmed: bool, again: bool = False, flipped: str = ""
) -> Trace:
    """n1 gives a job to n2, ends, has it back from its journal, and collects an ack."""
    trace = Trace(config=(("appendonly", "yes"), ("appendfsync", "everysec")))
    trace.add(0, to=(), options="replicate=1 retry=10 ttl=3600")
    trace.row(1, "unqueue", "n1", job=JOB, cause="given")
    trace.row(1, "give", "n1", job=JOB, peer="n2", cause="given")
    trace.send(
        1, "yourjobs", "n1", "n2", "", lag=None, lost=1.1, detail=f"jobs={JOB} holders=n1,n2"
    )
    if flipped:
        trace.row(1.15, "disk.flip", flipped)
    trace.row(1.2, "crash", "n1", cause=crash)
    trace.row(3, "start", "n1", cause="loaded")
    trace.row(3, "hold", "n1", job=JOB, queue="q", cause="loaded")
    trace.row(3, "loaded", "n1", cause="kept")
    if again:
        trace.row(3.5, "crash", "n1", cause="kill")
        trace.row(3.8, "start", "n1", cause="loaded")
        trace.row(3.8, "hold", "n1", job=JOB, queue="q", cause="loaded")
        trace.row(3.8, "loaded", "n1", cause="kept")
    trace.ack(4)
    if confirmed:
        trace.send(4.002, "setack", "n1", "n2", detail="holders=2")
        trace.send(4.005, "gotack", "n2", "n1", detail="unknown")
    trace.row(5, "drop", "n1", job=JOB, cause="collected")
    return trace


def test_a_giver_asks_after_a_crash_whom_it_had_given_the_job() -> None:
    assert broken(given_before_a_crash("kill", confirmed=False).verdict(end=6)) == ["S2"]
    assert broken(given_before_a_crash("kill", confirmed=True).verdict(end=6)) == []


def test_unless_power_has_taken_the_record() -> None:
    assert broken(given_before_a_crash("power", confirmed=False).verdict(end=6)) == []


@pytest.mark.parametrize(("flipped", "due"), [("n1", []), ("n2", ["S2"])])
def test_or_a_bit_of_its_journal_has_changed(flipped: str, due: list[str]) -> None:
    trace = given_before_a_crash("kill", confirmed=False, flipped=flipped)

    assert broken(trace.verdict(end=6)) == due


def test_a_record_that_power_has_taken_does_not_come_back_with_the_next_start() -> None:
    trace = given_before_a_crash("power", confirmed=False, again=True)

    assert broken(trace.verdict(end=20)) == []
