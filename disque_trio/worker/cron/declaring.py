"""The cron schedules of an app's tasks (`App.cron`)."""

from datetime import UTC, datetime
from typing import Any, Final, TypedDict, Unpack
from zoneinfo import ZoneInfo

import attrs

from disque_trio.worker.arguments import UnfitTypeError
from disque_trio.worker.cron.schedule import Missed, Schedule
from disque_trio.worker.cron.ticks import Calendar, Every, Tick, Ticks, zone_of
from disque_trio.worker.envelope import NotEncodableError
from disque_trio.worker.requests import not_enqueued
from disque_trio.worker.task import Task

ARGUMENT: Final = "scheduled"
"""The name of an optional argument of tasks: the instant at which the job is due, in UTC."""


class CronOptions(TypedDict, total=False):
    """Options of `App.cron`; they are fields of `Schedule`."""

    missed: Missed
    within: int
    partition: int
    backfill: bool


@attrs.define(eq=False)
class Crons:
    """The schedules of an app."""

    tasks: dict[str, Task[..., Any]] = attrs.Factory(dict)
    """By name."""
    schedules: list[Schedule] = attrs.Factory(list)

    def declare(self, task: Task[..., Any], ticks: Ticks, **options: Unpack[CronOptions]) -> None:
        """Add a schedule of a task. Raises `ValueError` for a task that requires other arguments,
        or whose `scheduled` argument cannot be encoded without change."""
        if not task.arguments.accept(**_arguments(task, 0)):
            raise ValueError(f"task {task.name}: cron gives it no argument but `{ARGUMENT}`")
        try:
            task.arguments.pack((), _arguments(task, 0), task.enqueuer.form)
        except NotEncodableError as error:
            raise ValueError(f"task {error}") from error
        except UnfitTypeError as error:
            if not isinstance(error.__cause__, NameError):  # it may be defined later
                raise
        self.tasks[task.name] = task
        self.schedules.append(Schedule(name=task.name, ticks=ticks, **options))

    async def add(self, schedule: Schedule, tick: Tick) -> None:
        """Add the job of a tick, unless a worker has added it. Raises errors of the client, and
        `NotEnqueuedError`."""
        task = self.tasks[schedule.name]
        once = task.using(
            unique=schedule.key(tick), unique_for=float(schedule.keep), on_conflict="return"
        )
        try:
            request = once.enqueuer.request(once.call(**_arguments(task, tick)))
        except Exception as error:  # hooks may raise anything: the next tick may be added
            raise not_enqueued(task.name, error) from error
        await once.enqueuer.add(request)


def ticks_of(fields: str | None, every: int | None, zone: str | ZoneInfo) -> Ticks:
    """The ticks for the arguments of `App.cron`. Raises `TypeError` and `ValueError`."""
    if (fields is None) == (every is None):
        raise ValueError('cron needs either five fields, as "30 2 * * *", or every=seconds')
    if every is not None:
        zone_of(zone)  # it has no effect, but an invalid one is a mistake
        return Every(every)
    return Calendar(fields or "", zone)


def _arguments(task: Task[..., Any], tick: Tick) -> dict[str, Any]:
    scheduled = instant(tick)
    takes = task.arguments.names(ARGUMENT) and task.arguments.accept(**scheduled)
    return scheduled if takes else {}


def instant(tick: Tick) -> dict[str, datetime]:
    """The arguments of the job of a tick."""
    return {ARGUMENT: datetime.fromtimestamp(tick, UTC)}
