"""A job that blocks the event loop is named, with where it did and what that has cost."""

import time
from typing import Any

import anyio
import pytest

from disque_trio.worker import App, driver, stalls
from disque_trio.worker.driver import Worker
from disque_trio.worker.runtime import Runtime, for_process
from tests.worker.played import PlayedNode, id_of, job
from tests.worker.playing import KINDS, play
from tests.worker.runs import body, handler_of

pytestmark = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "LOOK_S", 0.02)
    monkeypatch.setattr(driver, "LONG_S", 0.1)
    monkeypatch.setattr(stalls, "LONG_S", 0.1)
    monkeypatch.setattr(stalls, "_LOOK_S", 0.01)


def blocks(worker: Worker) -> None:
    """Until that has been seen, and then for long."""
    while worker._stalls is None or worker._stalls.seen is None:
        time.sleep(0.001)
    time.sleep(0.12)


def warned(kind: str, caplog: pytest.LogCaptureFixture, how: str, ms: int = 60_000) -> Any:
    """The record of the log about it."""
    app, node = App(), PlayedNode()
    workers: list[Worker] = []

    @app.task(name="mail.send")
    async def send() -> None:
        if how == "child":
            async with anyio.create_task_group() as group:
                group.start_soon(anyio.sleep, 0)
                group.start_soon(child)
        else:
            await anyio.sleep(0.001)  # it blocks in a later step
            blocks(workers[0])

    async def child() -> None:
        blocks(workers[0])

    async def story(worker: Worker) -> None:
        workers.append(worker)
        node.give(job(1, body=body("mail.send"), ms=ms))
        while not stood_still(caplog):
            await anyio.sleep(0.005)
        worker.stop()

    play(kind, story, node, handler=handler_of(app))
    return stood_still(caplog)[0]


def stood_still(caplog: pytest.LogCaptureFixture) -> list[Any]:
    return [each for each in caplog.records if "event loop was blocked" in each.getMessage()]


def test_the_job_and_the_line_are_named(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    record = warned(kind, caplog, "itself")

    assert (record.task, record.job) == ("mail.send", id_of(1).decode())
    assert record.levelname == "WARNING"
    assert ", at worker/test_stalls.py:" in record.message
    assert " in blocks. " in record.message
    assert "leases" not in record.message


def test_a_lease_that_was_lost_is_told(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    record = warned(kind, caplog, "itself", ms=150)

    assert "; 1 lease ended meanwhile, so the jobs run again. " in record.message


def test_of_a_child_of_a_job_the_line_is_named(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    record = warned(kind, caplog, "child")

    assert ", at worker/test_stalls.py:" in record.message


def test_in_virtual_time_nothing_watches(kind: str) -> None:
    async def story(worker: Worker) -> None:
        await anyio.sleep(0)
        assert worker._stalls is None
        worker.stop()

    with for_process(Runtime(monotonic=lambda: 0.0)):
        play(kind, story, PlayedNode())
