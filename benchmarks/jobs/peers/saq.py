"""SAQ."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Any, Final

from saq import Queue, Worker

from benchmarks.jobs import handlers
from benchmarks.jobs.peers.producing import Arguments, option, produce

_BATCH: Final = 100
"""Calls at once, each on its own connection of the pool."""
_lease = handlers.lease()


async def run(_context: dict[str, Any], *, number: int, pause_s: float, payload: str) -> None:
    """The job."""
    await handlers.run_async(number, pause_s, payload)


async def _producing() -> None:
    queue = Queue.from_url(handlers.url())

    async def one(arguments: Arguments) -> None:
        number, pause_s, payload = arguments
        options = {} if _lease is None else {"timeout": _lease, "retries": 5}
        await queue.enqueue(
            "run", number=number, pause_s=pause_s, payload=payload, ttl=-1, **options
        )

    async def many(jobs: Sequence[Arguments]) -> None:
        for at in range(0, len(jobs), _BATCH):
            await asyncio.gather(*map(one, jobs[at : at + _BATCH]))

    await produce(one, many)


async def _work() -> None:
    queue = Queue.from_url(handlers.url())
    timers: Any = {} if _lease is None else {"sweep": 1}
    number = int(option("concurrency"))
    await Worker(queue, [("run", run)], concurrency=number, timers=timers).start()


if __name__ == "__main__":
    asyncio.run(_work() if "worker" in sys.argv else _producing())
