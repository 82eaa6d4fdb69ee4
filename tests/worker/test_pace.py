"""How often collectors and coordinators look."""

import pytest

from disque_trio.worker.pace import LONGEST_S, SHORTEST_S, Pace


def with_looks(count: int, took: float = 0.1) -> Pace:
    pace = Pace()
    for number in range(count):
        pace.looked(f"batch {number}", 10.0, 10.0 + took)
    return pace


@pytest.mark.parametrize(("quiet", "pause"), [(0.0, SHORTEST_S), (8.0, 2.0), (1000.0, LONGEST_S)])
def test_the_pause_is_a_part_of_the_time_without_news(quiet: float, pause: float) -> None:
    assert with_looks(1).pause(quiet, 0, 0) == pause


def test_many_looks_leave_half_of_the_slots_to_the_members() -> None:
    pace = with_looks(50)
    assert pace.pause(0.0, 0, 4) == pytest.approx(50 * 0.1 / 2)
    assert pace.pause(0.0, 0, 0) == SHORTEST_S


def test_the_pause_has_a_bound_whatever_the_number_of_batches() -> None:
    assert with_looks(5000).pause(0.0, 0, 1) == LONGEST_S


def test_a_batch_counts_once_and_only_while_it_is_looked_at() -> None:
    pace = with_looks(50)
    pace.looked("batch 1", 20.0, 20.1)
    pace.looked("batch 1", 20.2, 20.3)
    assert pace.pause(0.0, 0, 1) == SHORTEST_S


def test_the_wait_in_a_free_slot_is_no_cost() -> None:
    pace = with_looks(1, took=2.0)
    assert pace.pause(0.0, 0, 1) == pytest.approx(0.4)


def test_nodes_are_asked_for_a_bounded_number_of_members_in_a_second() -> None:
    assert with_looks(1).pause(0.0, 1000, 0) == 5.0
    assert with_looks(1).pause(1000.0, 9000, 0) == 45.0


def test_a_large_batch_that_goes_on_is_looked_at_in_time() -> None:
    assert with_looks(1).pause(0.0, 9000, 0) == LONGEST_S
