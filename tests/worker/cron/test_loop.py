"""Loops that add ticks, in virtual time: one after the other, several at once, with failures."""

from collections import Counter
from collections.abc import Callable
from itertools import cycle
from typing import Final

import pytest
import trio
import trio.testing

from disque_trio.client.nodes import NoNodeError
from disque_trio.worker.cron.loop import keep_time
from disque_trio.worker.cron.schedule import Schedule
from disque_trio.worker.cron.ticks import Every, Tick

NOON: Final = 1_795_348_800.0
MINUTELY: Final = Schedule(name="tick", ticks=Every(60), missed="all", within=300)


class Cluster:
    """Keeps one job for each key, and can be down."""

    def __init__(self) -> None:
        self.jobs: dict[str, float] = {}
        """By key: when it was added, since noon."""
        self.asked: Counter[str] = Counter()
        self.is_down = False

    async def add(self, schedule: Schedule, tick: Tick) -> None:
        self.asked[schedule.key(tick)] += 1
        if self.is_down:
            raise NoNodeError("no node could do it")
        self.jobs.setdefault(schedule.key(tick), trio.current_time())


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    return trio.testing.MockClock(autojump_threshold=0)


def wall() -> float:
    return NOON + trio.current_time()


def drawn(*numbers: float) -> Callable[[], float]:
    draws = cycle(numbers)
    return lambda: next(draws)


async def work(cluster: Cluster, seconds: float, draw: float = 0.5) -> None:
    with trio.move_on_after(seconds):
        await keep_time([MINUTELY], cluster.add, wall=wall, draw=lambda: draw)


async def test_three_workers_add_each_tick_once(autojump_clock: trio.testing.MockClock) -> None:
    cluster = Cluster()

    async with trio.open_nursery() as workers:
        for draw in (0.1, 0.4, 0.9):
            workers.start_soon(work, cluster, 125, draw)

    # Those of the five minutes before noon, and two more.
    assert [round(at) for at in cluster.jobs.values()] == [0, 0, 0, 0, 0, 60, 120]
    assert set(cluster.asked.values()) == {3}


async def test_a_worker_that_ends_leaves_the_ticks_to_the_others(
    autojump_clock: trio.testing.MockClock,
) -> None:
    cluster = Cluster()

    async with trio.open_nursery() as workers:
        workers.start_soon(work, cluster, 30)
        workers.start_soon(work, cluster, 185)

    assert cluster.asked["cron/2026-11-22T12:02Z"] == 1
    assert list(cluster.jobs)[-3:] == [f"cron/2026-11-22T12:0{n}Z" for n in (1, 2, 3)]


async def test_a_tick_that_no_node_takes_is_added_when_one_does(
    autojump_clock: trio.testing.MockClock,
) -> None:
    cluster = Cluster()
    cluster.is_down = True

    async with trio.open_nursery() as workers:
        workers.start_soon(work, cluster, 200)
        await trio.sleep(170)
        cluster.is_down = False

    assert "cron/2026-11-22T11:59Z" in cluster.jobs
    assert all(at < 202 for at in cluster.jobs.values())
    assert len(cluster.jobs) == 5  # those before 11:59 are too late
    assert max(cluster.asked.values()) < 15


async def test_the_clock_may_be_set(autojump_clock: trio.testing.MockClock) -> None:
    cluster, ahead = Cluster(), 0.0

    async def worked() -> None:
        with trio.move_on_after(140):
            await keep_time(
                [MINUTELY], cluster.add, wall=lambda: wall() + ahead, draw=drawn(0.2, 0.7)
            )

    async with trio.open_nursery() as workers:
        workers.start_soon(worked)
        await trio.sleep(10)
        ahead = 110.0
        await trio.sleep(40)
        assert list(cluster.jobs)[-2:] == [f"cron/2026-11-22T12:0{n}Z" for n in (1, 2)]
        ahead = 0.0

    assert set(cluster.asked.values()) == {1}
    assert list(cluster.jobs)[-1] == "cron/2026-11-22T12:02Z"
