"""Signals to a worker, and where its tasks are."""

import logging
import os
import signal
import threading

import anyio
import attrs
import pytest

from disque_trio.worker.driver import Worker
from disque_trio.worker.engine.records import Done, Outcome
from disque_trio.worker.protocol import Run
from disque_trio.worker.signals import obeyed
from disque_trio.worker.stacks import of_thread, stacks
from disque_trio.worker.statuses import CLEAN, FAILED, INTERRUPTED
from tests.worker.played import PlayedNode, job
from tests.worker.playing import KINDS, Doing, for_ever, play


@attrs.define
class ManualClock:
    """A clock that the test sets."""

    now: float = 0

    def __call__(self) -> float:
        return self.now


pytestmark = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_first_signal_lets_jobs_end(kind: str, number: signal.Signals) -> None:
    node = PlayedNode()

    async def body(run: Run) -> Outcome:
        os.kill(os.getpid(), number)
        while not run.is_stopping:
            await anyio.sleep(0.001)
        return Done()

    async def story(worker: Worker) -> None:
        with obeyed(worker):
            node.give(job(1))
            await node.is_told(b"ACKJOB")

    assert play(kind, story, node, handler=Doing(body)) == CLEAN


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_that_repeat_the_first_within_half_a_second_are_one(
    kind: str, number: signal.Signals
) -> None:
    node = PlayedNode()
    clock = ManualClock()

    async def body(run: Run) -> Outcome:
        for after_s in (0, 0.004, 0.49):
            clock.now = after_s
            os.kill(os.getpid(), signal.SIGTERM if after_s == 0 else number)
        while not run.is_stopping:
            await anyio.sleep(0.001)
        for _ in range(10):  # what the signals ask for is done in the loop
            await anyio.lowlevel.checkpoint()
        return Done()

    async def story(worker: Worker) -> None:
        with obeyed(worker, clock):
            node.give(job(1))
            await node.is_told(b"ACKJOB")

    assert play(kind, story, node, handler=Doing(body)) == CLEAN


def test_the_second_signal_cancels_jobs_and_the_third_ends_the_process(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = PlayedNode()
    clock = ManualClock()
    handler = Doing(for_ever)
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)

    async def story(worker: Worker) -> None:
        with obeyed(worker, clock):
            node.give(job(1))
            await handler.begun()
            os.kill(os.getpid(), signal.SIGTERM)
            clock.now = 0.5
            os.kill(os.getpid(), signal.SIGTERM)
            await node.is_told(b"RELEASE")
            clock.now = 0.9
            os.kill(os.getpid(), signal.SIGTERM)
            assert not ended
            clock.now = 1
            os.kill(os.getpid(), signal.SIGTERM)

    assert play(kind, story, node, handler=handler) == INTERRUPTED
    assert ended == [FAILED]


def test_sigusr1_ends_the_taking(kind: str) -> None:
    node = PlayedNode()

    async def story(worker: Worker) -> None:
        with obeyed(worker):
            await node.is_told(b"GETJOB")
            node.requests.clear()
            os.kill(os.getpid(), signal.SIGUSR1)
            assert (await node.is_told(b"CLIENT"))[1] == b"UNBLOCK"
            assert not worker.is_stopping
        worker.stop()

    assert play(kind, story, node) == CLEAN


@pytest.mark.parametrize("number", [signal.SIGUSR2, signal.SIGQUIT])
def test_a_dump_says_where_handlers_are(
    kind: str, number: signal.Signals, caplog: pytest.LogCaptureFixture
) -> None:
    node = PlayedNode()

    async def wait_for_the_end_of_days() -> None:
        await anyio.sleep_forever()

    async def body(_: Run) -> Outcome:
        await wait_for_the_end_of_days()
        return Done()

    handler = Doing(body)

    async def story(worker: Worker) -> None:
        with obeyed(worker):
            node.give(job(1))
            await handler.begun()
            os.kill(os.getpid(), number)
            while not caplog.messages:
                await anyio.sleep(0.001)
        worker.stop()
        worker.stop()

    with caplog.at_level(logging.WARNING):
        play(kind, story, node, handler=handler)
    assert "wait_for_the_end_of_days" in caplog.text


def test_a_dump_has_the_other_threads(kind: str) -> None:
    is_there, is_over = threading.Event(), threading.Event()

    def sit_in_a_thread() -> None:
        is_there.set()
        is_over.wait()

    thread = threading.Thread(target=sit_in_a_thread, name="sitting")
    thread.start()
    is_there.wait()

    async def dumped() -> str:
        return stacks()

    try:
        text = anyio.run(dumped, backend=kind)
    finally:
        is_over.set()
        thread.join()
    assert "thread sitting" in text
    assert "sit_in_a_thread" in text
    assert of_thread(-1) == ""


def test_afterwards_signals_are_what_they_were(kind: str) -> None:
    before = signal.getsignal(signal.SIGTERM)

    async def story(worker: Worker) -> None:
        with obeyed(worker):
            assert signal.getsignal(signal.SIGTERM) is not before
        worker.stop()

    play(kind, story, PlayedNode())
    assert signal.getsignal(signal.SIGTERM) is before
