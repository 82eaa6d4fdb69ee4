"""Schedules that an app adds at run time (`App.schedules`; docs/worker-cron.md)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack
from zoneinfo import ZoneInfo

import attrs

from disque_trio.worker import codec
from disque_trio.worker.checks import shown
from disque_trio.worker.codec import Form
from disque_trio.worker.comparing import difference
from disque_trio.worker.describing import type_and_text
from disque_trio.worker.enqueue import Call, Enqueuer, step_options
from disque_trio.worker.enqueued import Enqueued
from disque_trio.worker.envelope import NotEncodableError
from disque_trio.worker.operating.asking import Asking, InSteps, finished
from disque_trio.worker.options import Options, check_names
from disque_trio.worker.runtime import runtime
from disque_trio.worker.task import Prepared
from disque_trio.worker.timetable.records import Entry, Timetable

if TYPE_CHECKING:
    from disque_trio.worker.cron.schedule import Missed
    from disque_trio.worker.timetable.keeping import TimetableKeeper

_FORM: Final[Form] = "json"
What = Call[Any] | Prepared[..., Any]
"""A call, or a task without required arguments other than `scheduled`."""


class ScheduleOptions(TypedDict, total=False):
    """Options of `Schedules.add`, as for `App.cron`."""

    every: int
    tz: str | ZoneInfo
    missed: "Missed"
    within: int
    partition: int


@attrs.frozen(eq=False)
class Schedules:
    """The schedules of a cluster that were added at run time, inside `async with app`. All methods
    raise errors of the client, such as `NoNodeError`."""

    _enqueuer: Enqueuer

    async def add(
        self,
        name: str,
        what: What,
        cron: str | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> None:
        """Add a schedule: a job of this call, or of a task without required arguments, is added at
        each tick of the five fields `cron`, or `every` this many seconds. If a schedule has this
        name, it is replaced, and stays paused if it is paused. Raises `ValueError` and `TypeError`
        for an invalid schedule, and `TooManySchedulesError`."""
        await _add(self._enqueuer.client, name, what, cron, options)

    async def pause(self, name: str) -> bool:
        """Add no more jobs until `resume`. Returns False if the schedule was already paused. Raises
        `UnknownScheduleError`."""
        return await self._timetable().pause(name)

    async def resume(self, name: str) -> bool:
        """Add jobs from now on, and skip ticks of the pause. Returns False if the schedule was not
        paused. Raises `UnknownScheduleError`."""
        return await self._timetable().resume(name)

    async def remove(self, name: str) -> bool:
        """Remove the schedule; jobs that it has added remain. Returns False if there is none."""
        return await self._timetable().remove(name)

    async def run_now(self, name: str) -> Enqueued[Any]:
        """Add a job of the schedule now, in addition to its ticks, even while it is paused. Raises
        `UnknownScheduleError`."""
        entry = await self._timetable().get(name)
        now = int(runtime().now())
        return await self._enqueuer.add(entry.request(self._enqueuer, now, is_tick=False))

    async def list(self) -> list[Entry]:
        """All schedules, by name."""
        return (await self._timetable().all()).items

    def keeper(self) -> "TimetableKeeper":
        """A keeper that adds the jobs of schedules whose tasks this app has, while its `run` runs,
        or its `beside` with a worker. `disque-trio worker` uses one."""
        keeping: Any = import_module("disque_trio.worker.timetable.keeping")
        found: TimetableKeeper = keeping.TimetableKeeper(
            enqueuer=self._enqueuer, tasks=frozenset(self._enqueuer.app.tasks)
        )
        return found

    def _timetable(self) -> Timetable:
        return Timetable(self._enqueuer.client, self._enqueuer.copies)


@attrs.frozen(eq=False)
class BlockingSchedules:
    """The methods of `Schedules` for threads and code without an event loop."""

    _enqueuer: Enqueuer

    def add(
        self,
        name: str,
        what: What,
        cron: str | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> None:
        """Add a schedule (`Schedules.add`)."""
        client = InSteps(self._enqueuer.blocking_client)
        finished(_add(client, name, what, cron, options))

    def pause(self, name: str) -> bool:
        """Pause a schedule (`Schedules.pause`)."""
        return finished(self._timetable().pause(name))

    def resume(self, name: str) -> bool:
        """Resume a schedule (`Schedules.resume`)."""
        return finished(self._timetable().resume(name))

    def remove(self, name: str) -> bool:
        """Remove a schedule (`Schedules.remove`)."""
        return finished(self._timetable().remove(name))

    def run_now(self, name: str) -> Enqueued[Any]:
        """Add a job of a schedule (`Schedules.run_now`)."""
        entry = finished(self._timetable().get(name))
        now = int(runtime().now())
        return self._enqueuer.add_blocking(entry.request(self._enqueuer, now, is_tick=False))

    def list(self) -> list[Entry]:
        """All schedules (`Schedules.list`)."""
        return finished(self._timetable().all()).items

    def _timetable(self) -> Timetable:
        return Timetable(InSteps(self._enqueuer.blocking_client), self._enqueuer.copies)


async def _add(
    client: Asking, name: str, what: What, cron: str | None, options: ScheduleOptions
) -> None:
    entry = _entry(name, what, cron, options)
    # The record has as many replicas as the jobs.
    await Timetable(client, what.definition.options.copies).add(entry)


def _entry(name: str, what: What, cron: str | None, options: ScheduleOptions) -> Entry:
    check_names(options, ScheduleOptions)
    if not isinstance(what, Call | Prepared):
        raise ValueError(f"schedule {name}: {shown(what)} is not a call: write task.call(…)")
    call = what if isinstance(what, Call) else what.call()
    if call.then or call.is_open:
        raise ValueError(f"schedule {name}: it adds one job, of one call with all its arguments")
    arguments = call.args, dict(call.kwargs)
    is_told = _takes_instant(call)
    if not is_told and not call.arguments.accept(*arguments[0], **arguments[1]):
        raise ValueError(f"schedule {name}: {call.name} needs arguments: give a call")
    job = _options(name, call)
    if job.at is not None or job.unique or job.delay or job.key:
        raise ValueError(
            f"schedule {name}: its jobs have neither at, nor delay, nor unique, nor key"
        )
    # They may lack `scheduled`, which each tick supplies.
    args, kwargs = call.arguments.pack(*arguments, _FORM, is_partial=is_told)
    zone = options.get("tz", "UTC")
    return Entry(
        name=name,
        task=call.name,
        cron=cron or "",
        every=options.get("every"),
        tz=zone.key if isinstance(zone, ZoneInfo) else zone,
        missed=options.get("missed", "skip"),
        within=options.get("within"),
        partition=options.get("partition"),
        args=[codec.read_plain(bytes(each), _FORM) for each in args],
        kwargs={each: codec.read_plain(bytes(part), _FORM) for each, part in kwargs.items()},
        options=_kept(name, job, call.enqueuer.form),
        is_told=is_told,
    )


def _takes_instant(call: Call[Any]) -> bool:
    """Does the task have the argument `scheduled`, which each tick supplies? Raises
    `NotEncodableError` if its value would not arrive unchanged."""
    declaring: Any = import_module("disque_trio.worker.cron.declaring")  # calendars, time zones
    arguments, instant = call.arguments, declaring.instant(0)
    if not arguments.names(declaring.ARGUMENT) or declaring.ARGUMENT in call.kwargs:
        return False
    if not arguments.accept(*call.args, **call.kwargs, **instant):
        return False
    arguments.pack((), instant, call.enqueuer.form, is_partial=True)
    return True


def _options(name: str, call: Call[Any]) -> Options:
    try:
        return call.options()
    except Exception as error:  # functions of users may raise anything
        raise ValueError(
            f"schedule {name}: cannot compute the group of {call.name} from its arguments: "
            f"{type_and_text(error)}; set it with using(group=…)"
        ) from error


def _kept(name: str, job: Options, form: Form) -> dict[str, Any]:
    """The options of the jobs, as JSON. Raises `NotEncodableError` for headers that would arrive
    differently than without a schedule."""
    options = step_options(job, ("headers", "repeat", "result_ttl"))
    if job.headers:
        try:
            options["headers"], arrive = (
                codec.read_plain(bytes(codec.part(job.headers, each)), each)
                for each in (_FORM, form)
            )
        except codec.BAD_INPUT as error:
            raise NotEncodableError(f"schedule {name}: its headers: {error}") from error
        if change := difference(arrive, options["headers"]):
            raise NotEncodableError(f"schedule {name}: its headers are kept as JSON: {change}")
    return options
