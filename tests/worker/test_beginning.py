"""BEGIN is written before a handler starts."""

import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import pytest

from disque_trio.client import streams
from disque_trio.client.address import Address
from disque_trio.client.errors import ConnectionFailedError
from disque_trio.statemachine.base import Reply
from disque_trio.worker.beginning import Batch, Beginnings
from disque_trio.worker.driver import Worker
from disque_trio.worker.engine.records import Cancel, Done, Outcome, Reason, Start
from disque_trio.worker.links import Link
from disque_trio.worker.protocol import Run
from tests.worker.played import FEATURES, PlayedNode, id_of, job
from tests.worker.playing import KINDS, TOKEN, Doing, play


@pytest.mark.parametrize("kind", KINDS)
def test_a_handler_starts_when_its_node_has_been_told(kind: str) -> None:
    node = PlayedNode(features=(*FEATURES, b"tied", b"held"))
    told: list[list[list[bytes]]] = []

    async def body(_: Run) -> Outcome:
        told.append(node.told(b"BEGIN"))
        return Done()

    async def story(worker: Worker) -> None:
        node.give(job(1, was_unbegun=True))
        await node.is_told(b"ACKJOB")
        worker.stop()

    play(kind, story, node, handler=Doing(body))
    assert told == [[[b"BEGIN", id_of(1) + TOKEN]]]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_handler_starts_also_if_its_node_cannot_be_told(kind: str) -> None:
    node = PlayedNode(features=(*FEATURES, b"tied", b"held"))
    handler = Doing()

    async def story(worker: Worker) -> None:
        while not node.told(b"GETJOB"):
            await anyio.lowlevel.checkpoint()
        node.is_down = True  # for the connection on which BEGIN would be sent
        node.give(job(1, was_unbegun=True))
        await handler.begun()
        node.is_down = False
        worker.stop()

    play(kind, story, node, handler=handler)
    assert [run.start.id for run in handler.runs] == [id_of(1)]


# Those that wait.


def start(number: int) -> Start:
    return Start(id_of(number), b"q", b"", 0, 0)


def test_jobs_start_when_all_that_is_to_be_written_is_written() -> None:
    started: list[Start] = []
    beginnings = Beginnings(started.extend)
    batch = Batch([start(1), start(2)], writes=2)
    beginnings.wait(batch)
    beginnings.written(batch)
    assert started == []

    beginnings.written(batch)

    assert started == [start(1), start(2)]


def test_a_job_that_waits_for_a_write_can_be_cancelled() -> None:
    started: list[Start] = []
    beginnings = Beginnings(started.extend)
    batch = Batch([start(1), start(2)], writes=1)
    beginnings.wait(batch)

    assert beginnings.cancel(Cancel(id_of(1), Reason.SHUTDOWN))
    assert not beginnings.cancel(Cancel(id_of(3), Reason.SHUTDOWN))
    beginnings.written(batch)

    assert started == [start(2)]


# A real connection.


class Listener:
    """Hears nothing."""

    def greeted(self, link: Link, hello: Reply) -> None:
        """Nothing."""

    def received(self, link: Link, replies: Sequence[Reply]) -> None:
        """Nothing."""

    def refused(self, link: Link, error: str) -> None:
        """Nothing."""

    def lost(self, link: Link, error: ConnectionFailedError | None) -> None:
        """Nothing."""


def send_first(link: Link, words: list[bytes]) -> bool:
    """Is it written at once?"""
    link.send(words)
    return link.flush()


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[Link, socket.socket]]:
    """A connection that is idle, and its other end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        link = Link(1, "n", Address(port=server.getsockname()[1]), Listener())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(link.serve, streams.connect, lambda: None)
            other, _ = await anyio.to_thread.run_sync(server.accept, abandon_on_cancel=True)
            with other:
                await read(other, b"HELLO")
                await anyio.wait_all_tasks_blocked()
                yield link, other
                tasks.cancel_scope.cancel()


async def read(other: socket.socket, end: bytes) -> None:
    """Read until these bytes have come."""
    tail = b""
    while end not in tail:
        tail = tail[-100:] + await anyio.to_thread.run_sync(other.recv, 1 << 20)


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_is_written_at_once_while_the_connection_is_idle(kind: str) -> None:
    async def story() -> None:
        async with connected() as (link, other):
            assert send_first(link, [b"BEGIN", b"D-1"])
            assert b"BEGIN" in other.recv(1_000, socket.MSG_DONTWAIT)

    anyio.run(story, backend=kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_that_does_not_fit_is_written_behind_what_waits(kind: str) -> None:
    body = bytes(20_000_000)

    async def story() -> None:
        written = anyio.Event()
        async with connected() as (link, other):
            assert not send_first(link, [b"ADDJOB", body])
            assert not send_first(link, [b"BEGIN", b"D-1"])
            link.when_written(written.set)
            assert not written.is_set()
            await read(other, b"D-1\r\n")
            await written.wait()

    anyio.run(story, backend=kind)
