"""Adds the ticks of schedules while a worker runs."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeVar

import anyio
import attrs

from disque_trio.client.errors import DisqueError
from disque_trio.worker.cron.schedule import LONGEST_WAIT_S, Schedule, begin, due
from disque_trio.worker.cron.ticks import Tick, text

Value = TypeVar("Value")

Add = Callable[[Schedule, Tick], Awaitable[object]]
"""Adds the job of a tick, unless it was added before. Raises `DisqueError`."""
FIRST_PAUSE_S: Final = 1.0
RENEW_S: Final = 24 * 3600

_log: Final = logging.getLogger("disque_trio.worker.cron")


class Known(Protocol):
    """Records since when a task has its schedules. Both methods raise `DisqueError`."""

    async def begin(self, task: str, words: Sequence[str], now: Tick) -> Mapping[str, Tick]:
        """Since when the task has each schedule, by the schedule's text; `now` for a new one."""
        ...

    async def renew(self, task: str, since: Mapping[str, Tick]) -> None:
        """Keep the record from expiring."""
        ...


@attrs.frozen(kw_only=True)
class Ticker:
    """Adds the ticks of a schedule. `wall` returns Unix time. `draw` returns a random number from 0
    to 1, by which this worker is late, in seconds: so usually one worker adds the tick and the
    others find it."""

    add: Add
    wall: Callable[[], float]
    draw: Callable[[], float]

    async def keep(self, schedule: Schedule, done: Tick) -> None:
        """Add the ticks after `done` until cancelled. Raises errors of `add` other than
        `DisqueError`."""
        failures = 0
        while True:
            ticks, wait = due(schedule, done, self.wall())
            try:
                for tick in ticks:
                    await self.add(schedule, tick)
                    done, failures = tick, 0
            except DisqueError as error:
                name, at = schedule.name, text(tick)
                _log.warning("%s of %s is not added yet, retrying: %s", at, name, error)
                wait, failures = _pause(failures), failures + 1
            if wait:
                await anyio.sleep(wait + self.draw())


@attrs.frozen(kw_only=True)
class Keeper(Ticker):
    """Adds the ticks of the declared schedules of an app."""

    known: Known

    async def run(self, schedules: Iterable[Schedule]) -> None:
        """Add ticks until cancelled."""
        of_tasks: dict[str, list[Schedule]] = {}
        for schedule in schedules:
            of_tasks.setdefault(schedule.name, []).append(schedule)
        async with anyio.create_task_group() as tasks:
            for name, some in of_tasks.items():
                tasks.start_soon(self._keep_task, name, some)

    async def _keep_task(self, name: str, schedules: Sequence[Schedule]) -> None:
        start = self.wall()
        words = [each.ticks.words for each in schedules if each.is_recorded]
        since: Mapping[str, Tick] = {}
        if words:
            what = f"cannot read the record of the schedules of {name} yet"
            since = await _patiently(what, lambda: self.known.begin(name, words, int(start)))
        async with anyio.create_task_group() as tasks:
            if words:
                tasks.start_soon(self._renew, name, since)
            for each in schedules:
                tasks.start_soon(self.keep, each, begin(each, start, since.get(each.ticks.words)))

    async def _renew(self, name: str, since: Mapping[str, Tick]) -> None:
        what = f"cannot renew the record of the schedules of {name} yet"
        while True:
            await anyio.sleep(RENEW_S * (0.5 + self.draw()))
            await _patiently(what, lambda: self.known.renew(name, since))


async def _patiently(what: str, ask: Callable[[], Awaitable[Value]]) -> Value:
    failures = 0
    while True:
        try:
            return await ask()
        except DisqueError as error:
            _log.warning("%s: %s", what, error)
        await anyio.sleep(_pause(failures))
        failures += 1


def _pause(failures: int) -> float:
    return min(FIRST_PAUSE_S * (1 << min(failures, 10)), LONGEST_WAIT_S)
