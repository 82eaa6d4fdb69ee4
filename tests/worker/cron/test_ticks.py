"""The instants of schedules, against a walk through every minute, and by example."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disque_trio.worker.cron.ticks import Calendar, Every, Tick, between, latest, text

RANGES = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)]
ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",  # half an hour of summer time
    "Asia/Beirut",  # summer begins at midnight
    "Antarctica/Troll",  # two hours
    "Asia/Kathmandu",
]


def instant(shown: str) -> Tick:
    return int(datetime.fromisoformat(shown).timestamp())


def shown(fields: str, zone: str, after: str, count: int) -> list[str]:
    return [text(tick) for tick in islice(Calendar(fields, zone).after(instant(after)), count)]


# A time that the clock skips or shows twice. Berlin: 2026-03-29 01:00Z and 2026-10-25 01:00Z.


def test_a_time_that_is_skipped_is_due_when_the_clock_goes_on() -> None:
    assert shown("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", 2) == [
        "2026-03-29T01:00Z",
        "2026-03-30T00:30Z",
    ]


def test_several_times_that_are_skipped_are_due_once() -> None:
    assert shown("0,20,40 2 * * *", "Europe/Berlin", "2026-03-29T00:00Z", 2) == [
        "2026-03-29T01:00Z",
        "2026-03-30T00:00Z",
    ]


@pytest.mark.parametrize("after", ["2026-10-24T12:00Z", "2026-10-25T00:29Z"])
def test_a_time_that_comes_twice_is_due_the_first_time(after: str) -> None:
    assert shown("30 2 * * *", "Europe/Berlin", after, 2) == [
        "2026-10-25T00:30Z",
        "2026-10-26T01:30Z",
    ]


@pytest.mark.parametrize("after", ["2026-10-25T00:30Z", "2026-10-25T01:15Z", "2026-10-25T01:45Z"])
def test_from_within_the_second_time_it_is_due_the_day_after(after: str) -> None:
    assert shown("30 2 * * *", "Europe/Berlin", after, 1) == ["2026-10-26T01:30Z"]


def test_west_of_greenwich_the_first_tick_may_be_hours_away() -> None:
    assert shown("0 12 * * *", "America/New_York", "2026-06-01T15:00Z", 2) == [
        "2026-06-01T16:00Z",
        "2026-06-02T16:00Z",
    ]


def test_an_hourly_schedule_follows_the_time_that_passes() -> None:
    assert shown("0 * * * *", "Europe/Berlin", "2026-10-24T23:30Z", 4) == [
        "2026-10-25T00:00Z",
        "2026-10-25T01:00Z",
        "2026-10-25T02:00Z",
        "2026-10-25T03:00Z",
    ]
    assert shown("0 * * * *", "Europe/Berlin", "2026-03-29T00:00Z", 2) == [
        "2026-03-29T01:00Z",
        "2026-03-29T02:00Z",
    ]


# All schedules.


@st.composite
def field(draw: st.DrawFn, index: int) -> tuple[str, set[int]]:
    low, high = RANGES[index]
    form = draw(st.sampled_from(["*", "*/n", "list", "range"]))
    if form == "*":
        return "*", set(range(low, high + 1))
    if form == "*/n":
        step = draw(st.integers(2, 20))
        return f"*/{step}", set(range(low, high + 1, step))
    if form == "range":
        first, last = sorted(draw(st.tuples(*[st.integers(low, high)] * 2)))
        return f"{first}-{last}", set(range(first, last + 1))
    values = draw(st.sets(st.integers(low, high), min_size=1, max_size=3))
    return ",".join(map(str, values)), values


@st.composite
def schedules(draw: st.DrawFn) -> tuple[str, list[set[int]]]:
    drawn = [draw(field(index)) for index in range(5)]
    if draw(st.booleans()):  # most days, or little would be due
        drawn[2:] = [("*", set(range(32))), ("*", set(range(13))), ("*", set(range(7)))]
    return " ".join(text for text, _ in drawn), [values for _, values in drawn]


def matches(fields: str, values: list[set[int]], wall: datetime) -> bool:
    minutes, hours, days, months, weekdays = values
    parts = fields.split()
    by_date, by_weekday = wall.day in days, wall.isoweekday() % 7 in weekdays
    both = parts[2].startswith("*") or parts[4].startswith("*")
    day = by_date and by_weekday if both else by_date or by_weekday
    return day and wall.minute in minutes and wall.hour in hours and wall.month in months


def walked(
    fields: str, values: list[set[int]], zone: ZoneInfo, begin: Tick, end: Tick
) -> Iterator[Tick]:
    """Each minute after `begin`: which times of day does the clock show or skip here?"""
    is_by_day = not any(part.startswith("*") for part in fields.split()[:2])
    highest = datetime.min
    minute = timedelta(minutes=1)
    for tick in range(begin - 86_400, end + 1, 60):
        wall = datetime.fromtimestamp(tick, zone).replace(tzinfo=None)
        new = [wall]
        if is_by_day:
            first = max(highest + minute, wall - timedelta(hours=3))
            new = [first + minute * n for n in range((wall - first) // minute + 1)]
            highest = max(highest, wall)
        if tick > begin and any(matches(fields, values, each) for each in new):
            yield tick


CHANGES = ["2026-03-29T01:00Z", "2026-10-25T01:00Z", "2026-03-08T07:00Z", "2026-11-01T06:00Z"]
CHANGES += ["2026-04-04T15:00Z", "2026-10-03T15:30Z", "2026-03-28T22:00Z", "2026-10-24T21:00Z"]


@given(
    schedule=schedules(),
    zone=st.sampled_from(ZONES),
    near=st.sampled_from(CHANGES),
    ahead=st.integers(0, 1600),
)
def test_a_schedule_is_due_when_a_walk_through_all_minutes_says(
    schedule: tuple[str, list[set[int]]], zone: str, near: str, ahead: int
) -> None:
    fields, values = schedule
    begin = instant(near) - 60 * ahead
    end = begin + 2 * 86_400
    try:
        calendar = Calendar(fields, zone)
    except ValueError:  # 31 February
        return

    assert list(between(calendar, begin, end)) == list(
        walked(fields, values, ZoneInfo(zone), begin, end)
    )


@given(st.integers(1, 100_000), st.integers(0, 2_000_000_000))
def test_an_interval_counts_from_1970(seconds: int, after: int) -> None:
    first, second = islice(Every(seconds).after(after), 2)

    assert after < first <= after + seconds
    assert first % seconds == 0
    assert second == first + seconds


def test_a_leap_day_is_found_years_ahead() -> None:
    assert shown("0 0 29 2 *", "Europe/Berlin", "2026-01-01T00:00Z", 1) == ["2028-02-28T23:00Z"]


@given(schedules(), st.integers(0, 100_000))
def test_the_latest_tick_is_the_last_of_all(
    schedule: tuple[str, list[set[int]]], length: int
) -> None:
    try:
        calendar = Calendar(schedule[0])
    except ValueError:
        return
    until = instant("2026-11-22T01:30Z")
    ticks = list(between(calendar, until - length, until))

    assert latest(calendar, until - length, until) == (ticks[-1] if ticks else None)


def test_an_instant_is_written_in_utc() -> None:
    tick = int(datetime(2026, 11, 22, 1, 30, tzinfo=UTC).timestamp())

    assert (text(tick), text(tick + 5)) == ("2026-11-22T01:30Z", "2026-11-22T01:30:05Z")


# Mistakes.


@pytest.mark.parametrize(
    ("fields", "zone", "error"),
    [
        ("30 2 * *", "UTC", "has 4 fields"),
        ("0 30 2 * * *", "UTC", "has 6 fields"),
        ("30 25 * * *", "UTC", "is not a schedule of cron: Bad hour"),
        ("0 0 31 2 *", "UTC", "Bad day-of-month"),
        ("0 0 * * *", "Europe/Atlantis", "'Europe/Atlantis' is unknown"),
        ("0 0 * * *", "../etc/passwd", "is unknown"),
        ("0 0 * * *", "/etc/passwd", "is unknown"),
        ("0 0 * * *", "", "is unknown; names are as Europe/Berlin"),
        ("0 0 * * *", "America", "is unknown; names are as America/Adak"),
        ("0 0 * * *", "europe/berlin", "is unknown; did you mean Europe/Berlin?"),
        ("0 0 * * *", "zone.tab", "is unknown"),
        ("0 0 * * *", "Europe/\0", "is unknown"),
        ("0 0 * * *", "x" * 5000, "is unknown"),
        ("@reboot", "UTC", "'@reboot' is not a schedule of cron: there are @yearly, @annually"),
        ("@", "UTC", "is not a schedule of cron"),
        ("0 ? * * *", "UTC", "Bad hour"),
        ("0 0 * * Monda", "UTC", "Bad day-of-week"),
    ],
)
def test_a_wrong_calendar_is_refused(fields: str, zone: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        Calendar(fields, zone)


@given(st.lists(st.text("0123456789*/,-#?LWlwMONSUNJAN@²", max_size=6), min_size=1, max_size=6))
def test_no_text_raises_any_other_error(fields: list[str]) -> None:
    with suppress(ValueError):
        Calendar(" ".join(each or "*" for each in fields))


# Other ways to write a schedule.


@pytest.mark.parametrize(
    ("schedule", "fields"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * SUN"),
        ("@daily", "0 0 * * *"),
        ("@Midnight ", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        ("0 0 ? * MON", "0 0 * * 1"),
        ("0 0 15 * ?", "0 0 15 * *"),
        ("0 9 * january,DEC Monday-fri", "0 9 * 1,12 1-5"),
        ("0 9 * * FRI-SUN", "0 9 * * 5,6,0"),
        ("0 9 * * sunday#2", "0 9 * * 0#2"),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_nicknames_and_names_stand_for_fields(schedule: str, fields: str, zone: str) -> None:
    found = Calendar(schedule, zone)

    assert list(islice(found.after(0), 20)) == list(islice(Calendar(fields, zone).after(0), 20))
    assert found.words == f"{schedule.strip()} {zone}"


def test_a_zone_may_be_given_as_an_object() -> None:
    assert Calendar("@daily", ZoneInfo("Asia/Tokyo")).zone.key == "Asia/Tokyo"


@pytest.mark.parametrize("seconds", [0, -5, 0.5, True])
def test_an_interval_below_a_second_is_refused(seconds: int) -> None:
    with pytest.raises(ValueError, match=f"every={seconds} must be"):
        Every(seconds)
