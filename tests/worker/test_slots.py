"""Slots outlive what jobs do to the tasks that ran them."""

import asyncio
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from disque_trio.worker.engine.records import Done, Outcome, Retry, Start
from disque_trio.worker.protocol import Handler, Run
from disque_trio.worker.slots import Slots
from tests.worker.runs import Driver, body, run_of


class Turned(Driver):
    """A driver that is told when jobs have ended."""

    def turn(self) -> None:
        """Nobody is told."""

    def interrupted(self, run: Run) -> None:
        raise AssertionError(run)

    def failed(self, start: Start, error: BaseException) -> None:
        raise AssertionError(start) from error


Keep = Callable[[asyncio.Task[object]], Callable[[], asyncio.Task[object] | None]]


def started(number: int) -> Start:
    return run_of(body("t"), nacks=number, id=b"%d" % number).start


async def open_slots(handler: Handler, group: TaskGroup) -> Slots:
    driver = Turned()
    slots = Slots(handler, driver, lambda: 10)
    driver.turn = slots.ended.clear  # type: ignore[method-assign]
    slots.open(group)
    return slots


@pytest.mark.parametrize("keep", [lambda task: lambda: task, weakref.ref])
def test_a_job_that_cancels_its_task_after_its_end_stops_no_other_job(keep: Keep) -> None:
    ran: list[int] = []
    tasks: list[Callable[[], asyncio.Task[object] | None]] = []

    async def handler(run: Run) -> Outcome:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(keep(task))
        ran.append(run.start.nacks)
        return Done()

    def cancel() -> None:
        if task := tasks[-1]():
            task.cancel()

    async def main() -> None:
        async with anyio.create_task_group() as group:
            slots = await open_slots(handler, group)
            slots.start([started(1)])
            await anyio.wait_all_tasks_blocked()
            for number in range(2, 10, 2):
                cancel()  # while it waits for a job
                await anyio.wait_all_tasks_blocked()
                slots.start([started(number)])
                cancel()  # when it has just been woken
                await anyio.wait_all_tasks_blocked()
                slots.start([started(number + 1)])
                await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()

    asyncio.run(asyncio.wait_for(main(), 20))
    assert ran == [*range(1, 10)]


async def a_timeout() -> None:
    await asyncio.timeout(0).__aenter__()


async def a_group() -> None:
    group = asyncio.TaskGroup()
    await group.__aenter__()
    group.create_task(fails())


async def fails() -> None:
    await asyncio.sleep(0)
    raise ValueError("no")


async def a_timer() -> None:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().call_soon(task.cancel)


@pytest.mark.parametrize("leave", [a_timeout, a_group, a_timer])
@pytest.mark.parametrize("is_failing", [False, True])
def test_what_a_job_leaves_open_in_asyncio_cancels_no_other_job(
    leave: Callable[[], Coroutine[Any, Any, None]], is_failing: bool
) -> None:
    ends: list[int] = []

    async def handler(run: Run) -> Outcome:
        if run.start.nacks % 2:
            await leave()
            if is_failing:
                return Retry(0)
        else:
            for _ in range(20):
                await asyncio.sleep(0)
        ends.append(run.start.nacks)
        return Done()

    async def main() -> None:
        async with anyio.create_task_group() as group:
            slots = await open_slots(handler, group)
            slots.start([*map(started, range(1, 9))])
            with anyio.move_on_after(10):
                while len(ends) < 8 - 4 * is_failing:
                    await anyio.sleep(0.001)
            group.cancel_scope.cancel()

    asyncio.run(main())
    assert sorted(ends) == ([2, 4, 6, 8] if is_failing else [*range(1, 9)])
