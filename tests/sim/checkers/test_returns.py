"""L10: word of an ack reaches a holder that returns at once."""

import attrs
import pytest

from tests.sim.checkers.trace import JOB, Trace, broken
from tests.sim.checkers.waits import waiting


def returning(*, told_at: float | None) -> Trace:
    """n1 knows of the ack since 10 s; from 20 s on nothing is wrong, at 21 s n2 answers it."""
    trace = waiting(consumers=())
    trace.row(10, "acked", "n1", job=JOB, cause="ackjob")
    trace.send(21, "pong", "n2", "n1", job="")
    if told_at is not None:
        trace.send(told_at, "setack", "n1", "n2", detail="holders=3")
        trace.row(told_at + 0.002, "acked", "n2", job=JOB, cause="setack")
    trace.send(24, "ping", "n3", "n1", job="")
    return trace


def test_a_holder_that_returns_is_told_of_the_ack_within_a_second() -> None:
    verdict = returning(told_at=21.1).verdict(end=25)

    assert "L10" not in broken(verdict)
    assert verdict.checks["L10"] == 1


@pytest.mark.parametrize(
    ("cause", "came", "is_due"),
    [("repljob", 20.5, False), ("loaded", 20.5, True), ("repljob", 19, True)],
)
def test_a_copy_that_is_made_after_the_heal_has_missed_nothing(
    *, cause: str, came: float, is_due: bool
) -> None:
    trace = returning(told_at=None)
    trace.row(came, "hold", "n2", job=JOB, cause=cause)

    assert ("L10" in broken(trace.verdict(end=25))) == is_due


@pytest.mark.parametrize(
    ("cause", "came", "is_due"),
    [("repljob", 11, False), ("repljob", 9, True), ("loaded", 11, True)],
)
def test_a_copy_that_came_after_word_of_the_death_has_not_missed_it(
    *, cause: str, came: float, is_due: bool
) -> None:
    trace = waiting(consumers=())
    trace.row(8, "dead", "n1", job=JOB, queue="q", cause="nack-dead", detail="redriven=0 left=1")
    trace.row(came, "hold", "n2", job=JOB, cause=cause)
    trace.send(10, "jobstate", "n1", "n2", detail="dead redriven=0")

    assert ("L10" in broken(answered(trace).verdict(end=25))) == is_due


@pytest.mark.parametrize(
    ("version", "event", "is_due"),
    [("original", "dead", False), ("original", "acked", True), ("2", "dead", True)],
)
def test_a_version_without_dead_jobs_misses_no_death(
    version: str, event: str, *, is_due: bool
) -> None:
    """everything, seed 5737."""
    trace = waiting(consumers=())
    trace.plan = attrs.evolve(trace.plan, versions=(("2",), (version,), ("2",)))
    trace.row(8, event, "n1", job=JOB, queue="q", cause="nack-dead", detail="redriven=0 left=1")

    assert ("L10" in broken(answered(trace).verdict(end=25))) == is_due


@pytest.mark.parametrize(
    ("told", "cut_at", "is_due"), [(9, 19.5, False), (9, 1, True), (0, 19.5, True)]
)
def test_who_heard_it_from_another_tells_only_a_holder_that_was_away(
    told: int, cut_at: float, *, is_due: bool
) -> None:
    trace = Trace(consumers=())
    trace.add(0)
    trace.cut(cut_at, ["n1"], ["n2"], until=20)
    if told:
        trace.send(told, "jobstate", "n3", "n1", lag=1, detail="dead redriven=0")
    trace.row(10, "dead", "n1", job=JOB, queue="q", cause="jobstate", detail="redriven=0 left=1")
    trace.heal(20)
    trace.send(21, "pong", "n2", "n1", job="")

    assert ("L10" in broken(trace.verdict(end=25))) == is_due


