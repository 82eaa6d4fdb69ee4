"""Celery."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from celery import Celery

from benchmarks.jobs import handlers
from benchmarks.jobs.peers.producing import Arguments, option, produce

app = Celery("bench", broker=handlers.url())
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_ignore_result=True,
    worker_enable_remote_control=False,
    worker_send_task_events=False,
    broker_connection_retry_on_startup=True,
)
if (_lease := handlers.lease()) is not None:
    app.conf.broker_transport_options = {"visibility_timeout": _lease}

job: Any = app.task(handlers.run, name="bench.run")


async def _one(arguments: Arguments) -> None:
    job.apply_async(arguments)


async def _many(jobs: Sequence[Arguments]) -> None:
    """Over one connection; Celery has no call for many."""
    with app.producer_pool.acquire(block=True) as producer:
        for arguments in jobs:
            job.apply_async(arguments, producer=producer)


if __name__ == "__main__":
    if "worker" in sys.argv:
        words = ["worker", "-P", option("kind"), "-c", option("concurrency")]
        app.worker_main(
            [*words, "--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "ERROR"]
        )
    else:
        asyncio.run(produce(_one, _many))
