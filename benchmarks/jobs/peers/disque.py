"""Our own library, with our own server. `kind` is the event loop, trio or asyncio."""

import sys
from collections.abc import Sequence
from typing import Final

import anyio

from benchmarks.jobs import handlers
from benchmarks.jobs.peers.producing import Arguments, option, produce
from disque_trio.client.url import parse_url
from disque_trio.worker import App
from disque_trio.worker.driver import Worker
from disque_trio.worker.engine.records import Queue, Settings
from disque_trio.worker.signals import run_in_process

PREFETCH: Final = 1000
"""Jobs that are held and have not begun."""
_QUEUE: Final = "bench"
_lease = handlers.lease()
app = App(handlers.url())


@app.task(queue=_QUEUE, name="run", lease=300 if _lease is None else _lease, replicate=1)
async def run(number: int, pause_s: float, payload: str) -> None:  # noqa: ARG001
    """The job."""
    runs = handlers.tally()
    runs.begin(number)
    if pause_s:
        await anyio.sleep(pause_s)
    runs.end(number)


async def _one(arguments: Arguments) -> None:
    await run.enqueue(*arguments)


async def _many(jobs: Sequence[Arguments]) -> None:
    await app.enqueue_many(run.call(*each) for each in jobs)


async def _producing() -> None:
    async with app:
        await produce(_one, _many)


async def _work() -> None:
    nodes = parse_url(handlers.url())
    # A short lease is for workers that are killed: two of them share a few jobs.
    prefetch = PREFETCH if _lease is None else 0
    settings = Settings(
        nodes=tuple(map(str, nodes.seeds)),
        queues=(Queue(name=_QUEUE.encode(), prefetch=prefetch),),
        concurrency=int(option("concurrency")),
    )
    async with app.handler() as handler:
        await run_in_process(Worker(settings=settings, handler=handler, cluster=nodes))


if __name__ == "__main__":
    anyio.run(_work if "worker" in sys.argv else _producing, backend=option("kind") or "trio")
