"""Records since when the cluster has had a schedule: earlier ticks do not count as missed.

A worker cannot distinguish a first deployment from a restart after an outage. So the schedules of a
task are recorded in the cluster, in a job that is never taken, under the name of the task. A
schedule that is not in the record is new, and its first worker adds it. Running workers renew the
record before it expires (decision 109).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs

from disque_trio.client import commands
from disque_trio.worker import codec
from disque_trio.worker.cron.declaring import Crons
from disque_trio.worker.cron.loop import RENEW_S, Keeper
from disque_trio.worker.cron.ticks import Tick
from disque_trio.worker.enqueue import Enqueuer
from disque_trio.worker.operating.jobs import Jobs
from disque_trio.worker.operating.key_holders import key_holder
from disque_trio.worker.options import RESERVED
from disque_trio.worker.task import Task

QUEUE: Final = RESERVED + "schedules"
TTL_S: Final = 30 * RENEW_S
"""The longest outage after which the record still exists."""


@attrs.frozen
class Record:
    """The schedules of a task."""

    since: Mapping[str, Tick]
    """By the text of a schedule: when a worker first started with it, in Unix seconds."""


_read: Final = codec.body_reader(Record)


@attrs.frozen
class Known:
    """The records of a cluster. Its methods raise errors of the client."""

    enqueuer: Enqueuer
    tasks: Mapping[str, Task[..., Any]]
    """By name. Their records have as many replicas as their jobs."""

    async def begin(self, task: str, words: Sequence[str], now: Tick) -> dict[str, Tick]:
        """Since when the task has each of these schedules, in Unix seconds; `now` for a new one."""
        before = await self._find(task) or {}
        since = {each: before.get(each, now) for each in words}
        if since != before:
            await self._write(task, since)
        return since

    async def renew(self, task: str, since: Mapping[str, Tick]) -> None:
        """Renew the record, unless a worker has started with other schedules meanwhile."""
        found = await self._find(task)
        if found is None or found == since:
            await self._write(task, since)

    async def _find(self, task: str) -> Mapping[str, Tick] | None:
        client = self.enqueuer.client
        holder = await key_holder(client, (QUEUE, task))
        if holder is None:
            return None
        for copy in (await Jobs(client).find(holder.id)).items:
            try:
                return _read(copy.job.body or b"").since
            except codec.BAD_INPUT:
                continue
        return None

    async def _write(self, task: str, since: Mapping[str, Tick]) -> None:
        body = codec.write(Record(dict(since)), "json")
        copies = self.tasks[task].definition.options.copies
        asked = commands.addjob(
            QUEUE,
            body,
            retry=RENEW_S,
            ttl=TTL_S,
            unique=task,
            if_exists="replace",
            replicate=copies.replicate,
            sync=copies.awaited,
        )
        await self.enqueuer.client.run(asked)


def keeping(
    enqueuer: Enqueuer, crons: Crons, now: Callable[[], float], draw: Callable[[], float]
) -> Callable[[], Awaitable[None]]:
    """A coroutine function that adds the jobs of an app's schedules until it is cancelled."""
    keeper = Keeper(add=crons.add, known=Known(enqueuer, crons.tasks), wall=now, draw=draw)
    return partial(keeper.run, crons.schedules)
