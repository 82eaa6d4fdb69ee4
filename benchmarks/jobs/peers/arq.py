"""arq. It looks for jobs at intervals, by default twice a second: here 100 times a second."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Any, Final

from arq import create_pool
from arq.connections import ArqRedis, RedisSettings
from arq.worker import Worker, func

from benchmarks.jobs import handlers
from benchmarks.jobs.peers.producing import Arguments, option, produce

POLL_S: Final = 0.01
_BATCH: Final = 100
"""Calls at once, each on its own connection of the pool."""


async def run(_context: dict[str, Any], number: int, pause_s: float, payload: str) -> None:
    """The job."""
    await handlers.run_async(number, pause_s, payload)


async def _producing() -> None:
    redis: ArqRedis = await create_pool(RedisSettings.from_dsn(handlers.url()))

    async def one(arguments: Arguments) -> None:
        await redis.enqueue_job("run", *arguments)

    async def many(jobs: Sequence[Arguments]) -> None:
        for at in range(0, len(jobs), _BATCH):
            await asyncio.gather(*map(one, jobs[at : at + _BATCH]))

    await produce(one, many)


def _work() -> None:
    lease = handlers.lease()
    Worker(
        functions=[func(run, name="run", keep_result=0, timeout=lease or 300)],
        redis_settings=RedisSettings.from_dsn(handlers.url()),
        max_jobs=int(option("concurrency")),
        poll_delay=POLL_S,
    ).run()


if __name__ == "__main__":
    if "worker" in sys.argv:
        # arq asks for the loop of the main thread, which there has to be.
        asyncio.set_event_loop(asyncio.new_event_loop())
        _work()
    else:
        asyncio.run(_producing())
