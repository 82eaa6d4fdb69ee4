"""The clocks of live nodes are set right by what was measured, and by what messages say."""

from typing import Any

from disque_trio.sim.traces.clocks import Clock, narrowed, shifted
from disque_trio.tracing.rows import Row


def row(
    time: int, kind: str, node: str, peer: str = "", cause: str = "gotjob", detail: str = ""
) -> Row:
    return Row(time, kind, node, "D-", peer=peer, cause=cause, detail=detail)


def of(*rows: Row) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for each in rows:
        found.setdefault(each.node, []).append(each)
    return found


def test_what_was_measured_stays_if_no_message_contradicts_it() -> None:
    rows = of(row(100, "send", "a", "b"), row(900, "recv", "b", "a"))
    measured = {"a": Clock(0, 50), "b": Clock(300, 50)}

    clocks = narrowed(rows, measured)

    assert {node: clock.ahead for node, clock in clocks.items()} == {"a": 0, "b": 300}


def test_no_message_arrives_before_it_was_sent() -> None:
    rows = of(row(1000, "send", "a", "b"), row(900, "recv", "b", "a"))
    measured = {"a": Clock(0, 500), "b": Clock(0, 500)}

    clocks = narrowed(rows, measured)

    assert clocks["b"].ahead - clocks["a"].ahead <= -101
    sent, heard = (shifted(rows[node], clocks[node])[0].time for node in "ab")
    assert heard > sent


def test_messages_both_ways_narrow_the_error() -> None:
    rows = of(
        row(1000, "send", "a", "b"),
        row(5040, "recv", "b", "a"),
        row(5050, "send", "b", "a", "x"),
        row(1100, "recv", "a", "b", "x"),
    )
    measured = {"a": Clock(0, 0), "b": Clock(4_700, 900)}

    clock = narrowed(rows, measured)["b"]

    assert 3_951 <= clock.ahead <= 4_039
    assert clock.error == 44


def test_the_bounds_of_three_nodes_hold_together() -> None:
    rows = of(
        row(100, "send", "a", "b"),
        row(90, "recv", "b", "a"),
        row(95, "send", "b", "c"),
        row(80, "recv", "c", "b"),
    )
    measured: dict[str, Clock] = {node: Clock(0, 1_000) for node in "abc"}

    clocks = narrowed(rows, measured)
    times: dict[str, Any] = {node: shifted(rows[node], clocks[node]) for node in "abc"}

    assert times["a"][0].time < times["b"][0].time < times["b"][1].time < times["c"][0].time


def test_a_clock_that_was_set_meanwhile_is_as_it_was_measured() -> None:
    rows = of(row(90_000, "send", "a", "b"), row(900, "recv", "b", "a"))
    measured = {"a": Clock(0, 50), "b": Clock(0, 50)}

    assert narrowed(rows, measured) == measured


def test_rows_of_a_node_stay_in_order_though_its_clock_goes_back() -> None:
    rows = [row(1_000, "hold", "a"), row(500, "drop", "a")]

    assert [each.time for each in shifted(rows, Clock(100, 0))] == [900, 900]


def test_a_message_that_was_lost_moves_no_clock() -> None:
    rows = of(
        row(1_000, "send", "a", "b"),
        row(5_000, "send", "a", "b"),
        row(5_100, "recv", "b", "a"),
        row(9_000, "send", "a", "b"),
        row(9_100, "recv", "b", "a"),
    )
    measured = {"a": Clock(0, 3_000), "b": Clock(0, 3_000)}

    clocks = narrowed(rows, measured)

    assert {node: clock.ahead for node, clock in clocks.items()} == {"a": 0, "b": 0}


def test_a_message_of_whose_sending_no_row_is_left_moves_no_clock() -> None:
    rows = of(
        row(1_000, "recv", "b", "a"),
        row(5_000, "send", "a", "b"),
        row(5_100, "recv", "b", "a"),
    )
    measured = {"a": Clock(0, 3_000), "b": Clock(0, 3_000)}

    assert narrowed(rows, measured) == measured


def test_a_message_that_cannot_have_been_heard_so_early_is_another_one() -> None:
    rows = of(
        row(1_000, "recv", "b", "a"),
        row(50_000, "send", "a", "b"),
        row(49_900, "recv", "b", "a"),
    )
    measured = {"a": Clock(0, 3_000), "b": Clock(0, 3_000)}

    clocks = narrowed(rows, measured)

    assert clocks["b"].ahead - clocks["a"].ahead == -101


def test_what_messages_say_tells_them_apart_though_one_was_lost() -> None:
    rows = of(
        row(1_000, "send", "a", "b", "enqueue", "delay=5"),
        row(5_000, "send", "a", "b", "enqueue", "delay=0"),
        row(4_900, "recv", "b", "a", "enqueue", "delay=0"),
    )
    measured = {"a": Clock(0, 3_000), "b": Clock(0, 3_000)}

    clocks = narrowed(rows, measured)

    assert clocks["b"].ahead - clocks["a"].ahead == -101
