"""L5 to L7: nodes take jobs, find each other, and make lost copies again."""

import pytest

from tests.sim.checkers.scenario import Tale, broken
from tests.sim.checkers.waits import waiting

# L5


def refused(kind: str, cause: str) -> Tale:
    tale = Tale()
    detail = "timeout=1000 replicate=1 retry=10 body=b"
    tale.say(5, "add.invoke", "n1", queue="q", client="p1", ref=9, detail=detail)
    tale.say(6, kind, "n1", queue="q", client="p1", ref=9, cause=cause)
    return tale


@pytest.mark.parametrize(
    ("kind", "cause", "due"),
    [
        ("add.refused", "NOREPL", ["L5"]),
        ("add.unknown", "timeout", ["L5"]),
        ("add.refused", "PAUSED", []),
    ],
)
def test_a_lone_node_takes_jobs(kind: str, cause: str, due: list[str]) -> None:
    assert broken(refused(kind, cause).verdict()) == due


def test_a_node_that_is_stopped_or_leaves_need_not() -> None:
    for kind in ("pause", "leave", "crash"):
        tale = refused("add.unknown", "timeout")
        tale.say(4, kind, "n1")
        assert tale.verdict().ok, kind


@pytest.mark.parametrize(("fell", "due"), [(4.9999, []), (4.5, ["L5"])])
def test_nor_one_that_has_just_come_back_without_its_clients(fell: float, due: list[str]) -> None:
    tale = refused("add.unknown", "disconnect")
    tale.crash(fell, "n1", back=fell)

    assert broken(tale.verdict()) == due


def test_nor_one_that_was_asked_while_it_was_to_leave() -> None:
    tale = refused("add.unknown", "timeout")
    tale.say(4, "leave", "n1", detail="yes")
    tale.say(5.5, "leave", "n1", detail="no")

    assert tale.verdict().ok


def test_no_answer_at_all_is_none() -> None:
    tale = Tale()
    detail = "timeout=1000 replicate=1 retry=10 body=b"
    tale.say(5, "add.invoke", "n1", queue="q", client="p1", ref=9, detail=detail)

    assert tale.verdict(end=10).ok
    assert broken(tale.verdict(end=30)) == ["L5"]


@pytest.mark.parametrize(
    ("kind", "cause", "due"),
    [
        ("add.unknown", "timeout", ["L5"]),
        ("add.refused", "NOREPL", ["L5"]),
        ("add.refused", "MAXLEN", []),
    ],
)
def test_in_calm_a_job_that_there_are_nodes_for_is_taken(
    kind: str, cause: str, due: list[str]
) -> None:
    tale = Tale()
    detail = "timeout=2000 replicate=3 retry=10 body=b"
    tale.say(5, "add.invoke", "n1", queue="q", client="p1", ref=9, detail=detail)
    tale.say(12.5, kind, "n1", queue="q", client="p1", ref=9, cause=cause)

    assert broken(tale.verdict()) == due


@pytest.mark.parametrize("options", ["timeout=2000 replicate=4", "timeout=50 replicate=3"])
def test_but_not_one_that_wants_more_nodes_or_less_time(options: str) -> None:
    tale = Tale()
    detail = f"{options} retry=10 body=b"
    tale.say(5, "add.invoke", "n1", queue="q", client="p1", ref=9, detail=detail)
    tale.say(7, "add.refused", "n1", queue="q", client="p1", ref=9, cause="NOREPL")

    assert tale.verdict().ok


def test_nor_one_that_misses_a_node() -> None:
    tale = Tale()
    tale.crash(4, "n3")
    detail = "timeout=2000 replicate=3 retry=10 body=b"
    tale.say(5, "add.invoke", "n1", queue="q", client="p1", ref=9, detail=detail)
    tale.say(7, "add.refused", "n1", queue="q", client="p1", ref=9, cause="NOREPL")

    assert tale.verdict().ok


# L6


def test_after_the_heal_the_nodes_find_each_other() -> None:
    assert waiting().verdict(end=30).checks["L6"] == 1


def test_they_may_not_take_for_ever() -> None:
    tale = waiting(consumers=(), rejoins=False)

    assert "L6" in tale.verdict(end=35).not_judged
    assert broken(tale.verdict(end=60)) == ["L6"]


def test_they_may_not_be_late() -> None:
    tale = waiting(consumers=(), rejoins=False)
    tale.say(45, "rejoin")

    assert broken(tale.verdict(end=60)) == ["L6"]


def test_gossip_will_do_where_nobody_looks_into_the_nodes() -> None:
    tale = waiting(consumers=(), rejoins=False)
    for node in ("n1", "n2", "n3"):
        for peer in ("n1", "n2", "n3"):
            if node != peer:
                tale.tell(30, "ping", node, peer, job="")

    verdict = tale.verdict(end=60)

    assert verdict.ok
    assert verdict.checks["L6"] == 1


# L7


def bereft(*, after: str = "10", options: str = "replicate=2 retry=10 ttl=3600") -> Tale:
    """A node with a copy is gone for good. All is well after 20 s, but for what it had."""
    tale = Tale(4, consumers=(), config=(("replica-repair-after", after),))
    tale.add(0, to=("n2",), options=options)
    tale.say(10, "crash", "n2", cause="kill")
    tale.say(10, "remove", "n2")
    tale.heal(20)
    return tale


REPAIR = 10 + 2 * 40 + 3 * 15 + 17 + 1


def test_a_copy_that_is_gone_for_good_must_be_made_again() -> None:
    assert broken(bereft().verdict(end=20 + REPAIR + 1)) == ["L7"]


def test_it_has_been_made_again() -> None:
    tale = bereft()
    tale.copy(40, "n1", "n3")

    verdict = tale.verdict(end=20 + REPAIR + 1)

    assert broken(verdict) == []
    assert verdict.checks["L7"] == 1
    assert verdict.marks["copy.restored"] == 1


def test_making_it_again_takes_a_while() -> None:
    assert "L7" in bereft().verdict(end=60).not_judged


def test_nothing_is_made_again_where_repair_is_off_or_promised_once() -> None:
    assert "L7" in bereft(after="0").verdict(end=300).not_judged


def test_more_copies_than_nodes_are_not_asked_for() -> None:
    tale = Tale(3, consumers=())
    tale.add(0)
    tale.say(10, "crash", "n2", cause="kill")
    tale.say(10, "remove", "n2")
    tale.heal(20)

    verdict = tale.verdict(end=100)

    assert broken(verdict) == []
    assert verdict.checks["L7"] == 1


def test_a_queue_that_is_paused_takes_no_copies() -> None:
    tale = bereft()
    tale.say(15, "pause-queue", "n3", detail="q in")

    assert "L7" in tale.verdict(end=300).not_judged
