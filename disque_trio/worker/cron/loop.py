"""Adds the ticks of schedules while a worker runs."""

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import anyio

from disque_trio.client.errors import DisqueError
from disque_trio.worker.cron.schedule import LONGEST_WAIT_S, Schedule, begin, due
from disque_trio.worker.cron.ticks import Tick, text

Add = Callable[[Schedule, Tick], Awaitable[object]]
"""Adds the job of a tick, or finds that it was added. Raises `DisqueError`."""
FIRST_PAUSE_S: Final = 1.0

_log: Final = logging.getLogger("disque_trio.worker.cron")


async def keep_time(
    schedules: Iterable[Schedule],
    add: Add,
    *,
    wall: Callable[[], float],
    draw: Callable[[], float],
) -> None:
    """Add ticks for ever. `wall` is Unix time. `draw` is a random number from 0 to 1: so many
    seconds this worker is later than the tick, so that mostly one adds it and others find it."""
    async with anyio.create_task_group() as tasks:
        for schedule in schedules:
            tasks.start_soon(_keep, schedule, add, wall, draw)


async def _keep(
    schedule: Schedule, add: Add, wall: Callable[[], float], draw: Callable[[], float]
) -> None:
    done = begin(schedule, wall())
    failures = 0
    while True:
        ticks, wait = due(schedule, done, wall())
        try:
            for tick in ticks:
                await add(schedule, tick)
                done, failures = tick, 0
        except DisqueError as error:
            name, at = schedule.name, text(tick)
            _log.warning("%s of %s is not added yet: %s", at, name, error)
            wait = min(FIRST_PAUSE_S * 2**failures, LONGEST_WAIT_S)
            failures = min(failures + 1, 10)
        if wait:
            await anyio.sleep(wait + draw())
