"""What is due now, what was missed, and when to look again."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disque_trio.worker.cron.schedule import MOST_AT_ONCE, Missed, Schedule, begin, due
from disque_trio.worker.cron.ticks import Calendar, Every

NOON = 1_795_348_800
"""2026-11-22 12:00 in UTC."""


def hourly(missed: Missed = "skip", within: int = 10_000) -> Schedule:
    return Schedule(name="report", ticks=Every(3600), missed=missed, within=within)


@pytest.mark.parametrize(
    ("missed", "expected"),
    [("skip", []), ("latest", [NOON]), ("all", [NOON - 7200, NOON - 3600, NOON])],
)
def test_a_worker_that_starts_adds_what_was_missed_if_asked(
    missed: Missed, expected: list[int]
) -> None:
    schedule = hourly(missed)
    now = NOON + 600.5

    ticks, _ = due(schedule, begin(schedule, now), now)

    assert ticks == expected


@pytest.mark.parametrize(
    ("missed", "expected"),
    [("skip", [NOON - 3600, NOON]), ("latest", [NOON]), ("all", [NOON - 3600, NOON])],
)
def test_a_worker_that_was_late_adds_what_is_not_older_than_within(
    missed: Missed, expected: list[int]
) -> None:
    ticks, _ = due(hourly(missed, within=4000), NOON - 8000, NOON + 5.0)

    assert ticks == expected


def test_a_clock_that_is_set_back_repeats_no_tick() -> None:
    ticks, wait = due(hourly("all"), NOON, NOON - 3600.0)

    assert (ticks, wait) == ([], 30.0)


def test_the_next_look_is_at_the_next_tick() -> None:
    assert due(hourly(), NOON, NOON + 3590.5) == ([], 9.5)


def test_a_clock_that_is_set_forward_is_noticed_within_30_seconds() -> None:
    _, wait = due(hourly(), NOON, NOON + 1.0)

    assert wait == 30.0


def test_many_missed_ticks_are_added_a_hundred_at_a_time() -> None:
    schedule = Schedule(name="tick", ticks=Every(10), missed="all", within=3000)
    done, counts = NOON - 3000, []
    while True:
        ticks, wait = due(schedule, done, NOON)
        counts.append(len(ticks))
        if wait:
            break
        done = ticks[-1]

    assert counts == [MOST_AT_ONCE] * 3 + [0]


@given(
    missed=st.sampled_from(["skip", "latest", "all"]),
    steps=st.lists(st.floats(0.01, 500), min_size=1, max_size=50),
    every=st.integers(1, 600),
)
def test_every_tick_is_due_once_and_in_time_while_the_worker_looks_when_told(
    missed: Missed, steps: list[float], every: int
) -> None:
    schedule = Schedule(name="x", ticks=Every(every), missed=missed, within=3600)
    now, done, found = float(NOON), NOON, []
    for step in steps:
        ticks, wait = due(schedule, done, now)
        found += ticks
        done = max([done, *ticks])
        now += min(wait, step)

    assert found == list(range(NOON + every - NOON % every, done + 1, every))
    assert all(later > earlier for earlier, later in pairwise(found))


def test_the_key_names_the_instant() -> None:
    assert hourly().key(NOON + 5400) == "cron/2026-11-22T13:30Z"


@pytest.mark.parametrize(("missed", "within"), [("skip", 60), ("latest", 3600), ("all", 3600)])
def test_without_within_missed_ticks_are_added_for_an_hour(missed: Missed, within: int) -> None:
    assert Schedule(name="x", ticks=Calendar("0 0 * * *"), missed=missed).within == within


def test_the_key_outlives_within_and_a_partition() -> None:
    schedule = Schedule(name="x", ticks=Every(60), within=600, partition=7200)

    assert schedule.keep > 600 + 7200


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"missed": "most"}, "missed='most' must be one of skip, latest, all"),
        ({"within": 0}, "within=0 must be"),
        ({"partition": 1.5}, "partition=1.5 must be"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, object], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        Schedule(name="x", ticks=Every(60), **options)  # type: ignore[arg-type]
