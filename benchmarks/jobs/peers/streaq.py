"""streaQ."""

import sys
from collections.abc import Sequence
from typing import Any

import anyio
from streaq import Worker

from benchmarks.jobs import handlers
from benchmarks.jobs.peers.producing import Arguments, option, produce

_lease = handlers.lease()
_settings: dict[str, Any] = {} if _lease is None else {"idle_timeout": _lease}
_number = int(option("concurrency") or 16)
worker: Any = Worker(redis_url=handlers.url(), concurrency=_number, **_settings)


@worker.task(ttl=0)  # no results
async def run(number: int, pause_s: float, payload: str) -> None:
    """The job."""
    await handlers.run_async(number, pause_s, payload)


async def _one(arguments: Arguments) -> None:
    await run.enqueue(*arguments)


async def _many(jobs: Sequence[Arguments]) -> None:
    await worker.enqueue_many([run.enqueue(*each) for each in jobs])


async def _producing() -> None:
    async with worker:
        await produce(_one, _many)


if __name__ == "__main__":
    if "worker" in sys.argv:
        worker.run_sync()
    else:
        anyio.run(_producing)
