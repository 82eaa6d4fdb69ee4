from tests.sim.checkers.scenario import Tale, broken


def complaints(tale: Tale, end: float = 10) -> list[tuple[str, str]]:
    return [(v.node, v.detail) for v in tale.verdict(end).violations if v.property == "S18"]


def knows(tale: Tale, time: float, node: str, table: str) -> None:
    tale.say(time, "nodes", node, detail=table)


def test_what_does_not_fit_together_is_found_out() -> None:
    tale = Tale()
    tale.say(1, "invariant", "n2", detail="AssertionError: 5 bytes are on the account, not 0")

    [found] = tale.verdict(end=2).violations
    assert (found.property, found.node) == ("S17", "n2")
    assert found.detail.endswith("5 bytes are on the account, not 0")


def test_nodes_that_know_each_other_are_content() -> None:
    tale = Tale()
    for node in ("n1", "n2", "n3"):
        knows(tale, 1, node, "n1 n2 n3")
    tale.heal(2)
    for node in ("n1", "n2", "n3"):
        knows(tale, 6, node, "n1 n2 n3")

    verdict = tale.verdict(end=6)
    assert broken(verdict) == []
    assert verdict.checks["S18"] > 6


def test_nobody_knows_a_node_that_never_was() -> None:
    tale = Tale()
    knows(tale, 1, "n1", "n1 n2 n3 ?0badcafe")

    assert complaints(tale) == [("n1", "knows 0badcafe, a node that never was")]


def test_nobody_looks_for_a_node_where_it_never_was() -> None:
    tale = Tale()
    knows(tale, 1, "n1", "n1 n2:fail,at=10.0.0.9:7711 n3")

    assert complaints(tale) == [("n1", "believes n2 to be at 10.0.0.9:7711, where it never was")]


def test_who_was_told_to_forget_a_node_does_not_know_it() -> None:
    tale = Tale()
    tale.say(1, "forget", "n1", peer="n2")
    knows(tale, 1.05, "n1", "n1 n2 n3")  # the command has not arrived
    knows(tale, 2, "n1", "n1 n3")
    knows(tale, 3, "n1", "n1 n2 n3")

    assert complaints(tale) == [
        ("n1", "has n2 in its table 2.000 s after it was told to forget it")
    ]


def test_a_name_that_nobody_bears_any_more_is_forgotten_too() -> None:
    tale = Tale()
    tale.say(1, "forget", "n1", peer="n2", detail="1234567890" * 4)
    knows(tale, 2, "n1", "n1 n2 n2~12345678 n3")

    assert [node for node, _ in complaints(tale)] == ["n1"]


def test_after_a_minute_gossip_may_bring_a_node_back() -> None:
    tale = Tale()
    tale.say(1, "forget", "n1", peer="n2")
    knows(tale, 62, "n1", "n1 n2 n3")

    assert complaints(tale, end=63) == []


def test_an_operator_may_bring_it_back_at_once() -> None:
    tale = Tale()
    tale.say(1, "forget", "n1", peer="n2")
    tale.say(5, "meet", "n3", peer="n2")
    knows(tale, 6, "n1", "n1 n2 n3")

    assert complaints(tale) == []


def test_a_node_that_is_down_or_stopped_does_not_hear_that_it_shall_forget() -> None:
    tale = Tale()
    tale.crash(0.5, "n1", back=2)
    tale.say(0.5, "pause", "n3")
    tale.say(1, "forget", "n1", peer="n2")
    tale.say(1, "forget", "n3", peer="n2")
    knows(tale, 3, "n1", "n1 n2 n3")
    knows(tale, 3, "n3", "n1 n2 n3")

    assert complaints(tale) == []


def test_in_the_end_all_of_the_core_know_each_other_and_think_well_of_each_other() -> None:
    tale = Tale()
    tale.heal(2)
    knows(tale, 6, "n1", "n1 n2:fail n3:pfail")
    knows(tale, 6, "n2", "n1 n2")
    knows(tale, 6, "n3", "n1 n2 n3:leaving")

    assert complaints(tale, end=6) == [
        ("n1", "believes of n2 in the end: fail"),
        ("n2", "does not know n3 in the end"),
        ("n3", "believes of n3 in the end: leaving"),
    ]


def test_who_leaves_is_believed_to() -> None:
    tale = Tale()
    tale.say(1, "leave", "n3", detail="yes")
    tale.heal(2)
    knows(tale, 6, "n1", "n1 n2 n3:leaving")

    assert complaints(tale, end=6) == []


def test_too_soon_after_the_heal_nothing_is_said() -> None:
    tale = Tale()
    tale.heal(2)
    knows(tale, 2.6, "n1", "n1 n2:fail n3")

    verdict = tale.verdict(end=2.6)
    assert broken(verdict) == []
    assert "S18" in verdict.not_judged
