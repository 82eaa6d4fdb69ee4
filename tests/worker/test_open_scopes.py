"""Whatever a handler leaves open, its run is a failure, and nobody else notices."""

import time
from typing import Any

import anyio
import pytest

from disque_trio.worker import App
from disque_trio.worker.driver import Worker
from disque_trio.worker.engine.records import Done, Outcome
from disque_trio.worker.protocol import Run
from disque_trio.worker.statuses import CLEAN
from tests.worker import leaving
from tests.worker.leaving import HANDLERS, Handler
from tests.worker.played import PlayedNode, id_of, job
from tests.worker.playing import KINDS, Doing, play
from tests.worker.runs import body, handler_of
from tests.worker.test_ends import POLICY, THRICE, ends, told_of

pytestmark = [
    pytest.mark.parametrize("kind", KINDS),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.mark.parametrize("timeout", [None, 30])
@pytest.mark.parametrize("handler", HANDLERS, ids=lambda each: each.__name__)
def test_a_handler_that_leaves_something_open_has_failed(
    kind: str, handler: Handler, timeout: float | None, caplog: pytest.LogCaptureFixture
) -> None:
    app = App()
    options: Any = {} if timeout is None else {"timeout": timeout}
    app.task(name="t", retry=POLICY, **options)(handler)

    assert ends(kind, app, concurrency=1) == THRICE
    assert "the handler has left a" in caplog.text


def test_so_has_middleware_and_a_def_in_the_loop(kind: str) -> None:
    app = App()

    @app.middleware
    async def opening(job: Any, run: Any) -> object:
        value = await run()
        if job.task == "t":
            await leaving.a_group_with_tasks()
        return value

    @app.task(name="t", retry=POLICY, executor="loop")
    def now() -> None:
        anyio.move_on_after(0.01).__enter__()

    assert ends(kind, app, concurrency=1) == THRICE


def test_after_each_of_them_jobs_are_cancelled_as_ever(kind: str) -> None:
    """The slot, its time limits and the end of the worker are as if nothing had been."""
    app, node = App(), PlayedNode()
    for handler in HANDLERS:
        app.task(name=handler.__name__, retry=POLICY)(handler)

    @app.task(name="slow", retry=POLICY, timeout=0.05)
    async def slow() -> None:
        await anyio.sleep(60)

    @app.task(name="endless")
    async def endless() -> None:
        await anyio.sleep_forever()

    async def story(worker: Worker) -> None:
        for number, handler in enumerate(HANDLERS):
            node.give(job(2 * number, body=body(handler.__name__)))
            assert await told_of(node, id_of(2 * number)) == "NACK 0.200"
            node.give(job(2 * number + 1, body=body("slow")))
            assert await told_of(node, id_of(2 * number + 1)) == "NACK 0.200"
        node.give(job(99, body=body("endless")))
        await anyio.sleep(0.05)
        worker.stop()
        worker.stop()
        assert (await node.is_told(b"RELEASE"))[1].startswith(id_of(99))

    began = time.monotonic()
    play(kind, story, node, handler=handler_of(app), concurrency=1)
    assert time.monotonic() - began < 20


def test_middleware_may_run_a_handler_in_a_task_of_its_own(kind: str) -> None:
    app, said = App(), []

    @app.middleware
    async def beside(_: Any, run: Any) -> object:
        async def inner() -> None:
            said.append(await run())

        async with anyio.create_task_group() as group:
            group.start_soon(inner)
        return said[-1]

    @app.task(name="t", timeout=30)
    async def t() -> int:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, 0.01)
        with anyio.move_on_after(0.01):
            await anyio.sleep_forever()
        return 7

    assert ends(kind, app, concurrency=1) == ["done"]
    assert 7 in said


def test_a_handler_of_jobs_without_an_app_may_do_it_too(kind: str) -> None:
    node = PlayedNode()

    async def handle(run: Run) -> Outcome:
        if run.start.id == id_of(1):
            await leaving.a_group_with_tasks()
        await anyio.sleep(0.02)
        return Done()

    async def story(worker: Worker) -> None:
        node.give(job(1), job(2))
        assert await told_of(node, id_of(1)) == "NACK 15.000"
        assert await told_of(node, id_of(2)) == "done"
        worker.stop()

    assert play(kind, story, node, handler=Doing(handle), concurrency=1) == CLEAN
