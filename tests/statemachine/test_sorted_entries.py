import random

from disque_trio.statemachine.sorted_entries import PIECE, Entry, SortedEntries
from tests.statemachine.test_queue import job


def entry(number: int) -> Entry:
    return (0, number, 0, b"id", number, job(number))


def numbers(entries: SortedEntries) -> list[int]:
    return [each[1] for each in entries]


def test_entries_are_sorted_from_either_end_whatever_their_order_was() -> None:
    drawn = random.Random(1).sample(range(10 * PIECE), 5 * PIECE)
    entries = SortedEntries()
    for number in drawn:
        entries.add(entry(number))

    assert len(entries) == len(drawn)
    assert numbers(entries) == sorted(drawn)
    assert [each[1] for each in reversed(entries)] == sorted(drawn, reverse=True)


def test_the_lowest_is_taken_out_whatever_comes_meanwhile() -> None:
    rng, entries, model = random.Random(2), SortedEntries(), []
    for number in rng.sample(range(10 * PIECE), 4 * PIECE):
        entries.add(entry(number))
        model.append(number)
        if rng.random() < 0.6:
            model.sort()
            assert entries.first[1] == model[0]
            assert entries.pop_first()[1] == model.pop(0)

    assert numbers(entries) == sorted(model)
    while entries:
        entries.pop_first()
    assert not numbers(entries)
    entries.add(entry(1))
    assert numbers(entries) == [1]


def test_only_some_are_kept() -> None:
    entries = SortedEntries()
    for number in range(3 * PIECE):
        entries.add(entry(number))

    entries.only(each for each in entries if each[1] % 2)
    entries.add(entry(PIECE))

    assert len(entries) == 3 * PIECE // 2 + 1
    assert numbers(entries) == sorted([*range(1, 3 * PIECE, 2), PIECE])


def test_none_may_be_kept() -> None:
    entries = SortedEntries()
    entries.add(entry(1))

    entries.only(())

    assert not entries
    assert not numbers(entries)
