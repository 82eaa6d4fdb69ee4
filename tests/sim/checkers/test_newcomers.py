"""Nodes that begin anew under another name, and those that do not know them yet."""

import pytest

from disque_trio.sim.scenarios.plan import Expect
from tests.sim.checkers.trace import ALL_CAUSES, JOB, Trace, broken


def with_newcomer(time: float, node: str) -> Trace:
    """A node loses all that it knew, its name too."""
    trace = Trace()
    trace.row(time - 1, "crash", node, cause="kill")
    trace.row(time - 1, "wipe", node)
    trace.row(time, "start", node, cause="fresh")
    return trace


@pytest.mark.parametrize(
    ("since", "cut_until", "is_heard"),
    [(14, None, False), (5, None, True), (5, 7, False), (-30, None, True), (-30, 90, False),
     (-30, -20, True)],
)  # fmt: skip
def test_a_message_from_an_unknown_node_may_be_ignored(
    since: int, cut_until: int | None, *, is_heard: bool
) -> None:
    trace = with_newcomer(since, "n1")
    if cut_until is not None:
        trace.cut(since + 1, ["n2"], ["n1"], until=cut_until)
    trace.add(13)
    trace.send(13.1, "gotjob", "n2", "n1")
    trace.serve(14)
    trace.ack(15)
    trace.send(15.001, "setack", "n1", "n2")
    trace.requeue(28, "n2")
    trace.serve(28.1, "n2", "c2")

    assert ("S9" in broken(trace.verdict())) is is_heard


@pytest.mark.parametrize(
    ("since", "after", "due"), [(1, 30, []), (1, 1, ["S2"]), (-60, 30, ["S2"])]
)
def test_a_holder_with_a_new_name_is_waited_for_but_not_for_ever(
    since: int, after: int, due: list[str]
) -> None:
    trace = with_newcomer(since, "n3")
    trace.add(2)
    trace.serve(3)
    trace.ack(4)
    trace.setack(4.001, "n1", "n2")
    trace.send(4.001, "setack", "n1", "n3", detail="holders=3", lost=4.002)
    trace.row(4 + after, "drop", "n1", job=JOB, cause="collected")

    assert broken(trace.verdict()) == due


def test_a_node_that_begins_anew_has_forgotten_nothing_that_it_could_know() -> None:
    trace = Trace(expect=Expect(duplicates=ALL_CAUSES))
    trace.add(0)
    trace.serve(1)
    trace.working(1, "n1", "n2", "n3")
    trace.fastack(2)
    trace.send(2.001, "deljob", "n1", "n2", lost=3)
    trace.send(2.001, "deljob", "n1", "n3", lost=3)
    trace.crash(4, "n1", back=5)
    trace.requeue(15, "n2")
    trace.row(15.1, "unqueue", "n2", job=JOB, cause="given")
    trace.row(15.1, "give", "n2", peer="n1", job=JOB, cause="given")
    trace.send(15.1, "yourjobs", "n2", "n1", detail=f"jobs={JOB} holders=n2,n1")
    trace.row(15.102, "hold", "n1", job=JOB, cause="yourjobs")
    trace.row(15.102, "queue", "n1", job=JOB, cause="import")
    trace.serve(15.2, "n1", "c2")

    assert trace.verdict().duplicates == {"D9": 1}


def test_nodes_that_were_told_may_say_what_the_acked_node_has_forgotten() -> None:
    trace = Trace(expect=Expect(duplicates=ALL_CAUSES))
    trace.add(0)
    trace.serve(1)
    trace.working(1, "n1", "n2", "n3")
    trace.ack(2)
    trace.setack(2.001, "n1", "n2")
    trace.send(2.001, "setack", "n1", "n3", detail="holders=3", lost=3)
    trace.crash(4, "n1", back=5)
    trace.row(290, "pause", "n1")
    trace.send(240, "setack", "n2", "n3", detail="holders=3", lost=250)
    trace.requeue(300, "n3")
    trace.serve(300, "n3", "c2")

    assert trace.verdict().duplicates == {"D2": 1}


@pytest.mark.parametrize(("holders", "due"), [("n1,n2,n3", ["L3"]), ("n1,n2,n3,n4", [])])
def test_a_holder_may_wait_for_another_who_waits_for_one_that_is_away(
    holders: str, due: list[str]
) -> None:
    trace = Trace()
    trace.add(0)
    trace.send(1, "repljob", "n2", "n1", detail=f"jobs={JOB} holders={holders}")
    trace.serve(2)
    trace.ack(3)
    trace.setack(3.001, "n1", "n2")
    trace.setack(3.001, "n1", "n3")
    trace.row(20, "chaos.end")
    trace.row(20.5, "rejoin")
    trace.row(20, "heal.end", detail="n1,n2,n3")

    assert sorted({*broken(trace.verdict(end=400))}) == due


