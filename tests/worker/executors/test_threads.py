"""Functions of jobs in threads, on Trio and on asyncio."""

import math
import threading
from contextvars import ContextVar

import anyio
import anyio.to_thread
import pytest

from disque_trio.worker.executors import threads
from disque_trio.worker.executors.threads import ThreadExecutor
from tests.worker import runs
from tests.worker.executors.runs import a_run, told
from tests.worker.playing import KINDS

pytestmark = pytest.mark.parametrize("kind", KINDS)
name: ContextVar[str] = ContextVar("name")


async def begun(event: threading.Event) -> None:
    while not event.is_set():
        await anyio.sleep(0.001)


def test_a_function_runs_in_a_thread_with_the_variables_of_its_task(kind: str) -> None:
    pool = ThreadExecutor()

    def work(left: int, *, right: int) -> tuple[int, str, bool]:
        assert run.thread == threading.get_ident()
        return left + right, name.get(), threading.current_thread() is threading.main_thread()

    run = a_run()

    async def story() -> None:
        name.set("Ada")
        assert await pool.run(work, (1,), {"right": 2}, run) == (3, "Ada", False)
        assert run.thread is None

    told(kind, story)
    pool.close()


def test_what_it_raises_is_raised(kind: str) -> None:
    pool = ThreadExecutor()

    def work() -> None:
        raise SystemExit(3)

    async def story() -> None:
        with pytest.raises(SystemExit):
            await pool.run(work, (), {}, a_run())

    told(kind, story)
    pool.close()


def test_so_many_run_at_the_same_time_and_all_in_the_end(kind: str) -> None:
    pool = ThreadExecutor(3)
    lock = threading.Lock()
    now = most = 0
    results: list[object] = []

    def work(number: int) -> int:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        with lock:
            now -= 1
        return number

    async def one(number: int) -> None:
        results.append(await pool.run(work, (number,), {}, a_run()))

    async def story() -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(300):
                tasks.start_soon(one, number)

    told(kind, story)
    pool.close()
    assert sorted(map(str, results)) == sorted(map(str, range(300)))
    assert most <= 3


def test_a_run_that_is_cancelled_ends_when_its_thread_does_and_its_result_counts(kind: str) -> None:
    pool = ThreadExecutor()
    is_there, may_end = threading.Event(), threading.Event()

    def work() -> str:
        is_there.set()
        may_end.wait()
        return "done"

    async def story() -> None:
        results = []
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                with anyio.CancelScope() as scope:
                    tasks.start_soon(cancel, scope)
                    results.append(await pool.run(work, (), {}, a_run()))

            async def cancel(scope: anyio.CancelScope) -> None:
                await begun(is_there)
                scope.cancel()
                await anyio.sleep(0.01)
                assert results == []
                may_end.set()

            tasks.start_soon(run)
        assert results == ["done"]

    told(kind, story)
    pool.close()


def test_a_run_that_is_cancelled_before_it_has_a_thread_never_begins(kind: str) -> None:
    pool = ThreadExecutor(1)
    is_there, may_end = threading.Event(), threading.Event()
    others: list[int] = []

    def work() -> None:
        is_there.set()
        may_end.wait()

    async def story() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pool.run, work, (), {}, a_run())
            await begun(is_there)
            with anyio.move_on_after(0.01) as scope:
                await pool.run(others.append, (1,), {}, a_run())
            assert scope.cancelled_caught
            may_end.set()
            await pool.run(others.append, (2,), {}, a_run())

    told(kind, story)
    pool.close()
    assert others == [2]


def test_a_thread_that_does_not_end_is_replaced(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "STUCK_S", 0.01)
    pool = ThreadExecutor(1)
    is_there, may_end = threading.Event(), threading.Event()

    def work() -> None:
        is_there.set()
        may_end.wait()

    async def story() -> None:
        async def late() -> None:
            with anyio.CancelScope() as scope:
                tasks.start_soon(cancel, scope)
                await pool.run(work, (), {}, a_run())

        async def cancel(scope: anyio.CancelScope) -> None:
            await begun(is_there)
            scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(late)
            await begun(is_there)
            assert await pool.run(str, (1,), {}, a_run()) == "1"
            may_end.set()
        assert await pool.run(str, (2,), {}, a_run()) == "2"

    told(kind, story)
    pool.close()


def test_threads_of_a_closed_pool_end(kind: str) -> None:
    pool = ThreadExecutor(2)
    found: list[threading.Thread] = []

    async def story() -> None:
        await pool.run(lambda: found.append(threading.current_thread()), (), {}, a_run())
        pool.close()
        await anyio.to_thread.run_sync(found[0].join)

    told(kind, story)
    assert not found[0].is_alive()


def test_the_time_limit_of_a_run_begins_with_its_thread(kind: str) -> None:
    pool = ThreadExecutor(1)
    driver, release, begun = runs.Driver(), threading.Event(), threading.Event()
    first, second = (runs.run_of(b"", driver=driver) for _ in range(2))

    def work() -> list[float]:
        assert begun.wait(60)
        return [*driver.limits]

    async def story() -> None:
        first.limit(40)
        second.limit(40)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pool.run, release.wait, (), {}, first)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(waits_no_longer)
            assert await pool.run(work, (), {}, second) == [40, 40, math.inf, 40]
        assert second.ends < math.inf

    async def waits_no_longer() -> None:
        await anyio.wait_all_tasks_blocked()
        is_waiting = second.ends == math.inf
        release.set()
        while len(driver.limits) < 4 and is_waiting:
            await anyio.sleep(0.001)
        begun.set()

    told(kind, story)
    pool.close()
