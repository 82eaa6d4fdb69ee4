"""Adds the ticks of recorded schedules while a worker runs.

Every worker whose app has the task reads the records every few seconds, and runs a loop for each
schedule, as for declared ones. Before it adds a tick it checks the record, so that a schedule that
was paused, changed or removed adds none.
"""

import logging
import random
from collections.abc import Awaitable, Callable, Collection
from importlib import import_module
from typing import Any, Final

import anyio
import attrs
from anyio.abc import TaskGroup, TaskStatus

from disque_trio.client.errors import DisqueError
from disque_trio.worker.enqueue import Enqueuer
from disque_trio.worker.operating.notes import Due
from disque_trio.worker.requests import not_enqueued
from disque_trio.worker.runtime import runtime
from disque_trio.worker.timetable.records import Entry, Timetable

LOOK_S: Final = 4.0
"""The interval at which records are read, in seconds; it varies by a quarter."""
_log: Final = logging.getLogger("disque_trio.worker.cron")


class ChangedError(Exception):
    """The record has changed."""


@attrs.define(eq=False)
class _Loop:
    """The loop of one schedule."""

    entry: Entry
    scope: anyio.CancelScope = attrs.field(factory=anyio.CancelScope)


@attrs.define(eq=False, kw_only=True)
class TimetableKeeper:
    """Adds the ticks of recorded schedules of these tasks while `run` runs."""

    enqueuer: Enqueuer
    tasks: Collection[str]
    look_s: float = LOOK_S
    draw: Callable[[], float] = random.random
    _loops: dict[str, _Loop] = attrs.field(init=False, factory=dict)
    """By name of the schedule."""
    _unreadable: set[str] = attrs.field(init=False, factory=set)
    """Keys of invalid records that were logged."""
    _changed: anyio.Event = attrs.field(init=False, factory=anyio.Event)

    async def run(self) -> None:
        """Run until cancelled."""
        start = runtime().now()
        async with anyio.create_task_group() as tasks:
            while True:
                self._changed = anyio.Event()
                try:
                    await self._look(tasks, start)
                except DisqueError as error:
                    _log.debug("cannot read the schedules now: %s", error)
                with anyio.move_on_after(self.look_s * (0.75 + 0.5 * self.draw())):
                    await self._changed.wait()
                    await anyio.sleep(self.draw())

    async def beside(
        self,
        run: Callable[..., Awaitable[object]],
        *,
        task_status: TaskStatus[Any] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Run beside a worker; `run` is the method of `Worker`."""
        async with anyio.create_task_group() as tasks:
            if self.tasks:
                tasks.start_soon(self.run)
            await run(task_status=task_status)
            tasks.cancel_scope.cancel()

    async def entries(self) -> list[Entry]:
        """The schedules of these tasks, including paused ones. Raises errors of the client."""
        # A search among many jobs every few seconds would take long; `_look` checks a record that
        # is temporarily not shown.
        known = await Timetable(self.enqueuer.client).all(searches=False)
        return [each for each in known.items if each.task in self.tasks]

    def dues(self) -> list[Due]:
        """The schedules that are kept, for the worker's heartbeat."""
        now, found = runtime().now(), []
        for loop in self._loops.values():
            entry = loop.entry
            if (tick := entry.next(now)) is not None:
                found.append(Due(name=entry.task, when=entry.when, next=tick, schedule=entry.name))
        return found

    async def _look(self, tasks: TaskGroup, start: float) -> None:
        timetable = Timetable(self.enqueuer.client)
        found = {each.name: each for each in await self.entries()}
        for name, loop in list(self._loops.items()):
            # Its node may be down: another one soon enqueues the record.
            is_same = name not in found and await timetable.counts(loop.entry)
            if not is_same and found.get(name) != loop.entry:
                loop.scope.cancel()
                del self._loops[name]
        for name, entry in found.items():
            if name not in self._loops and not entry.is_paused:
                self._begin(tasks, entry, start)

    def _begin(self, tasks: TaskGroup, entry: Entry, start: float) -> None:
        cron: Any = import_module("disque_trio.worker.cron.schedule")
        try:
            schedule = entry.schedule()
        except (ValueError, TypeError) as error:  # for example, an unknown time zone
            if entry.key not in self._unreadable:
                self._unreadable.add(entry.key)
                _log.warning("cannot store schedule %s: %s", entry.name, error)
            return
        loop = self._loops[entry.name] = _Loop(entry)
        tasks.start_soon(self._keep, loop, schedule, max(cron.begin(schedule, start), entry.since))

    async def _keep(self, loop: _Loop, schedule: Any, done: int) -> None:
        ticker = import_module("disque_trio.worker.cron.loop").Ticker(
            add=lambda _, tick: self.add(loop.entry, tick), wall=runtime().now, draw=self.draw
        )
        with loop.scope:
            try:
                await ticker.keep(schedule, done)
            except ChangedError:
                if self._loops.get(loop.entry.name) is loop:
                    del self._loops[loop.entry.name]
                self._changed.set()
            except Exception:  # this version does not support its record
                _log.exception("cannot store schedule %s", loop.entry.name)

    async def add(self, entry: Entry, tick: int) -> None:
        """Add the job of a tick, unless a worker has added it. Raises `ChangedError`, and errors of
        the client."""
        if not await Timetable(self.enqueuer.client).counts(entry):
            raise ChangedError(entry.name)
        try:
            request = entry.request(self.enqueuer, tick)
        except Exception as error:  # hooks may raise anything: the next tick may be added
            raise not_enqueued(entry.task, error) from error
        await self.enqueuer.add(request)
