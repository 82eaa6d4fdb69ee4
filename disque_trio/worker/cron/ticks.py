"""The instants at which a schedule is due, in whole Unix seconds. No clock is read.

If the clock is set forward over a time of day, that time is due at the change; if it is set back, a
time that occurs twice is due the first time. A schedule whose minute or hour begins with `*`
follows elapsed time instead: a skipped time is not due, and a time that occurs twice is due twice.
"""

import difflib
from bisect import bisect_left
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import takewhile
from typing import Final, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import attrs
from cronsim import CronSim, CronSimError

from disque_trio.worker.cron.fields import plain

Tick = int
"""Unix seconds."""
_DAY_S: Final = 86_400
_FIRST_LOOK_S: Final = 3600


class Ticks(Protocol):
    """A rule for the instants at which something is due."""

    @property
    def words(self) -> str:
        """The rule as readable text."""
        ...

    def after(self, instant: Tick) -> Iterator[Tick]:
        """All ticks after this instant, in order."""
        ...


@attrs.frozen
class Every:
    """Every `seconds` seconds, counted from 1970, so that all workers have the same ticks."""

    seconds: int = attrs.field()

    @seconds.validator
    def _check(self, _: object, seconds: object) -> None:
        if not isinstance(seconds, int) or isinstance(seconds, bool) or seconds < 1:
            raise ValueError(f"every={seconds!r} must be a whole number of seconds, at least 1")

    @property
    def words(self) -> str:
        """`every 60 s`."""
        return f"every {self.seconds} s"

    def after(self, instant: Tick) -> Iterator[Tick]:
        """All ticks after this instant, in order."""
        while True:
            instant += self.seconds - instant % self.seconds
            yield instant


@attrs.frozen(init=False)
class Calendar:
    """The five fields of cron, by the wall clock of a time zone."""

    text: str
    """The schedule as it was given, such as `@daily`."""
    fields: str
    zone: ZoneInfo
    _is_by_day: bool
    """Are its times of day fixed: does neither minute nor hour begin with `*`?"""

    def __init__(self, schedule: str, zone: str | ZoneInfo = "UTC") -> None:
        """Raises `ValueError` for invalid fields, fields that are never due, and an unknown zone;
        `TypeError` if the schedule is not text."""
        fields = plain(schedule)
        try:
            next(CronSim(fields, datetime(2000, 1, 1)))
        except CronSimError as error:
            raise ValueError(f"{schedule!r} is not a schedule of cron: {error}") from error
        except StopIteration:
            raise ValueError(f"{schedule!r} is never due") from None
        is_by_day = not any(part.startswith("*") for part in fields.split()[:2])
        self.__attrs_init__(" ".join(schedule.split()), fields, zone_of(zone), is_by_day)

    @property
    def words(self) -> str:
        """The schedule as it was given, and the zone."""
        return f"{self.text} {self.zone.key}"

    def after(self, instant: Tick) -> Iterator[Tick]:
        """All ticks after this instant, in order."""
        return self._by_day(instant) if self._is_by_day else self._by_passing(instant)

    def _by_day(self, instant: Tick) -> Iterator[Tick]:
        for wall in CronSim(self.fields, _wall(instant - 2 * _DAY_S)):  # offsets are below a day
            tick = self._first(wall)
            if tick > instant:
                instant = tick
                yield tick

    def _first(self, wall: datetime) -> Tick:
        """When the clock first shows this time, or the instant of the change if the clock skips
        it."""
        tick = int(wall.replace(tzinfo=self.zone).timestamp())
        if _wall(tick + self._offset(tick)) == wall:
            return tick
        before = tick - _DAY_S
        change = self._change(before, tick, self._offset(before))
        assert change is not None, (wall, self.zone)
        return change

    def _by_passing(self, instant: Tick) -> Iterator[Tick]:
        offset: int | None = self._offset(instant + 1)
        while offset is not None:
            new_offset = None
            for wall in CronSim(self.fields, _wall(instant + offset)):
                tick = _instant(wall) - offset
                change = self._change(instant + 1, tick, offset)
                if change is not None:
                    instant, new_offset = change - 1, self._offset(change)
                    break
                instant = tick
                yield tick
            offset = new_offset

    def _change(self, low: Tick, high: Tick, offset: int) -> Tick | None:
        """The first instant from `low` to `high` at which the zone has another offset."""
        while low <= high:
            probe = min(low + _DAY_S, high)
            if self._offset(probe) != offset:
                days = range(low, probe)
                return days.start + bisect_left(
                    days, True, key=lambda each: self._offset(each) != offset
                )
            low = probe + 1
        return None

    def _offset(self, instant: Tick) -> int:
        """The offset of the zone's clocks from UTC, in seconds."""
        offset = datetime.fromtimestamp(instant, self.zone).utcoffset()
        assert offset is not None
        return int(offset.total_seconds())


def latest(ticks: Ticks, since: Tick, until: Tick) -> Tick | None:
    """The last tick after `since` that is not after `until`."""
    length = _FIRST_LOOK_S
    while True:
        begin = max(since, until - length)
        last = None
        for last in between(ticks, begin, until):  # noqa: B007
            pass
        if last is not None or begin == since:
            return last
        length *= 8


def between(ticks: Ticks, since: Tick, until: Tick) -> Iterator[Tick]:
    """All ticks after `since` that are not after `until`."""
    return takewhile(lambda tick: tick <= until, ticks.after(since))


def text(tick: Tick) -> str:
    """The instant in UTC, as in keys: `2026-11-22T01:30Z`, with seconds unless they are 0."""
    shown = datetime.fromtimestamp(tick, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return shown.replace(":00Z", "Z") if tick % 60 == 0 else shown


def _wall(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


def _instant(wall: datetime) -> int:
    return int(wall.replace(tzinfo=UTC).timestamp())


def zone_of(tz: object) -> ZoneInfo:
    """The time zone with this name; a `ZoneInfo` is returned unchanged. Raises `TypeError` and
    `ValueError`."""
    if isinstance(tz, ZoneInfo) and tz.key is not None:
        return tz
    if not isinstance(tz, str):
        raise TypeError(f'tz={tz!r}: give the name of a time zone, such as "Europe/Berlin"')
    try:
        return ZoneInfo(tz)
    except (OSError, ValueError, ZoneInfoNotFoundError) as error:  # a folder, a path, unknown
        raise ValueError(f"the time zone {tz!r:.80} is unknown; {_hint(tz)}") from error


def _hint(name: str) -> str:
    known = {each.lower(): each for each in available_timezones()}
    inside = sorted(each for each in known.values() if each.startswith(f"{name}/"))
    near = difflib.get_close_matches(name.lower(), known, n=1)
    if near and not inside:
        return f"did you mean {known[near[0]]}?"
    return f"names are as {inside[0] if inside else 'Europe/Berlin'}"
