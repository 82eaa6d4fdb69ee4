"""Jobs that the driver runs, on Trio and on asyncio."""

import asyncio
import math

import anyio
import pytest

from disque_trio.statemachine.base import Failure
from disque_trio.worker import slots
from disque_trio.worker.driver import Worker
from disque_trio.worker.engine.records import (
    MILLI,
    Dead,
    Done,
    Outcome,
    Reason,
    Release,
    Retry,
)
from disque_trio.worker.protocol import Run
from disque_trio.worker.runtime import Runtime
from disque_trio.worker.statuses import CLEAN, INTERRUPTED
from tests.worker.played import PlayedNode, id_of, job
from tests.worker.playing import KINDS, TOKEN, Doing, done, for_ever, play

pytestmark = pytest.mark.parametrize("kind", KINDS)


def test_jobs_are_run_and_acknowledged_together(kind: str) -> None:
    node = PlayedNode()
    handler = Doing()

    async def story(worker: Worker) -> None:
        node.give(job(1), job(2), job(3))
        assert await node.is_told(b"ACKJOB") == [b"ACKJOB", id_of(1), id_of(2), id_of(3)]
        worker.stop()

    assert play(kind, story, node, handler=handler) == CLEAN
    assert [run.start.body for run in handler.runs] == [b"1", b"2", b"3"]


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Retry(1_500 * MILLI), [b"NACK", id_of(1) + TOKEN, b"DELAY", b"1.500"]),
        (Dead(b"why"), [b"NACK", id_of(1) + TOKEN, b"DEAD", b"why"]),
        (Release(), [b"RELEASE", id_of(1) + TOKEN]),
    ],
)
def test_an_outcome_is_told_to_the_node(kind: str, outcome: Outcome, words: list[bytes]) -> None:
    node = PlayedNode()

    async def body(_: Run) -> Outcome:
        return outcome

    async def story(worker: Worker) -> None:
        node.give(job(1))
        assert await node.is_told(words[0]) == words
        worker.stop()

    assert play(kind, story, node, handler=Doing(body)) == CLEAN


def test_jobs_that_wait_run_beside_each_other(kind: str) -> None:
    node = PlayedNode()
    handler = Doing(for_ever)

    async def story(worker: Worker) -> None:
        node.give(*map(job, range(10)))
        await handler.begun(10)
        worker.stop()
        worker.stop()

    assert play(kind, story, node, handler=handler) == INTERRUPTED


def test_other_tasks_have_their_turn_while_many_jobs_wait(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = PlayedNode()
    handler = Doing()
    jobs = 1_000
    now = 0.0
    most = 0

    async def body(_: Run) -> Outcome:
        nonlocal now
        now += slots.BURST_S / 10
        return Done()

    async def story(worker: Worker) -> None:
        nonlocal most
        node.give(*map(job, range(jobs)))
        before = 0
        while len(handler.runs) < jobs:
            await anyio.lowlevel.checkpoint()
            most = max(most, len(handler.runs) - before)
            before = len(handler.runs)
        worker.stop()

    handler.body = body
    monkeypatch.setattr(slots, "runtime", lambda: Runtime(monotonic=lambda: now))
    play(kind, story, node, handler=handler, concurrency=100)
    assert most <= 24  # two bursts: Trio draws the order of the tasks


def test_a_run_that_takes_too_long_is_cancelled(kind: str) -> None:
    node = PlayedNode()

    async def story(worker: Worker) -> None:
        node.give(job(1))
        assert (await node.is_told(b"NACK"))[-2:] == [b"DELAY", b"15.000"]
        worker.stop()

    assert play(kind, story, node, handler=Doing(for_ever), limit=20 * MILLI) == CLEAN


def test_a_run_may_limit_itself(kind: str) -> None:
    node = PlayedNode()

    async def body(run: Run) -> Outcome:
        run.limit(0.01)
        return await for_ever(run)

    async def story(worker: Worker) -> None:
        node.give(job(1))
        await node.is_told(b"NACK")
        worker.stop()

    assert play(kind, story, node, handler=Doing(body)) == CLEAN


def test_what_a_run_returns_though_it_was_cancelled_counts(kind: str) -> None:
    node = PlayedNode()

    async def body(run: Run) -> Outcome:
        run.limit(0.01)
        try:
            return await for_ever(run)
        except anyio.get_cancelled_exc_class():
            return Done()

    async def story(worker: Worker) -> None:
        node.give(job(1), job(2))
        await node.is_told(b"ACKJOB")
        worker.stop()

    assert play(kind, story, node, handler=Doing(body)) == CLEAN


def test_a_job_that_is_lost_is_cancelled_and_nothing_is_said_of_it(kind: str) -> None:
    node = PlayedNode(answers={b"WORKING": Failure(b"LOST The job was given to somebody else")})

    async def body(run: Run) -> Outcome:
        assert run.node == "127.0.0.1:7711"
        assert 0 < run.lease_end() - anyio.current_time() < 1
        try:
            return await for_ever(run)
        finally:
            assert run.why is Reason.LOST
            assert run.lease_end() == -math.inf

    handler = Doing(body)

    async def story(worker: Worker) -> None:
        node.give(job(1, ms=600))
        await handler.begun()
        await node.is_told(b"WORKING")
        handler.body = done
        node.give(job(2))
        await node.is_told(b"ACKJOB")
        worker.stop()

    assert play(kind, story, node, handler=handler) == CLEAN
    assert handler.runs[0].why is Reason.LOST
    assert not node.told(b"NACK")
    assert not node.told(b"RELEASE")


def test_what_a_handler_raises_is_logged_and_its_job_retried(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    node = PlayedNode()
    errors: list[BaseException] = [ValueError("one"), BaseException("two")]
    if kind == "asyncio":
        errors.append(asyncio.CancelledError())

    async def body(_: Run) -> Outcome:
        if errors:
            raise errors.pop(0)
        return Done()

    async def story(worker: Worker) -> None:
        for number in range(len(errors)):
            node.give(job(number))
            told = await node.is_told(b"NACK")
            assert told == [b"NACK", id_of(number) + TOKEN, b"DELAY", b"15.000"]
        node.give(job(9))
        await node.is_told(b"ACKJOB")
        worker.stop()

    assert play(kind, story, node, handler=Doing(body)) == CLEAN
    assert "ValueError: one" in caplog.text
