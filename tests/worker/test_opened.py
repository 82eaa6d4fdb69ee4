"""One app in any number of event loops: each has a client of its own, which ends with it."""

import asyncio
import gc
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import anyio
import pytest
import trio

from disque_trio.statemachine.base import Reply, Status
from disque_trio.worker import App, NotOpenError
from tests.client.fakenode import Answers, FakeNode, fake_node
from tests.client.running import url

ID = "D-bbbbbbbb-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
HELLO: list[Reply] = [[1, b"a" * 40]]
Run = Callable[[Callable[[], Coroutine[Any, Any, object]]], object]


def run_asyncio(main: Callable[[], Coroutine[Any, Any, object]]) -> None:
    asyncio.run(asyncio.wait_for(main(), 60))


def run_trio(main: Callable[[], Coroutine[Any, Any, object]]) -> None:
    trio.run(main)


LOOPS = pytest.mark.parametrize("run", [run_asyncio, run_trio])


@pytest.fixture
def node() -> Iterator[FakeNode]:
    with fake_node({b"HELLO": HELLO, b"ADDJOB": [Status(ID.encode())]}) as running:
        yield running


def app_of(node: FakeNode) -> tuple[App[None], Any]:
    app = App(url(node))

    async def leaf(n: int) -> None: ...

    return app, app.task(name="leaf", queue="q", result_ttl=60)(leaf)


def added(node: FakeNode) -> int:
    return sum(each[0] == b"ADDJOB" for each in node.requests)


def in_threads(count: int, target: Callable[[int], object]) -> list[BaseException]:
    """What they have raised."""
    errors: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            target(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=[n], daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return errors


def assert_closed(node: FakeNode) -> None:
    """All connections to the node have ended."""
    for thread in node._threads:
        thread.join(10)
        assert not thread.is_alive()


def test_loops_of_asyncio_and_trio_that_run_at_once_use_an_app(node: FakeNode) -> None:
    app, leaf = app_of(node)

    def loop(number: int) -> None:
        async def main() -> None:
            for _ in range(3):
                async with app:
                    for n in range(5):
                        await leaf.enqueue(n)
                        await anyio.sleep(0)

        (run_asyncio if number % 2 else run_trio)(main)

    assert in_threads(6, loop) == []
    assert added(node) == 6 * 3 * 5
    assert_closed(node)


@LOOPS
def test_a_loop_that_ends_without_closing_the_app_leaves_nothing_open(
    run: Run, node: FakeNode
) -> None:
    app, leaf = app_of(node)

    async def startup() -> None:
        await app.__aenter__()
        await leaf.enqueue(1)

    run(startup)
    assert_closed(node)

    async def again() -> None:
        with pytest.raises(NotOpenError):
            await leaf.enqueue(2)
        async with app:
            await leaf.enqueue(2)

    run(again)
    assert added(node) == 2


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.parametrize("is_closed", [True, False])
def test_a_loop_that_is_dropped_without_its_hooks_leaves_nothing_open(
    is_closed: bool, node: FakeNode
) -> None:
    app, leaf = app_of(node)

    def drop() -> None:
        async def startup() -> None:
            await app.__aenter__()
            await leaf.enqueue(1)

        loop = asyncio.new_event_loop()
        loop.run_until_complete(startup())
        if is_closed:
            loop.close()

    drop()
    if not is_closed:
        gc.collect()
    assert_closed(node)
    gc.collect()
    assert len(app._enqueuer.opened) == 0


@LOOPS
def test_a_client_is_closed_when_it_was_closed_as_often_as_it_was_opened(
    run: Run, node: FakeNode
) -> None:
    app, leaf = app_of(node)

    async def main() -> None:
        async with app:
            outer = app.client
            async with app, app:
                assert app.client is outer
            assert app.client is outer
            await leaf.enqueue(1)
        with pytest.raises(NotOpenError):
            app.client  # noqa: B018
        async with app:
            assert app.client is not outer

    run(main)
    assert_closed(node)


@LOOPS
def test_a_loop_in_a_thread_of_another_loop_has_a_client_of_its_own(
    run: Run, node: FakeNode
) -> None:
    """As in a `def` task that calls `asyncio.run`."""
    app, leaf = app_of(node)
    found = []

    async def inner() -> None:
        with pytest.raises(NotOpenError, match="in this event loop"):
            await leaf.enqueue(0)
        async with app:
            found.append(app.client)
            await leaf.enqueue(1)

    async def main() -> None:
        async with app, anyio.create_task_group() as tasks:
            found.append(app.client)
            for each in (run_asyncio, run_trio) * 3:
                tasks.start_soon(anyio.to_thread.run_sync, each, inner)
                await leaf.enqueue(2)
        assert len({*map(id, found)}) == 7

    run(main)
    assert added(node) == 12
    assert_closed(node)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # Python 3.12 warns of threads
def test_a_forked_process_does_not_use_the_client_of_its_parent(node: FakeNode) -> None:
    app, leaf = app_of(node)

    def child() -> int:
        with pytest.raises(NotOpenError):
            app.client  # noqa: B018
        errors = in_threads(2, lambda n: (run_trio if n else run_asyncio)(again))
        gc.collect()
        return len(errors)

    async def again() -> None:
        async with app:
            await leaf.enqueue(2)

    async def main() -> None:
        async with app:
            await leaf.enqueue(1)
            pid = os.fork()
            if not pid:
                status = 99
                try:
                    status = child()
                finally:
                    os._exit(status)
            _, status = await anyio.to_thread.run_sync(os.waitpid, pid, 0)
            assert status == 0
            await leaf.enqueue(3)

    for run in (run_asyncio, run_trio):
        run(main)
    assert added(node) == 2 * 4


@LOOPS
def test_a_result_is_awaited_in_the_loop_that_added_the_job(run: Run, node: FakeNode) -> None:
    app, leaf = app_of(node)
    kept = []

    async def main() -> None:
        async with app:
            kept.append(await leaf.enqueue(1))

    async def other() -> None:
        for _ in range(2):
            with pytest.raises(NotOpenError, match="another event loop"):
                await kept[0].result(1)
            with pytest.raises(NotOpenError, match="another event loop"):
                await anext(kept[0].updates(1))
            await app.__aenter__()
        await app.__aexit__()

    run(main)
    run(other)


def test_without_a_loop_the_app_is_not_open(node: FakeNode) -> None:
    app, leaf = app_of(node)

    with pytest.raises(NotOpenError, match=r"`async with app:`"):
        app.client  # noqa: B018
    assert leaf.blocking.enqueue(1).id == ID
    app.blocking.client.close()


def test_a_thread_asks_the_nodes_that_were_named_last() -> None:
    answers: Answers = {b"HELLO": HELLO, b"QLEN": [7]}
    with fake_node(answers) as first, fake_node(answers) as second:
        app: App[None] = App(url(first))
        for node in (first, second):
            app.use(url(node))
            assert app.blocking.client.qlen("q") == 7
            assert app.blocking.client is app.blocking.client
            assert [b"QLEN", b"q"] in node.requests
        app.blocking.client.close()
