"""Nodes that begin anew under another name, and those that do not know them yet."""

import pytest

from disque_trio.sim.scenarios.plan import Expect
from tests.sim.checkers.scenario import ALL_CAUSES, JOB, Tale, broken


def with_newcomer(time: float, node: str) -> Tale:
    """A node loses all that it knew, its name too."""
    tale = Tale()
    tale.say(time - 1, "crash", node, cause="kill")
    tale.say(time - 1, "wipe", node)
    tale.say(time, "start", node, cause="fresh")
    return tale


@pytest.mark.parametrize(
    ("since", "is_cut", "is_heard"),
    [(14, False, False), (5, False, True), (5, True, False), (-30, False, True)],
)
def test_word_from_one_who_is_not_known_yet_may_not_be_heard(
    since: int, *, is_cut: bool, is_heard: bool
) -> None:
    tale = with_newcomer(since, "n1")
    if is_cut:
        tale.cut(6, ["n1"], ["n2"], until=7)
    tale.add(13)
    tale.tell(13.1, "gotjob", "n2", "n1")
    tale.serve(14)
    tale.ack(15)
    tale.tell(15.001, "setack", "n1", "n2")
    tale.requeue(28, "n2")
    tale.serve(28.1, "n2", "c2")

    assert ("S9" in broken(tale.verdict())) is is_heard


@pytest.mark.parametrize(
    ("since", "after", "due"), [(1, 30, []), (1, 1, ["S2"]), (-60, 30, ["S2"])]
)
def test_a_holder_with_a_new_name_is_waited_for_but_not_for_ever(
    since: int, after: int, due: list[str]
) -> None:
    tale = with_newcomer(since, "n3")
    tale.add(2)
    tale.serve(3)
    tale.ack(4)
    tale.told_of_ack(4.001, "n1", "n2")
    tale.tell(4.001, "setack", "n1", "n3", detail="holders=3", lost=4.002)
    tale.say(4 + after, "drop", "n1", job=JOB, cause="collected")

    assert broken(tale.verdict()) == due


def test_a_node_that_begins_anew_has_forgotten_nothing_that_it_could_know() -> None:
    tale = Tale(expect=Expect(duplicates=ALL_CAUSES))
    tale.add(0)
    tale.serve(1)
    tale.working(1, "n1", "n2", "n3")
    tale.fastack(2)
    tale.tell(2.001, "deljob", "n1", "n2", lost=3)
    tale.tell(2.001, "deljob", "n1", "n3", lost=3)
    tale.crash(4, "n1", back=5)
    tale.requeue(15, "n2")
    tale.say(15.1, "unqueue", "n2", job=JOB, cause="given")
    tale.say(15.1, "give", "n2", peer="n1", job=JOB, cause="given")
    tale.tell(15.1, "yourjobs", "n2", "n1", detail=f"jobs={JOB} holders=n2,n1")
    tale.say(15.102, "hold", "n1", job=JOB, cause="yourjobs")
    tale.say(15.102, "queue", "n1", job=JOB, cause="import")
    tale.serve(15.2, "n1", "c2")

    assert tale.verdict().duplicates == {"D9": 1}


def test_what_the_one_who_was_asked_has_forgotten_those_may_say_who_were_told() -> None:
    tale = Tale(expect=Expect(duplicates=ALL_CAUSES))
    tale.add(0)
    tale.serve(1)
    tale.working(1, "n1", "n2", "n3")
    tale.ack(2)
    tale.told_of_ack(2.001, "n1", "n2")
    tale.tell(2.001, "setack", "n1", "n3", detail="holders=3", lost=3)
    tale.crash(4, "n1", back=5)
    tale.say(290, "pause", "n1")
    tale.tell(240, "setack", "n2", "n3", detail="holders=3", lost=250)
    tale.requeue(300, "n3")
    tale.serve(300, "n3", "c2")

    assert tale.verdict().duplicates == {"D2": 1}


@pytest.mark.parametrize(("holders", "due"), [("n1,n2,n3", ["L3"]), ("n1,n2,n3,n4", [])])
def test_a_holder_may_wait_for_another_who_waits_for_one_that_is_away(
    holders: str, due: list[str]
) -> None:
    tale = Tale()
    tale.add(0)
    tale.tell(1, "repljob", "n2", "n1", detail=f"jobs={JOB} holders={holders}")
    tale.serve(2)
    tale.ack(3)
    tale.told_of_ack(3.001, "n1", "n2")
    tale.told_of_ack(3.001, "n1", "n3")
    tale.say(20, "chaos.end")
    tale.say(20.5, "rejoin")
    tale.say(20, "heal.end", detail="n1,n2,n3")

    assert sorted({*broken(tale.verdict(end=400))}) == due