def test_slow_messages_are_no_absence() -> None:
    """everything, seed 941: another link was slow."""
    trace = Trace(consumers=())
    trace.add(0)
    trace.send(9, "jobstate", "n3", "n1", lag=1, detail="dead redriven=0")
    trace.row(10, "dead", "n1", job=JOB, queue="q", cause="jobstate", detail="redriven=0 left=1")
    trace.row(12, "delay", "n1", peer="n3", detail="2000")
    trace.row(19, "delay", "n1", peer="n3", detail="0")
    trace.heal(20)
    trace.send(21, "pong", "n2", "n1", job="")

    assert "L10" not in broken(trace.verdict(end=25))


@pytest.mark.parametrize(
    ("cause", "cut_at", "is_due"),
    [("setack", 19.5, False), ("setack", 1, True), ("ackjob", 19.5, True)],
)
def test_nor_does_one_that_heard_of_the_ack_more_than_once(
    cause: str, cut_at: float, *, is_due: bool
) -> None:
    trace = Trace(consumers=())
    trace.add(0)
    trace.cut(cut_at, ["n1"], ["n2"], until=20)
    trace.send(9, "setack", "n3", "n1", lag=1, detail="holders=3")
    trace.row(10, "acked", "n1", job=JOB, queue="q", cause=cause)
    trace.send(9, "setack", "n3", "n1", lag=2, detail="holders=3")
    trace.heal(20)
    trace.send(21, "pong", "n2", "n1", job="")

    assert ("L10" in broken(trace.verdict(end=25))) == is_due


@pytest.mark.parametrize(("cause", "is_due"), [("fresh", False), ("empty", True)])
def test_it_may_not_know_a_holder_that_the_former_identity_of_a_node_named(
    cause: str, *, is_due: bool
) -> None:
    """everything, seed 3032."""
    trace = Trace(consumers=())
    trace.add(0, node="n3", to=("n1",), options="replicate=2 retry=10 ttl=3600")
    trace.send(9, "repljob", "n3", "n1", lag=11.2, detail=f"jobs={JOB} holders=n3,n1,n2 no-reply")
    trace.copy(9.1, "n3", "n2")
    trace.row(10, "acked", "n1", job=JOB, queue="q", cause="ackjob")
    trace.crash(15, "n3")
    trace.row(15.1, "start", "n3", cause=cause)
    trace.heal(20)
    trace.send(21, "pong", "n2", "n1", job="")

    assert ("L10" in broken(trace.verdict(end=25))) == is_due


def test_it_may_not_wait_for_the_next_attempt() -> None:
    assert broken(returning(told_at=23).verdict(end=25)) == ["L10"]
    assert broken(returning(told_at=None).verdict(end=25)) == ["L10"]


@pytest.mark.parametrize(("looks", "is_late"), [(1, False), (1000, True)])
def test_a_node_looks_through_its_ended_jobs_in_slices(looks: int, *, is_late: bool) -> None:
    """everything, seed 3760: for one node after the other."""
    trace = waiting(consumers=())
    trace.plan = attrs.evolve(trace.plan, knobs=(("resend_looks", looks),))
    trace.row(10, "acked", "n1", job=JOB, cause="ackjob")
    for number in range(30):
        trace.row(10, "hold", "n1", job=f"{JOB[:11]}{number:024}{JOB[-5:]}", cause="dummy")
    trace.send(21, "pong", "n2", "n1", job="")
    trace.send(22.5, "setack", "n1", "n2", detail="holders=3")
    trace.row(22.502, "acked", "n2", job=JOB, cause="setack")
    trace.send(24, "ping", "n3", "n1", job="")

    assert ("L10" in broken(trace.verdict(end=25))) == is_late


