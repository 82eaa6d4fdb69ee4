"""Decides which ticks of a schedule are added now, and when to look again: `due`, a pure
function."""

from itertools import islice
from typing import Final, Literal, get_args

import attrs

from disque_trio.statemachine.base import LONGEST_PERIOD_S
from disque_trio.worker.checks import is_whole, shown
from disque_trio.worker.cron.ticks import Tick, Ticks, between, latest, text

Missed = Literal["skip", "latest", "all"]
"""Which of the ticks at which no worker ran are added later: none, the last one, or all."""

_WITHIN_S: Final = {"skip": 60, "latest": 3600, "all": 3600}
PARTITION_S: Final = 3600
LONGEST_WAIT_S: Final = 30.0
"""The longest pause between two looks, because the wall clock may be set meanwhile."""
_LONGEST_S: Final = LONGEST_PERIOD_S // 3
"""The maximum of `within` and of `partition`: nodes keep a key for the sum of both, and a
minute."""
MOST_AT_ONCE: Final = 100


@attrs.frozen(kw_only=True)
class Schedule:
    """A task that is added at each tick."""

    name: str
    """The name of the task."""
    ticks: Ticks
    missed: Missed = attrs.field(default="skip")
    within: int = attrs.field()
    """How late a tick may be added, in seconds. The default is an hour, or a minute if missed ticks
    are skipped."""
    partition: int = attrs.field(default=PARTITION_S)
    """A partition up to this long, in seconds, does not duplicate a tick whose job is delivered on
    one side of it only."""
    backfill: bool = attrs.field(default=False)
    """Do ticks before the first start with this schedule count as missed, too?"""

    @missed.validator
    def _check_missed(self, _: object, missed: object) -> None:
        if not isinstance(missed, str) or missed not in get_args(Missed):
            raise ValueError(f"missed={shown(missed)} must be one of {', '.join(get_args(Missed))}")

    @within.default
    def _usual(self) -> int:
        return _WITHIN_S.get(str(self.missed), 0)

    @within.validator
    @partition.validator
    def _check_seconds(self, field: "attrs.Attribute[int]", seconds: object) -> None:
        if not is_whole(seconds) or not 1 <= seconds <= _LONGEST_S:
            raise ValueError(
                f"{field.name}={shown(seconds)} must be a whole number of seconds, from 1 to "
                f"{_LONGEST_S}"
            )

    @backfill.validator
    def _check_flag(self, _: object, flag: object) -> None:
        if not isinstance(flag, bool):
            raise ValueError(f"backfill={shown(flag)} must be True or False")

    @property
    def is_recorded(self) -> bool:
        """Does it depend on when a worker first started with this schedule?"""
        return self.missed != "skip" and not self.backfill

    def key(self, tick: Tick) -> str:
        """The `unique` key of the task's job at this tick."""
        return f"cron/{text(tick)}"

    @property
    def keep(self) -> int:
        """How long the key is kept after the job has ended, in seconds: another worker may add the
        tick `within` seconds later, by a clock that may be a minute behind."""
        return self.within + self.partition + 60


def begin(schedule: Schedule, now: float, since: Tick | None = None) -> Tick:
    """The tick up to which a worker that starts now regards the schedule as done; `since` is when
    the first worker started with it. Ticks that other workers have added are detected by their
    keys."""
    late = int(now) - (schedule.within if schedule.missed != "skip" else 0)
    return late if since is None else max(late, min(since, int(now)))


def due(schedule: Schedule, done: Tick, now: float) -> tuple[list[Tick], float]:
    """The ticks to add now, if all up to `done` are added, and the seconds until the next call.
    Setting the clock back has no effect: `done` never decreases."""
    until = int(now)
    since = max(done, until - schedule.within)
    if schedule.missed == "latest":
        last = latest(schedule.ticks, since, until) if since < until else None
        ticks = [] if last is None else [last]
    else:
        ticks = list(islice(between(schedule.ticks, since, until), MOST_AT_ONCE))
    if len(ticks) == MOST_AT_ONCE:
        return ticks, 0.0
    upcoming = next(schedule.ticks.after(max(since, until)), None)
    wait = LONGEST_WAIT_S if upcoming is None else upcoming - now
    return ticks, min(wait, LONGEST_WAIT_S)
