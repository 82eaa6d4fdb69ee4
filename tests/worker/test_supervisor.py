import signal

import attrs
import pytest
import trio
from trio.testing import MockClock

from disque_trio.worker.statuses import CLEAN, FAILED, INTERRUPTED, REFUSED, RESTART
from disque_trio.worker.supervisor import Supervisor, how


@attrs.define(eq=False)
class Child:
    """A process that lives for so long, or until a signal, and ends with this status."""

    status: int = CLEAN
    lives_s: float = 1e9
    signals: list[int] = attrs.Factory(list)
    _ended: trio.Event = attrs.Factory(trio.Event)

    async def wait(self) -> int:
        with trio.move_on_after(self.lives_s):
            await self._ended.wait()
        return self.status

    def send_signal(self, number: int) -> None:
        self.signals.append(number)
        if number == signal.SIGTERM:
            self._ended.set()


@attrs.define
class Starts:
    """Starts the children of a list, then ones that live on; and knows when it did."""

    children: list[Child]
    at: list[float] = attrs.Factory(list)
    numbers: list[int] = attrs.Factory(list)

    async def __call__(self, number: int) -> Child:
        self.at.append(trio.current_time())
        self.numbers.append(number)
        if len(self.at) > len(self.children):
            self.children.append(Child())
        return self.children[len(self.at) - 1]


async def status_of(supervisor: Supervisor, stop_after_s: float = 1e6) -> int:
    """Run, and stop after a while."""
    found = []

    async def run() -> None:
        found.append(await supervisor.run())
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await trio.sleep(stop_after_s)
        supervisor.signalled(signal.SIGTERM)
    return found[0]


async def test_each_child_has_its_number_and_gets_the_signals(autojump_clock: MockClock) -> None:
    starts = Starts([Child(), Child()])
    supervisor = Supervisor(starts, 2)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(status_of, supervisor, 10)
        await trio.sleep(1)
        supervisor.signalled(signal.SIGUSR1)

    assert sorted(starts.numbers) == [1, 2]
    assert [child.signals for child in starts.children] == [[signal.SIGUSR1, signal.SIGTERM]] * 2


async def test_signals_that_repeat_a_stop_are_passed_on_once(autojump_clock: MockClock) -> None:
    starts = Starts([Child()])
    supervisor = Supervisor(starts, 1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(status_of, supervisor, 10)
        await trio.sleep(1)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR1):
            supervisor.signalled(number)
        await trio.sleep(0.5)
        supervisor.signalled(signal.SIGINT)

    told = [signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR1, signal.SIGINT, signal.SIGTERM]
    assert starts.children[0].signals == told


async def test_after_the_order_to_stop_no_child_is_started(autojump_clock: MockClock) -> None:
    starts = Starts([Child()])

    assert await status_of(Supervisor(starts, 1), 5) == CLEAN
    assert len(starts.at) == 1


async def test_children_that_die_soon_start_at_once_three_times_then_after_pauses_that_double(
    autojump_clock: MockClock,
) -> None:
    starts = Starts([Child(-9, 1) for _ in range(10)])
    began = trio.current_time()

    await status_of(Supervisor(starts, 1), 150)

    pauses = [b - a - 1 for a, b in zip([began - 1, *starts.at], starts.at, strict=False)]
    assert pauses == pytest.approx([0, 0, 0, 0, 0.5, 1, 2, 4, 8, 16, 30])


async def test_a_pause_is_30_seconds_at_most(autojump_clock: MockClock) -> None:
    starts = Starts([Child(1, 0) for _ in range(100)])

    await status_of(Supervisor(starts, 1), 1000)

    assert starts.at[-1] - starts.at[-2] == pytest.approx(30)


async def test_children_that_die_after_ten_seconds_start_again_at_once(
    autojump_clock: MockClock,
) -> None:
    starts = Starts([*(Child(1, 1) for _ in range(5)), *(Child(-9, 10) for _ in range(5))])
    began = trio.current_time()

    await status_of(Supervisor(starts, 1), 100)

    times = [0, 1, 2, 3, 4.5, 6.5, 16.5, 26.5, 36.5, 46.5, 56.5]
    assert [at - began for at in starts.at] == pytest.approx(times)


@pytest.mark.parametrize("status", [CLEAN, RESTART])
async def test_a_child_that_ends_in_order_is_started_again_at_once(
    status: int, autojump_clock: MockClock
) -> None:
    starts = Starts([Child(status, 3)])
    began = trio.current_time()

    await status_of(Supervisor(starts, 1), 10)

    assert [at - began for at in starts.at] == pytest.approx([0, 3])


async def test_in_a_burst_a_child_that_has_done_its_work_is_not_started_again(
    autojump_clock: MockClock,
) -> None:
    starts = Starts([Child(CLEAN, 3), Child(-9, 2), Child(CLEAN, 3)])

    assert await status_of(Supervisor(starts, 2, is_burst=True)) == CLEAN
    assert len(starts.at) == 3


async def test_a_child_that_a_node_refuses_ends_all(autojump_clock: MockClock) -> None:
    starts = Starts([Child(REFUSED, 1), Child()])

    assert await status_of(Supervisor(starts, 2)) == REFUSED
    assert starts.children[1].signals == [signal.SIGTERM]
    assert len(starts.at) == 2


@pytest.mark.parametrize(
    ("statuses", "worst"),
    [
        ([CLEAN, CLEAN], CLEAN),
        ([CLEAN, INTERRUPTED], INTERRUPTED),
        ([INTERRUPTED, -9], FAILED),
        ([CLEAN, 42], FAILED),
    ],
)
async def test_the_exit_status_is_the_worst_of_the_children(
    statuses: list[int], worst: int, autojump_clock: MockClock
) -> None:
    starts = Starts([Child(status) for status in statuses])

    assert await status_of(Supervisor(starts, 2), 5) == worst


@pytest.mark.parametrize("status", [-signal.SIGTERM, -signal.SIGHUP, RESTART])
async def test_a_child_that_had_not_begun_when_all_stop_has_ended_in_order(
    status: int, autojump_clock: MockClock
) -> None:
    assert await status_of(Supervisor(Starts([Child(status)]), 1), 5) == CLEAN


async def test_a_child_that_cannot_be_started_is_tried_again(autojump_clock: MockClock) -> None:
    tried = []

    async def start(number: int) -> Child:
        tried.append(number)
        if len(tried) < 3:
            raise BlockingIOError(11, "no more processes")
        return Child()

    assert await status_of(Supervisor(start, 1), 5) == CLEAN
    assert len(tried) == 3


async def test_a_child_that_starts_while_all_stop_is_stopped_too(autojump_clock: MockClock) -> None:
    child = Child()

    async def slow(_number: int) -> Child:
        await trio.sleep(2)
        return child

    assert await status_of(Supervisor(slow, 1), 1) == CLEAN
    assert child.signals == [signal.SIGTERM]


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (0, "has ended"),
        (75, "requests a restart"),
        (77, "was refused by a node"),
        (-9, "was killed by SIGKILL"),
        (2, "has failed with status 2"),
    ],
)
def test_people_are_told_how_a_child_ended(status: int, said: str) -> None:
    assert how(status) == said
