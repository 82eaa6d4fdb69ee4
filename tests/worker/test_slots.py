"""Slots outlive what jobs do to the tasks that ran them."""

import asyncio

import anyio
from anyio.lowlevel import checkpoint

from disque_trio.worker.engine.records import Done, Outcome, Start
from disque_trio.worker.handling import Run
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


def test_a_job_that_cancels_its_task_after_its_end_stops_no_other_job() -> None:
    ran: list[int] = []
    tasks: list[asyncio.Task[object]] = []

    async def handler(run: Run) -> Outcome:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        ran.append(run.start.nacks)
        return Done()

    def start(number: int) -> Start:
        return run_of(body("t"), nacks=number, id=b"%d" % number).start

    async def main() -> None:
        driver = Turned()
        slots = Slots(handler, driver, lambda: 10)
        driver.turn = slots.ended.clear  # type: ignore[method-assign]
        async with anyio.create_task_group() as group:
            slots.open(group)
            slots.start([start(1)])
            await anyio.wait_all_tasks_blocked()
            for number in range(2, 10, 2):
                tasks[-1].cancel()  # while it waits for a job
                await anyio.wait_all_tasks_blocked()
                slots.start([start(number)])
                tasks[-1].cancel()  # when it has just been woken
                await anyio.wait_all_tasks_blocked()
                slots.start([start(number + 1)])
                await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()
            await checkpoint()

    asyncio.run(asyncio.wait_for(main(), 20))
    assert ran == [*range(1, 10)]
