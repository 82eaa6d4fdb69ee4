"""Orders to the driver, and how it ends."""

import logging

import anyio
import pytest
from anyio.abc import ByteStream

from disque_trio.client.address import Address, Cluster
from disque_trio.worker import driver
from disque_trio.worker.driver import Worker
from disque_trio.worker.engine.records import (
    MILLI,
    Done,
    Outcome,
    Queue,
    Settings,
)
from disque_trio.worker.protocol import Run
from disque_trio.worker.statuses import CLEAN, INTERRUPTED, RESTART
from tests.worker.played import PlayedNode, id_of, job
from tests.worker.playing import KINDS, Doing, play

pytestmark = pytest.mark.parametrize("kind", KINDS)


def test_the_order_to_stop_lets_jobs_end_and_the_second_one_cancels_them(kind: str) -> None:
    node = PlayedNode()
    may_end: list[anyio.Event] = []

    async def body(run: Run) -> Outcome:
        may_end.append(anyio.Event())
        if run.start.id == id_of(2):
            await anyio.sleep_forever()
        await may_end[0].wait()
        assert run.is_stopping
        return Done()

    handler = Doing(body)

    async def story(worker: Worker) -> None:
        node.give(job(1), job(2))
        await handler.begun(2)
        worker.stop()
        may_end[0].set()
        await node.is_told(b"ACKJOB")
        worker.stop()
        assert (await node.is_told(b"RELEASE"))[1].startswith(id_of(2))

    assert play(kind, story, node, handler=handler) == INTERRUPTED


def test_an_order_to_stop_that_comes_before_the_start_is_obeyed(kind: str) -> None:
    node = PlayedNode()

    async def connect(_: Address, __: float) -> ByteStream:
        await anyio.lowlevel.checkpoint()
        return node.connected()

    settings = Settings(nodes=(str(node.address),), queues=(Queue(name=b"q"),))
    worker = Worker(
        settings=settings, handler=Doing(), cluster=Cluster([node.address]), connect=connect
    )
    worker.stop()

    assert anyio.run(worker.run, backend=kind) == CLEAN
    assert not node.told(b"GETJOB")


def test_after_so_many_jobs_a_worker_asks_to_be_started_again(kind: str) -> None:
    node = PlayedNode()
    handler = Doing()

    async def story(_: Worker) -> None:
        node.give(*map(job, range(3)))

    assert play(kind, story, node, handler=handler, max_jobs=2, concurrency=1) == RESTART
    assert len(handler.runs) == 2


def test_a_quiet_worker_takes_nothing_until_it_resumes(kind: str) -> None:
    node = PlayedNode()
    handler = Doing()

    async def story(worker: Worker) -> None:
        await node.is_told(b"GETJOB")
        worker.quiet()
        assert await node.is_told(b"CLIENT") == [b"CLIENT", b"ID"]
        assert (await node.is_told(b"CLIENT"))[1] == b"UNBLOCK"
        node.give(job(1))
        for _ in range(100):
            await anyio.lowlevel.checkpoint()
        assert not handler.runs

        worker.resume()
        await node.is_told(b"ACKJOB")
        worker.stop()

    assert play(kind, story, node, handler=handler) == CLEAN


def test_a_handler_that_does_not_end_is_replaced_and_with_too_many_the_worker_ends(
    kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(driver, "STUCK_S", 0.0)
    monkeypatch.setattr(driver, "LOOK_S", 0.01)
    node = PlayedNode()
    left: list[int] = []
    release: list[anyio.Event] = []

    async def body(run: Run) -> Outcome:
        run.limit(0.001)  # which begins here: on a busy machine it could be over before the run
        release.append(anyio.Event())
        if left:  # the process would have ended
            release[-1].set()
        with anyio.CancelScope(shield=True):
            await release[-1].wait()
        return Done()

    def leave(status: int) -> None:
        left.append(status)
        for each in release:
            each.set()

    handler = Doing(body)

    async def story(_: Worker) -> None:
        for count in range(1, 4):
            node.give(job(count))
            await handler.begun(count)

    counts = {"concurrency": 1, "max_stuck": 2, "drain": 10 * MILLI}
    with caplog.at_level(logging.ERROR):
        status = play(kind, story, node, handler=handler, leave=leave, **counts)
    assert (status, left) == (RESTART, [RESTART])
    assert "does not end" in caplog.text
