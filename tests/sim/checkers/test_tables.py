import pytest

from tests.sim.checkers.trace import Trace, broken


def problems(trace: Trace, end: float = 10) -> list[tuple[str, str]]:
    return [(v.node, v.detail) for v in trace.verdict(end).violations if v.property == "S18"]


def knows(trace: Trace, time: float, node: str, table: str) -> None:
    trace.row(time, "nodes", node, detail=table)


def test_what_does_not_fit_together_is_found_out() -> None:
    trace = Trace()
    trace.row(1, "invariant", "n2", detail="AssertionError: 5 bytes are on the account, not 0")

    [found] = trace.verdict(end=2).violations
    assert (found.property, found.node) == ("S17", "n2")
    assert found.detail.endswith("5 bytes are on the account, not 0")


def test_nodes_that_know_each_other_are_content() -> None:
    trace = Trace()
    for node in ("n1", "n2", "n3"):
        knows(trace, 1, node, "n1 n2 n3")
    trace.heal(2)
    for node in ("n1", "n2", "n3"):
        knows(trace, 6, node, "n1 n2 n3")

    verdict = trace.verdict(end=6)
    assert broken(verdict) == []
    assert verdict.checks["S18"] > 6


def test_nobody_knows_a_node_that_never_was() -> None:
    trace = Trace()
    knows(trace, 1, "n1", "n1 n2 n3 ?0badcafe")

    assert problems(trace) == [("n1", "knows 0badcafe, a node that never was")]


def test_nobody_looks_for_a_node_where_it_never_was() -> None:
    trace = Trace()
    knows(trace, 1, "n1", "n1 n2:fail,at=10.0.0.9:7711 n3")

    assert problems(trace) == [("n1", "believes n2 to be at 10.0.0.9:7711, where it never was")]


def test_a_node_that_was_told_to_forget_another_does_not_know_it() -> None:
    trace = Trace()
    trace.row(1, "forget", "n1", peer="n2")
    knows(trace, 1.05, "n1", "n1 n2 n3")  # the command has not arrived
    knows(trace, 2, "n1", "n1 n3")
    knows(trace, 3, "n1", "n1 n2 n3")

    assert problems(trace) == [("n1", "has n2 in its table 2.000 s after it was told to forget it")]


def test_a_name_that_nobody_bears_any_more_is_forgotten_too() -> None:
    trace = Trace()
    trace.row(1, "forget", "n1", peer="n2", detail="1234567890" * 4)
    knows(trace, 2, "n1", "n1 n2 n2~12345678 n3")

    assert [node for node, _ in problems(trace)] == ["n1"]


def test_after_a_minute_gossip_may_bring_a_node_back() -> None:
    trace = Trace()
    trace.row(1, "forget", "n1", peer="n2")
    knows(trace, 62, "n1", "n1 n2 n3")

    assert problems(trace, end=63) == []


def test_an_operator_may_bring_it_back_at_once() -> None:
    trace = Trace()
    trace.row(1, "forget", "n1", peer="n2")
    trace.row(5, "meet", "n3", peer="n2")
    knows(trace, 6, "n1", "n1 n2 n3")

    assert problems(trace) == []


def test_a_node_that_is_down_or_stopped_gets_no_order_to_forget() -> None:
    trace = Trace()
    trace.crash(0.5, "n1", back=2)
    trace.row(0.5, "pause", "n3")
    trace.row(1, "forget", "n1", peer="n2")
    trace.row(1, "forget", "n3", peer="n2")
    knows(trace, 3, "n1", "n1 n2 n3")
    knows(trace, 3, "n3", "n1 n2 n3")

    assert problems(trace) == []


