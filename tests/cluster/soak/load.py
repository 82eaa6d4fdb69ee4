"""The load of the soak test: producers, workers, onlookers, each on connections of its own.

Each of them talks to any node, takes another one when a connection ends, and writes into the ledger
what was guaranteed and what came.
"""

import contextlib
import random
from collections.abc import Sequence
from typing import Final

import attrs
import trio

from disque_trio.statemachine.base import Failure, Reply
from disque_trio.wire.resp import ReplyParser
from tests.cluster.processes import Server
from tests.cluster.soak.ledger import Guarantee, Ledger
from tests.cluster.talk import (
    LOOPBACK,
    Delivery,
    RefusedError,
    Word,
    as_items,
    as_text,
    deliveries,
    request,
)

QUEUES: Final = tuple(f"soak:{n}" for n in range(8))
PAUSED_QUEUE: Final = "soak:paused"
TTL_S: Final = 120
ONCE_TTL_S: Final = 30
"""At-most-once jobs that a worker has dropped are not delivered again, and stay until then."""
PATIENCE_S: Final = 60.0
"""A node that lives answers by then, on a busy machine too; one that dies ends the connection."""
MOST_WAITING: Final = 500
"""Producers wait while so many jobs have not been delivered."""


class LostError(Exception):
    """The connection has ended, or could not be opened."""


@attrs.define(eq=False)
class Rig:
    """What all tasks of the load share."""

    servers: Sequence[Server]
    ledger: Ledger
    rng: random.Random
    is_producing: bool = True
    is_consuming: bool = True


class Line:
    """A connection to some node, opened when it is needed and again when it has been lost."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.port = 0
        """Of the node that it was last connected to."""
        self._stream: trio.SocketStream | None = None
        self._parser = ReplyParser()

    async def call(self, *words: Word) -> Reply:
        """A request and its reply: `RefusedError` if it is an error, `LostError` if none comes."""
        stream = self._stream or await self._open()
        self._rig.ledger.commands[str(words[0])] += 1
        replies: list[Reply] = []
        try:
            with trio.fail_after(PATIENCE_S):
                await stream.send_all(request(*words))
                while not replies:
                    data = await stream.receive_some()
                    if not data:
                        raise trio.BrokenResourceError
                    replies = self._parser.feed(bytes(data))
        except trio.BrokenResourceError:
            self._rig.ledger.connections_lost += 1
            await self.hang_up()
            raise LostError from None
        (reply,) = replies
        if isinstance(reply, Failure):
            text = reply.text.decode()
            self._rig.ledger.refusals[" ".join(text.split()[:4])] += 1
            raise RefusedError(text)
        return reply

    async def _open(self) -> trio.SocketStream:
        server = self._rig.rng.choice(self._rig.servers)
        try:
            self._stream = await trio.open_tcp_stream(LOOPBACK, server.port)
        except OSError:
            self._rig.ledger.connections_refused += 1
            await trio.sleep(0.05)  # a node that is down refuses at once: do not spin
            raise LostError from None
        self._parser = ReplyParser()
        self.port = server.port
        return self._stream

    async def hang_up(self) -> None:
        """Disconnect, whatever is under way."""
        if self._stream is not None:
            await trio.aclose_forcefully(self._stream)
            self._stream = None


# Producers.


async def produce(rig: Rig) -> None:
    """Add jobs of all kinds as long as that is wanted."""
    line = Line(rig)
    number = 0
    while rig.is_producing:
        number += 1
        if len(rig.ledger.waiting) > MOST_WAITING:
            await trio.sleep(0.02)
            continue
        guarantee, options = job_options(rig.rng)
        queue = rig.rng.choice((*QUEUES, PAUSED_QUEUE))
        sent = rig.ledger.commands["ADDJOB"]
        try:
            reply = await line.call("ADDJOB", queue, number, 2000, *options)
        except RefusedError:
            continue
        except LostError:
            rig.ledger.adds_unsure += rig.ledger.commands["ADDJOB"] > sent
            continue
        rig.ledger.added(as_text(reply), guarantee)
        if number % 200 == 0:
            await line.hang_up()  # and so to another node
    await line.hang_up()


def job_options(rng: random.Random) -> tuple[Guarantee, list[Word]]:
    """Some kind of job: what is guaranteed for it, and ADDJOB's options."""
    delay: list[Word] = ["DELAY", rng.randint(1, 3)] if rng.random() < 0.05 else []
    if rng.random() < 0.1:
        return Guarantee.ONCE, ["RETRY", 0, "REPLICATE", 1, "TTL", ONCE_TTL_S, *delay]
    copies = rng.randint(1, 3)
    options = ["RETRY", rng.randint(1, 5), "REPLICATE", copies, "TTL", TTL_S, *delay]
    is_async = rng.random() < 0.2
    if is_async:
        options.append("ASYNC")
    if copies == 1:
        return Guarantee.ONE_COPY, options
    return (Guarantee.ASYNC if is_async else Guarantee.COPIES), options