@pytest.mark.parametrize(("heals", "cause"), [(59, "D4"), (10, "DX")])
def test_who_speaks_to_a_newcomer_has_met_it_which_ends_no_cut(heals: float, cause: str) -> None:
    trace = with_newcomer(-30, "n2")
    trace.cut(-1, ["n1"], ["n2"], until=heals)
    trace.add(0, node="n3", to=("n1", "n2"))
    trace.send(0.5, "repljob", "n1", "n2", detail=f"jobs={JOB} holders=n1,n2,n3", lost=0.6)
    trace.row(50, "unqueue", "n3", job=JOB, cause="yield")
    trace.requeue(50, "n1")
    trace.serve(50)
    trace.working(50, "n1", "n3")
    trace.requeue(50.5, "n2")
    trace.serve(50.6, "n2", "c2")

    assert trace.verdict().duplicates == {cause: 1}


@pytest.mark.parametrize(
    ("since", "is_cut", "after", "due"),
    [(-12, True, 30, []), (-12, True, 1, ["S2"]), (-12, False, 30, ["S2"])],
)
def test_a_holder_whose_old_name_others_did_not_know_to_be_old_waits_for_it_but_not_for_ever(
    since: int, after: int, due: list[str], *, is_cut: bool
) -> None:
    trace = with_newcomer(since, "n3")
    if is_cut:
        trace.cut(since + 1, ["n1"], ["n3"], until=-1)
    trace.add(0)
    for peer in ("n1", "n2"):
        trace.send(1, "repljob", peer, "n3", detail=f"jobs={JOB} holders=n1,n2,n3")
    trace.row(2, "unqueue", "n1", job=JOB, cause="given")
    trace.row(2, "queue", "n3", job=JOB, cause="enqueue-message")
    trace.serve(3, "n3")
    trace.ack(4, "n3")
    for peer in ("n1", "n2"):
        trace.send(4.002, "setack", "n3", peer, detail="holders=4")
        trace.row(4.004, "acked", peer, job=JOB, cause="setack")
        trace.send(4.004, "gotack", peer, "n3", detail="known")
    trace.row(4 + after, "drop", "n3", job=JOB, cause="collected")

    assert broken(trace.verdict()) == due


@pytest.mark.parametrize(("is_cut", "due"), [(True, []), (False, ["S14"])])
def test_a_nack_is_told_twice_where_a_holder_is_listed_under_two_names(
    due: list[str], *, is_cut: bool
) -> None:
    trace = with_newcomer(-12, "n3")
    if is_cut:
        trace.cut(-11, ["n1"], ["n3"], until=-1)
    trace.add(0)
    trace.serve(1)
    trace.row(2, "nack.invoke", "n1", job=JOB, client="c1", ref=7)
    trace.requeue(2, "n1", "nack")
    for _ in range(2):
        trace.send(2, "queued", "n1", "n3", detail="nack")
    trace.row(3, "unqueue", "n1", job=JOB, cause="given")
    trace.row(3, "give", "n1", peer="n3", job=JOB, cause="given")
    trace.send(3, "yourjobs", "n1", "n3", detail=f"jobs={JOB} holders=n1,n2,n3")
    trace.row(3.002, "queue", "n3", job=JOB, cause="import")
    trace.row(3.1, "unqueue", "n3", job=JOB, cause="served")
    trace.row(3.1, "serve", "n3", job=JOB, client="c2", cause="served")
    trace.row(3.2, "get.deliver", "n3", job=JOB, client="c2", detail="nacks=2 additional=0 body=b")

    assert broken(trace.verdict()) == due


@pytest.mark.parametrize(("at", "is_found"), [(2, False), (-60, True)])
def test_an_ack_may_wait_for_ever_for_a_name_to_which_the_job_was_given(
    at: int, *, is_found: bool
) -> None:
    trace = Trace(consumers=())
    trace.row(at - 1, "crash", "n3", cause="kill")
    trace.row(at, "start", "n3", cause="fresh")
    trace.add(1, to=(), options="replicate=1 retry=10 ttl=3600")
    trace.row(2.5, "unqueue", "n1", job=JOB, cause="given")
    trace.row(2.5, "give", "n1", job=JOB, peer="n3", cause="given")
    trace.requeue(12.5, "n1")
    trace.serve(13)
    trace.ack(14)
    trace.heal(20)

    assert ("L3" in broken(trace.verdict(end=400))) == is_found


@pytest.mark.parametrize(("third", "due"), [("n2", []), ("", ["S2"])])
def test_a_new_name_may_come_late_over_links_to_third_nodes(third: str, due: list[str]) -> None:
    trace = with_newcomer(-20, "n3")
    if third:
        trace.cut(-19, ["n1"], [third], until=-2)
    trace.add(2)
    trace.serve(3)
    trace.ack(4)
    trace.setack(4.001, "n1", "n2")
    trace.send(4.001, "setack", "n1", "n3", detail="holders=3", lost=4.002)
    trace.row(34, "drop", "n1", job=JOB, cause="collected")

    assert broken(trace.verdict()) == due
