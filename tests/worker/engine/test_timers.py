"""Timers that many items share."""

import attrs

from disque_trio.worker.engine.timers import GRAIN, NEVER, Timers


@attrs.define(eq=False)
class Item:
    """It is due then."""

    name: str
    due: int
    armed: int = NEVER


def timers(*items: Item) -> Timers[Item]:
    found: Timers[Item] = Timers()
    for item in items:
        found.watch(item)
    return found


def taken(found: Timers[Item], now: int) -> list[str]:
    return [item.name for item in found.take(now)]


def test_items_are_taken_when_they_are_due() -> None:
    found = timers(Item("c", 5), Item("a", 3), Item("d", 5), Item("b", 3), Item("e", 6))

    assert taken(found, 5) == ["c", "a", "d", "b"]
    assert taken(found, 5) == []
    assert found.deadline() == 6


def test_a_timer_fires_earlier_and_then_at_the_exact_time() -> None:
    due = 3 * GRAIN + 2
    found = timers(Item("a", due), Item("b", due + 1))
    assert found.deadline() == 3 * GRAIN

    assert taken(found, 3 * GRAIN) == []
    assert found.deadline() == due
    assert taken(found, due) == ["a"]
    assert taken(found, due + 1) == ["b"]


def test_an_item_that_is_due_later_by_now_waits_for_that() -> None:
    a, b = Item("a", 3), Item("b", 3)
    found = timers(a, b)
    a.due = 7

    assert taken(found, 6) == ["b"]
    assert found.deadline() == 7


def test_an_item_that_is_due_earlier_by_now_is_watched_again() -> None:
    item = Item("a", 7 * GRAIN)
    found = timers(item)
    item.due = 3 * GRAIN
    found.watch(item)

    assert taken(found, 9 * GRAIN) == ["a"]


def test_an_item_that_moves_away_and_back_is_taken_once() -> None:
    item = Item("a", 7 * GRAIN)
    found = timers(item)
    item.due = 3 * GRAIN
    found.watch(item)
    item.due = 7 * GRAIN

    assert taken(found, 6 * GRAIN) == []
    assert taken(found, 7 * GRAIN) == ["a"]
    assert (found.deadline(), found.count) == (NEVER, 0)


def test_items_that_have_left_cost_nothing_once_they_are_cleared_away() -> None:
    items = [Item(str(number), number % 3) for number in range(9)]
    found = timers(*items)
    for item in items[:8]:
        item.armed = NEVER
    found.clear()

    assert found.count == 1
    assert taken(found, 9) == ["8"]
    assert found.deadline() == NEVER


def test_an_item_that_is_never_due_has_no_timer() -> None:
    assert timers(Item("a", NEVER)).count == 0