# Workers.


async def consume(rig: Rig) -> None:
    """Take jobs and deal with them in one of the ways that workers have, now and then badly."""
    line = Line(rig)
    while rig.is_consuming:
        queues = [*rig.rng.sample(QUEUES, 4), PAUSED_QUEUE]
        count = rig.rng.choice((1, 1, 4, 16))
        try:
            reply = await line.call("GETJOB", "TIMEOUT", 300, "COUNT", count, "FROM", *queues)
            jobs = deliveries(as_items(reply))
            for job in jobs:
                rig.ledger.delivered(job.id)
            if jobs:
                await _deal_with(rig, line, jobs)
        except (LostError, RefusedError):
            continue
    await line.hang_up()


async def _deal_with(rig: Rig, line: Line, jobs: list[Delivery]) -> None:
    ids = [job.id for job in jobs]
    luck = rig.rng.random()
    if luck < 0.02:
        rig.ledger.workers_died += 1
        rig.ledger.provoked.update(ids)
        await line.hang_up()
    elif luck < 0.07:
        rig.ledger.provoked.update(ids)
        await line.call("NACK", *ids)
    elif luck < 0.12:
        await line.call("FASTACK", *ids)
    else:
        if luck < 0.17:
            await line.call("WORKING", ids[0])
            await trio.sleep(rig.rng.random())
        elif luck < 0.19:
            await line.hang_up()  # the ack goes to any node, which may never have seen the jobs
        await line.call("ACKJOB", *ids)


# Onlookers.


async def look_on(rig: Rig) -> None:
    """Ask for everything that can be asked."""
    line = Line(rig)
    while rig.is_producing:
        with contextlib.suppress(LostError, RefusedError):
            for words in _questions(rig):
                await line.call(*words)
        await line.hang_up()
        await trio.sleep(0.2)


def _questions(rig: Rig) -> list[tuple[Word, ...]]:
    queue = rig.rng.choice(QUEUES)
    job = next(reversed(rig.ledger.jobs), b"D-00000000-AAAAAAAAAAAAAAAAAAAAAAAA-0001")
    return [
        ("QSCAN", 0, "COUNT", 10, "MINLEN", 1),
        ("JSCAN", 0, "COUNT", 20, "REPLY", "all"),
        ("JSCAN", 0, "COUNT", 100, "STATE", "acked", "STATE", "queued"),
        ("SHOW", job),
        ("QSTAT", queue),
        ("QLEN", queue),
        ("QPEEK", queue, -3),
        ("INFO", "all"),
        ("CLUSTER", "NODES"),
        ("HELLO",),
        ("CLIENT", "LIST"),
    ]


async def pause_and_resume(rig: Rig) -> None:
    """Hold one of the queues, in turn in each way, everywhere or on one node, for a moment."""
    line = Line(rig)
    while rig.is_producing:
        how = rig.rng.choice(("in", "out", "all"))
        with contextlib.suppress(LostError, RefusedError):
            await line.call("PAUSE", PAUSED_QUEUE, how, *rig.rng.choice(((), ("bcast",))))
            await trio.sleep(0.5)
        await resume(rig)
        await trio.sleep(2)
    await line.hang_up()


async def resume(rig: Rig) -> None:
    """End the pause on each node that is up."""
    for server in rig.servers:
        line = Line(attrs.evolve(rig, servers=[server]))
        with contextlib.suppress(LostError, RefusedError):
            await line.call("PAUSE", PAUSED_QUEUE, "none")
        await line.hang_up()
