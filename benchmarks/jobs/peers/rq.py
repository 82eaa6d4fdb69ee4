"""RQ."""

import asyncio
import sys
from collections.abc import Sequence

from redis import Redis
from rq import Queue, SimpleWorker, Worker
from rq.worker_pool import WorkerPool

from benchmarks.jobs import handlers
from benchmarks.jobs.peers.producing import Arguments, option, produce

connection = Redis.from_url(handlers.url())
queue = Queue("bench", connection=connection)
_BATCH = 500


async def _one(arguments: Arguments) -> None:
    queue.enqueue(handlers.run, args=arguments, result_ttl=0)


async def _many(jobs: Sequence[Arguments]) -> None:
    for at in range(0, len(jobs), _BATCH):
        queue.enqueue_many(
            [
                Queue.prepare_data(handlers.run, args=each, result_ttl=0)
                for each in jobs[at : at + _BATCH]
            ]
        )


def _work() -> None:
    kind = SimpleWorker if option("kind") == "simple" else Worker
    number = int(option("concurrency"))
    if number == 1:
        kind([queue], connection=connection).work(logging_level="ERROR")
    else:
        pool = WorkerPool([queue], connection, num_workers=number, worker_class=kind)
        pool.start(burst=False, logging_level="ERROR")


if __name__ == "__main__":
    if "worker" in sys.argv:
        _work()
    else:
        asyncio.run(produce(_one, _many))