def test_in_the_end_all_of_the_core_know_each_other_and_think_well_of_each_other() -> None:
    trace = Trace()
    trace.heal(2)
    knows(trace, 6, "n1", "n1 n2:fail n3:pfail")
    knows(trace, 6, "n2", "n1 n2")
    knows(trace, 6, "n3", "n1 n2 n3:leaving")

    assert problems(trace, end=6) == [
        ("n1", "believes of n2 in the end: fail"),
        ("n2", "does not know n3 in the end"),
        ("n3", "believes of n3 in the end: leaving"),
    ]


@pytest.mark.parametrize(
    ("lost", "end", "is_found"), [(0.51, 7, False), (0.51, 7.7, True), (None, 6, True)]
)
def test_after_a_lost_pong_a_node_closes_a_link_only_once_it_is_as_old_as_the_node_timeout(
    lost: float | None, end: float, *, is_found: bool
) -> None:
    trace = Trace(2, config=(("cluster-node-timeout", "6000"),))
    trace.send(0.5, "ping", "n1", "n2", job="")
    trace.send(0.502, "pong", "n2", "n1", job="", lag=None, lost=lost)
    trace.heal(2)
    knows(trace, 6, "n1", "n1 n2:pfail")
    knows(trace, 6, "n2", "n1 n2")

    assert bool(problems(trace, end=end)) == is_found


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_stopped_process_that_is_killed_never_receives_the_order_to_stay(
    is_killed: bool,
) -> None:
    trace = Trace()
    trace.row(0.1, "leave", "n3", detail="yes")
    trace.row(1, "pause", "n3")
    trace.row(1.1, "leave", "n3", detail="no")
    if is_killed:
        trace.crash(1.2, "n3", back=1.3)
    else:
        trace.row(1.2, "resume", "n3")
    trace.heal(2)
    for node in ("n1", "n2", "n3"):
        knows(trace, 6, node, "n1 n2 n3:leaving")

    told = [text for _, text in problems(trace, end=6)]
    assert told == ([] if is_killed else ["believes of n3 in the end: leaving"] * 3)


@pytest.mark.parametrize(
    ("ordered", "is_found"), [(1.295, False), (1.2, False), (0.5, True), (1.4, True)]
)
def test_a_node_that_starts_at_that_moment_may_miss_the_order_to_stay(
    ordered: float, *, is_found: bool
) -> None:
    trace = Trace()
    trace.row(0.1, "leave", "n3", detail="yes")
    trace.crash(1, "n3", back=1.3)
    trace.row(ordered, "leave", "n3", detail="no")
    trace.heal(2)
    knows(trace, 6, "n1", "n1 n2 n3:leaving")

    assert bool(problems(trace, end=6)) == is_found


def test_a_leaving_node_counts_as_leaving() -> None:
    trace = Trace()
    trace.row(1, "leave", "n3", detail="yes")
    trace.heal(2)
    knows(trace, 6, "n1", "n1 n2 n3:leaving")

    assert problems(trace, end=6) == []


def test_too_soon_after_the_heal_nothing_is_said() -> None:
    trace = Trace()
    trace.heal(2)
    knows(trace, 2.6, "n1", "n1 n2:fail n3")

    verdict = trace.verdict(end=2.6)
    assert broken(verdict) == []
    assert "S18" in verdict.not_judged


@pytest.mark.parametrize(("killed", "is_judged"), [(5, False), (5.5, True)])
def test_a_process_that_is_killed_as_it_goes_on_may_not_have_read_its_orders(
    killed: float, *, is_judged: bool
) -> None:
    trace = Trace()
    trace.row(1, "leave", "n2", detail="yes")
    trace.row(2, "pause", "n2")
    trace.row(3, "leave", "n2", detail="no")
    trace.row(5, "resume", "n2")
    trace.row(killed, "crash", "n2", cause="kill")
    trace.row(6, "start", "n2", cause="empty")
    trace.heal(7)
    for node in ("n1", "n2", "n3"):
        knows(trace, 40, node, "n1 n2:leaving n3")

    assert bool(problems(trace, end=41)) == is_judged
