"""A worker whose jobs say what they do: `python -m tests.cluster.workers.program NAME LOOP QUEUE
LOG URL`. It writes a line to LOG when a run begins and when it ends."""

import functools
import logging
import os
import sys
import time

import anyio

from disque_trio.client.url import parse_url
from disque_trio.worker.driver import Worker
from disque_trio.worker.engine.records import SECOND, Done, Outcome, Queue, Retry, Settings
from disque_trio.worker.executors.threads import ThreadExecutor
from disque_trio.worker.protocol import Run
from disque_trio.worker.signals import leave, run_in_process


class Handler:
    """Bodies are a verb, seconds, and what else there is to tell jobs apart."""

    def __init__(self, name: str, log: str) -> None:
        self._name = name
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._threads = ThreadExecutor()

    def _say(self, what: str, run: Run) -> None:
        os.write(self._log, f"{self._name} {what} {run.start.body.decode()}\n".encode())

    async def __call__(self, run: Run) -> Outcome:
        self._say("begin", run)
        verb, seconds, *_ = run.start.body.decode().split()
        match verb:
            case "sleep":
                await anyio.sleep(float(seconds))
            case "block":  # a thread that nobody can stop
                await self._threads.run(time.sleep, (float(seconds),), {}, run)
            case "late" if self._name == "late":
                with anyio.CancelScope(shield=True):
                    await anyio.sleep(float(seconds))
                self._say("fail", run)
                return Retry(0)
        self._say("end", run)
        return Done()


async def main(name: str, queue: str, log: str, url: str) -> int:
    """Run the worker."""
    cluster = parse_url(url)
    settings = Settings(
        nodes=tuple(map(str, cluster.seeds)),
        queues=(Queue(name=queue.encode()),),
        concurrency=1 if name in ("one", "late") else 8,
        drain=60 * SECOND,
        abort=SECOND // 2,
    )
    worker = Worker(settings=settings, handler=Handler(name, log), cluster=cluster)
    return await run_in_process(worker)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    _, who, on, *rest = sys.argv
    leave(anyio.run(functools.partial(main, who, *rest), backend=on))
