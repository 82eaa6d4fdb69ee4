"""Huey. It takes a job out of Redis before it runs it, so a worker that dies loses its jobs."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from huey import RedisHuey

from benchmarks.jobs import handlers
from benchmarks.jobs.peers.producing import Arguments, option, produce

app = RedisHuey("bench", url=handlers.url(), results=False)
job: Any = app.task(name="run")(handlers.run)


async def _one(arguments: Arguments) -> None:
    job(*arguments)


async def _many(jobs: Sequence[Arguments]) -> None:
    """One by one: Huey has no call for many."""
    for arguments in jobs:
        job(*arguments)


if __name__ == "__main__":
    if "worker" in sys.argv:
        consumer = app.create_consumer(
            workers=int(option("concurrency")), worker_type=option("kind"), periodic=False
        )
        consumer.run()
    else:
        asyncio.run(produce(_one, _many))