@pytest.mark.parametrize(("ends", "is_due"), [(21.5, True), (None, False)])
def test_what_is_sent_on_a_half_open_connection_tells_nobody(
    ends: float | None, *, is_due: bool
) -> None:
    """n2 answers a PING of before; the time counts from the first answer on a new connection."""
    trace = waiting(consumers=())
    trace.row(10, "acked", "n1", job=JOB, cause="ackjob")
    trace.row(19, "half-open", "n1", peer="n2")
    trace.send(21, "pong", "n2", "n1", job="")
    if ends is not None:
        trace.row(ends, "half-open.end", "n1", peer="n2")
        trace.send(22, "pong", "n2", "n1", job="")
    trace.send(24, "ping", "n3", "n1", job="")

    assert ("L10" in broken(trace.verdict(end=25))) == is_due


def test_nothing_is_said_of_a_run_that_ends_before() -> None:
    trace = waiting(consumers=())
    trace.row(10, "acked", "n1", job=JOB, cause="ackjob")
    trace.send(21, "pong", "n2", "n1", job="")
    verdict = trace.verdict(end=21.5)

    assert verdict.ok
    assert "L10" in verdict.not_judged


def test_a_node_that_ends_meanwhile_tells_no_other() -> None:
    for node in ("n1", "n2"):
        trace = returning(told_at=None)
        trace.row(21.5, "crash", node)
        assert "L10" not in broken(trace.verdict(end=25)), node


def test_nor_does_one_that_is_stopped() -> None:
    trace = returning(told_at=None)
    trace.row(21.5, "pause", "n2")

    assert "L10" not in broken(trace.verdict(end=25))


def test_a_message_that_was_lost_is_an_excuse() -> None:
    trace = returning(told_at=None)
    trace.row(21.1, "send", "n1", job=JOB, peer="n2", cause="setack", ref=77)
    trace.row(21.2, "lost", "n1", job=JOB, peer="n2", cause="setack", ref=77)

    assert "L10" not in broken(trace.verdict(end=25))


def swallowed(why: str, *, told_again: float | None = None) -> Trace:
    """The word of the ack has been lost, before n2 answers, while nobody ended the link."""
    trace = waiting(consumers=())
    trace.row(10, "acked", "n1", job=JOB, cause="ackjob")
    for number, time in enumerate([10.1, *([told_again] if told_again else [])]):
        detail = {"send": "holders=3", "lost": why if number == 0 else "broken"}
        for kind, said in detail.items():
            trace.row(
                time, kind, "n1", job=JOB, peer="n2", cause="setack", ref=77 + number, detail=said
            )
    return trace


def answered(trace: Trace) -> Trace:
    trace.send(21, "pong", "n2", "n1", job="")
    trace.send(24, "ping", "n3", "n1", job="")
    return trace


def test_what_a_rule_has_swallowed_on_a_link_that_stays_up_may_wait_for_the_next_attempt() -> None:
    assert "L10" not in broken(answered(swallowed("dropped")).verdict(end=25))


def test_what_was_lost_with_its_link_may_not() -> None:
    assert broken(answered(swallowed("broken")).verdict(end=25)) == ["L10"]
    assert broken(answered(swallowed("dropped", told_again=12)).verdict(end=25)) == ["L10"]


def test_nor_if_one_of_them_has_begun_anew_since() -> None:
    trace = swallowed("dropped")
    trace.row(12, "crash", "n2")
    trace.row(13, "start", "n2", cause="loaded")
    trace.row(13, "hold", "n2", job=JOB, cause="loaded")

    assert broken(answered(trace).verdict(end=25)) == ["L10"]


def test_a_message_behind_others_on_a_slow_link_may_be_late_but_not_on_another() -> None:
    for pair, lag, is_excused in (
        (("n1", "n2"), 3000, True),
        (("n2", "n1"), 3000, True),
        (("n1", "n2"), 500, False),
        (("n1", "n3"), 3000, False),
    ):
        trace = returning(told_at=None)
        trace.row(15, "delay", pair[0], peer=pair[1], detail=str(lag))
        trace.row(19, "delay", pair[0], peer=pair[1], detail="0")
        assert ("L10" not in broken(trace.verdict(end=25))) == is_excused, (pair, lag)
