"""The resident size is a second bound: it matters only where it exceeds what the account knows."""

import pytest

from disque_trio.statemachine import pressure
from disque_trio.statemachine.base import Status
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.pressure import OOM, level
from disque_trio.statemachine.resident_size import LEAST_PAUSE, MOST_PAUSE, measured
from tests.rig import Rig
from tests.statemachine.squeezing import MB

LIMIT = 100 * MB
OWN = 20 * MB


def rig_of(used: int, *, spill_directory: str = "") -> Rig:
    """A node in whose account there are so many bytes."""
    rig = Rig(config=Config(maxmemory=LIMIT, spill_directory=spill_directory))
    rig.node.facts.process_bytes = OWN
    rig.node.facts.traffic.journal = 15 * MB
    pressure.review(rig.node)
    body = used - pressure.used(rig.node) - 2000
    rig.add(queue="large", body="b" * body)
    return rig


@pytest.mark.parametrize(("resident", "expected"), [(103, 0), (105, 1), (107, 1), (115, 2)])
def test_what_the_account_does_not_know_of_counts(resident: int, expected: int) -> None:
    rig = rig_of(40 * MB)

    measured(rig.node, resident * MB)

    assert level(rig.node) == expected
    assert pressure.is_resident_bound(rig.node)


def test_without_a_measurement_the_account_decides_alone() -> None:
    rig = rig_of(40 * MB)

    assert level(rig.node) == 0
    assert not pressure.is_resident_bound(rig.node)


def test_a_process_smaller_than_its_account_may_hold_no_more() -> None:
    rig = rig_of(97 * MB)

    measured(rig.node, 50 * MB)

    assert level(rig.node) == 2


def test_until_the_next_measurement_no_more_is_added_than_there_is_room_for() -> None:
    rig = rig_of(40 * MB)
    measured(rig.node, 103 * MB)

    accepted = 0
    while isinstance(rig.ask("ADDJOB", "q", "b" * MB, 0), bytes | Status):
        accepted += 1
        rig.advance(pressure.REVIEW_EVERY)

    assert 4 <= accepted <= 6


def test_bodies_go_to_disk_before_jobs_are_refused(tmp_path: object) -> None:
    rig = rig_of(40 * MB, spill_directory=str(tmp_path))

    measured(rig.node, 95 * MB)
    assert rig.node.memory.held <= rig.node.memory.spill_above

    measured(rig.node, 101 * MB)
    assert rig.node.memory.held > rig.node.memory.spill_above
    assert level(rig.node) == 0


# Trials.


def added(rig: Rig, *, mb: float) -> None:
    """More in the account, whatever the bounds are."""
    rig.node.facts.traffic.journal += round(mb * MB)
    pressure.review(rig.node)


def test_at_the_bound_a_few_jobs_find_out_whether_holes_have_room() -> None:
    rig = rig_of(40 * MB)
    measured(rig.node, 110 * MB)
    assert isinstance(rig.ask("ADDJOB", "q", "b" * 700_000, 0), bytes | Status)
    assert rig.ask("ADDJOB", "q", "b" * 700_000, 0) != OOM
    assert rig.ask("ADDJOB", "q", "b" * 700_000, 0) == OOM

    for _ in range(20):
        measured(rig.node, 110 * MB)
        assert level(rig.node) < 2
        added(rig, mb=0.7)


def test_a_trial_that_needed_new_memory_is_repeated_ever_later() -> None:
    rig = rig_of(40 * MB)
    resident = 108.5
    measured(rig.node, round(resident * MB))
    pauses = []
    for _ in range(5):
        added(rig, mb=0.9)
        resident += 0.9
        measured(rig.node, round(resident * MB))
        assert level(rig.node) == 2
        pauses.append(rig.node.memory.trial_at - rig.node.mono)
        rig.advance(pauses[-1] - 1)
        measured(rig.node, round(resident * MB))
        assert level(rig.node) == 2
        rig.advance(1)
        measured(rig.node, round(resident * MB))
        assert level(rig.node) < 2

    assert pauses == [LEAST_PAUSE << times for times in range(5)]
    assert pauses[-1] < MOST_PAUSE


def test_a_trial_lasts_until_it_tells_something() -> None:
    rig = rig_of(40 * MB)
    measured(rig.node, 111 * MB)
    added(rig, mb=0.3)
    measured(rig.node, 111 * MB)
    assert level(rig.node) < 2

    added(rig, mb=0.8)

    assert level(rig.node) == 2


def test_what_leaves_during_a_trial_makes_no_room_beyond_it() -> None:
    rig = rig_of(40 * MB)
    measured(rig.node, 111 * MB)
    added(rig, mb=-10)
    measured(rig.node, 111 * MB)
    assert level(rig.node) < 2

    added(rig, mb=1.1)

    assert level(rig.node) == 2


def test_far_above_the_bound_nothing_is_tried() -> None:
    rig = rig_of(40 * MB)

    measured(rig.node, 114 * MB)

    assert level(rig.node) == 2
    assert rig.ask("ADDJOB", "q", "b", 0) == OOM


def test_memory_that_was_given_back_ends_the_pauses() -> None:
    rig = rig_of(40 * MB)
    measured(rig.node, 110 * MB)
    added(rig, mb=0.9)
    measured(rig.node, 111 * MB)
    assert level(rig.node) == 2

    measured(rig.node, 60 * MB)
    assert level(rig.node) == 0

    measured(rig.node, 110 * MB)
    assert level(rig.node) < 2
