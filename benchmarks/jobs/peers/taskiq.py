"""taskiq, with the broker of taskiq-redis that acknowledges."""

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Any, Final

from taskiq_redis import RedisStreamBroker

from benchmarks.jobs import handlers
from benchmarks.jobs.peers.producing import Arguments, option, produce

_BATCH: Final = 100
"""Calls at once, each on its own connection of the pool."""
_lease = handlers.lease()
_settings = {} if _lease is None else {"idle_timeout": _lease * 1000}
# From the beginning of the stream: the default is what comes after the first worker.
broker = RedisStreamBroker(
    handlers.url(), consumer_id="0", max_connection_pool_size=_BATCH, **_settings
)
job: Any = broker.task(task_name="run")(handlers.run_async)


async def _one(arguments: Arguments) -> None:
    await job.kiq(*arguments)


async def _many(jobs: Sequence[Arguments]) -> None:
    for at in range(0, len(jobs), _BATCH):
        await asyncio.gather(*map(_one, jobs[at : at + _BATCH]))


async def _producing() -> None:
    await broker.startup()
    await produce(_one, _many)
    await broker.shutdown()


if __name__ == "__main__":
    if "worker" in sys.argv:
        module = "benchmarks.jobs.peers.taskiq:broker"
        words = ["-m", "taskiq", "worker", module, "--workers", option("kind")]
        words += ["--max-async-tasks", option("concurrency"), "--ack-type", "when_executed"]
        os.execv(sys.executable, [sys.executable, *words, "--log-level", "ERROR"])
    else:
        asyncio.run(_producing())
