"""Dramatiq."""

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from benchmarks.jobs import handlers
from benchmarks.jobs.peers.producing import Arguments, option, produce

_lease = handlers.lease()
_settings = {} if _lease is None else {"heartbeat_timeout": _lease * 1000}
broker = RedisBroker(url=handlers.url(), **_settings)
dramatiq.set_broker(broker)
job: Any = dramatiq.actor(handlers.run, actor_name="run", queue_name="bench")


async def _one(arguments: Arguments) -> None:
    job.send(*arguments)


async def _many(jobs: Sequence[Arguments]) -> None:
    """One by one: Dramatiq has no call for many."""
    for arguments in jobs:
        job.send(*arguments)


if __name__ == "__main__":
    if "worker" in sys.argv:
        words = ["-m", "dramatiq", "-p", option("kind"), "-t", option("concurrency")]
        module = "benchmarks.jobs.peers.dramatiq"
        os.execv(sys.executable, [sys.executable, *words, "--skip-logging", module])
    else:
        asyncio.run(produce(_one, _many))
