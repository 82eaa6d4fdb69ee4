"""A storm: load on nodes with journals, all of which end at once, again and again."""

import math
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

import attrs
import trio
from rich.console import Console

from disque_trio.statemachine.base import JobId
from tests.cluster.processes import Cluster
from tests.cluster.soak.ledger import Ledger
from tests.cluster.soak.load import Line, LostError, Rig
from tests.cluster.talk import RefusedError, as_items, as_text, deliveries

SEED: Final = int(os.environ.get("SOAK_SEED", "1"))
MOST_WAITING: Final = 2000
BETWEEN_ENDS: Final = 20
"""At least so many jobs are added, and acknowledged, however long that takes."""
LATEST_S: Final = 200
"""A job that has not been delivered by then is lost."""


@attrs.define(eq=False)
class Book:
    """What clients were told."""

    added: dict[JobId, int] = attrs.Factory(dict)
    """Jobs that a producer has the id of, and their RETRY."""
    delivered: Counter[JobId] = attrs.Factory(Counter)
    acked: dict[JobId, float] = attrs.Factory(dict)
    """When the answer to ACKJOB came."""
    back: list[JobId] = attrs.Factory(list)
    """Jobs that were delivered after that."""
    moved: set[JobId] = attrs.Factory(set)
    """Jobs that a node has given out which is not their first."""
    times: dict[JobId, float] = attrs.Factory(dict)
    """When the last answer about each job came."""
    unsure: set[JobId] = attrs.Factory(set)
    """Jobs that were answered so late before a power cut that it may have taken the answer back."""
    cuts: int = 0

    def cut(self, since: float) -> None:
        """All nodes have ended, and what was answered after that moment may be lost."""
        self.cuts += 1
        self.unsure.update(job for job, at in self.times.items() if at > since)

    def waiting(self) -> list[JobId]:
        """Jobs with a retry time that have not been delivered yet, and will be."""
        return [
            job
            for job, retry in self.added.items()
            if retry and job not in self.delivered and job not in self.unsure
        ]

    def lost_once(self) -> int:
        """At-most-once jobs that were not delivered."""
        return sum(not retry and job not in self.delivered for job, retry in self.added.items())

    def twice(self) -> list[JobId]:
        """At-most-once jobs that were given out twice."""
        return [job for job, n in self.delivered.items() if n > 1 and not self.added.get(job, 1)]


async def produce(rig: Rig, book: Book) -> None:
    """Add jobs with one copy."""
    line = Line(rig)
    while rig.is_producing:
        if len(book.added) - len(book.delivered) > MOST_WAITING:
            await trio.sleep(0.02)
            continue
        retry = 0 if rig.rng.random() < 0.1 else rig.rng.randint(2, 4)
        options = ("REPLICATE", 1, "RETRY", retry, "TTL", 600)
        try:
            reply = await line.call("ADDJOB", "q", "x" * rig.rng.randint(1, 500), 0, *options)
        except (LostError, RefusedError):
            continue
        book.added[as_text(reply)] = retry
        book.times[as_text(reply)] = time.monotonic()
    await line.hang_up()


async def consume(rig: Rig, book: Book, names: dict[int, bytes]) -> None:
    """Take jobs and acknowledge most of them, at the node that gave them."""
    line = Line(rig)
    while rig.is_consuming:
        asked = time.monotonic()
        try:
            jobs = deliveries(
                as_items(await line.call("GETJOB", "TIMEOUT", 200, "COUNT", 5, "FROM", "q"))
            )
            for job in jobs:
                book.delivered[job.id] += 1
                if names[line.port] != job.id[2:10]:
                    book.moved.add(job.id)
                if book.acked.get(job.id, asked) < asked:
                    book.back.append(job.id)
            done = [job.id for job in jobs if rig.rng.random() < 0.9]
            if done:
                await line.call("ACKJOB", *done)
                for times in (book.acked, book.times):
                    times.update((job, time.monotonic()) for job in done)
        except (LostError, RefusedError):
            continue
    await line.hang_up()


async def under_load(book: Book) -> None:
    """Wait until clients have got on with their work."""
    added, acked = (len(jobs) + BETWEEN_ENDS for jobs in (book.added, book.acked))
    while len(book.added) < added or len(book.acked) < acked:
        await trio.sleep(0.02)


async def storm(
    cluster: Cluster,
    rounds: int,
    cut_power: Callable[[], None] = lambda: None,
    unsynced_s: float = 0,
) -> Book:
    """Load, and again and again everything ends at some moment and comes back.

    `cut_power` is called when all processes have been killed. Answers may be lost that came so
    many seconds before.
    """
    book = Book()
    rig = Rig(cluster.servers, Ledger(), random.Random(SEED))
    names = {server.port: server.id[:8].encode() for server in rig.servers}
    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(produce, rig, book)
            nursery.start_soon(consume, rig, book, names)
        for _ in range(rounds):
            await under_load(book)
            await trio.sleep(rig.rng.uniform(0.3, 2.0) + unsynced_s)
            since = time.monotonic() - unsynced_s
            for server in cluster.servers:
                server.kill()
            cut_power()
            for server in cluster.servers:
                server.start()
            await trio.to_thread.run_sync(cluster.heal)
            # Answers that were under way have been read by now.
            book.cut(since if unsynced_s else math.inf)
        rig.is_producing = False
        with trio.move_on_after(LATEST_S):
            while book.waiting():
                await trio.sleep(0.1)
        await trio.sleep(5)
        rig.is_consuming = False
    summary = (
        f"{book.cuts} times {len(cluster.servers)} nodes ended: {len(book.added)} jobs added, "
        f"{len(book.acked)} acknowledged, {sum(book.delivered.values())} deliveries, "
        f"{len(book.waiting())} lost, {len(book.unsure)} unsure, {len(book.back)} back "
        f"({len(book.moved.intersection(book.back))} of {len(book.moved)} that had moved), "
        f"{book.lost_once()} at-most-once jobs not delivered, {len(book.twice())} twice"
    )
    Console().print(summary)
    return book


def judge(book: Book) -> None:
    assert len(book.added) > 10
    assert not book.waiting()
    assert set(book.back) <= book.moved | book.unsure, "only where two nodes hold it"
    assert not book.twice()
