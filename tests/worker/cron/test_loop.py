"""Loops that add ticks, in virtual time: one after the other, several at once, with failures."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import cycle
from typing import Final

import attrs
import pytest
import trio
import trio.testing

from disque_trio.client.nodes import NoNodeError
from disque_trio.worker.cron.loop import RENEW_S, Keeper
from disque_trio.worker.cron.schedule import Missed, Schedule
from disque_trio.worker.cron.ticks import Every, Tick

NOON: Final = 1_795_348_800.0
MINUTELY: Final = Schedule(name="tick", ticks=Every(60), missed="all", within=300)
BACKFILLED: Final = attrs.evolve(MINUTELY, backfill=True)


class Cluster:
    """Keeps one job for each key and one record for each task, and can be down."""

    def __init__(self) -> None:
        self.jobs: dict[str, float] = {}
        """By key: when it was added, since noon."""
        self.asked: Counter[str] = Counter()
        self.records: dict[str, Mapping[str, Tick]] = {}
        self.renewed: list[float] = []
        self.is_down = False

    async def add(self, schedule: Schedule, tick: Tick) -> None:
        self.asked[schedule.key(tick)] += 1
        self._check()
        self.jobs.setdefault(schedule.key(tick), trio.current_time())

    async def begin(self, task: str, words: Sequence[str], now: Tick) -> Mapping[str, Tick]:
        self._check()
        before = self.records.get(task, {})
        self.records[task] = {each: before.get(each, now) for each in words}
        return self.records[task]

    async def renew(self, task: str, since: Mapping[str, Tick]) -> None:
        self._check()
        assert since == self.records[task]
        self.renewed.append(trio.current_time())

    def _check(self) -> None:
        if self.is_down:
            raise NoNodeError("no node could run the command")


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    return trio.testing.MockClock(autojump_threshold=0)


def wall() -> float:
    return NOON + trio.current_time()


def drawn(*numbers: float) -> Callable[[], float]:
    draws = cycle(numbers)
    return lambda: next(draws)


async def work(
    cluster: Cluster, seconds: float, draw: float = 0.5, schedule: Schedule = BACKFILLED
) -> None:
    keeper = Keeper(add=cluster.add, known=cluster, wall=wall, draw=lambda: draw)
    with trio.move_on_after(seconds):
        await keeper.run([schedule])


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
            keeper = Keeper(
                add=cluster.add, known=cluster, wall=lambda: wall() + ahead, draw=drawn(0.2, 0.7)
            )
            await keeper.run([BACKFILLED])

    async with trio.open_nursery() as workers:
        workers.start_soon(worked)
        await trio.sleep(10)
        ahead = 110.0
        await trio.sleep(40)
        assert list(cluster.jobs)[-2:] == [f"cron/2026-11-22T12:0{n}Z" for n in (1, 2)]
        ahead = 0.0

    assert set(cluster.asked.values()) == {1}
    assert list(cluster.jobs)[-1] == "cron/2026-11-22T12:02Z"


# The first start with a schedule.


@pytest.mark.parametrize("missed", ["skip", "latest", "all"])
async def test_the_first_start_adds_no_tick_from_before(
    missed: Missed, autojump_clock: trio.testing.MockClock
) -> None:
    cluster = Cluster()

    await work(cluster, 59, schedule=Schedule(name="tick", ticks=Every(30), missed=missed))

    assert list(cluster.jobs) == ["cron/2026-11-22T12:00:30Z"]


@pytest.mark.parametrize(("missed", "count"), [("skip", 0), ("latest", 1), ("all", 3)])
async def test_a_start_after_an_outage_adds_what_was_missed(
    missed: Missed, count: int, autojump_clock: trio.testing.MockClock
) -> None:
    cluster = Cluster()
    schedule = attrs.evolve(MINUTELY, missed=missed)
    await work(cluster, 61, schedule=schedule)
    await trio.sleep(185)

    await work(cluster, 10, schedule=schedule)

    assert len(cluster.jobs) == 1 + count
    assert list(cluster.jobs.values())[1:] == [246] * count


async def test_after_an_edit_and_after_its_undoing_no_tick_from_before_is_added(
    autojump_clock: trio.testing.MockClock,
) -> None:
    cluster = Cluster()
    edited = attrs.evolve(MINUTELY, ticks=Every(50))
    for schedule in (MINUTELY, edited, MINUTELY):
        await work(cluster, 121, schedule=schedule)
        await trio.sleep(100)

    assert all(at % 221 > 0.5 for at in cluster.jobs.values())
    assert len(cluster.jobs) == 2 + 2 + 2


async def test_ticks_are_missed_from_the_start_on_if_no_node_answers_then(
    autojump_clock: trio.testing.MockClock,
) -> None:
    cluster = Cluster()
    cluster.is_down = True

    async with trio.open_nursery() as workers:
        workers.start_soon(partial(work, cluster, 200, schedule=MINUTELY))
        await trio.sleep(130)
        cluster.is_down = False

    assert list(cluster.jobs) == [f"cron/2026-11-22T12:0{n}Z" for n in (1, 2, 3)]


async def test_a_worker_that_runs_on_keeps_the_record(
    autojump_clock: trio.testing.MockClock,
) -> None:
    cluster = Cluster()
    yearly = attrs.evolve(MINUTELY, ticks=Every(365 * 24 * 3600))

    await work(cluster, 3.5 * RENEW_S, schedule=yearly)

    assert [round(at / RENEW_S, 2) for at in cluster.renewed] == [1, 2, 3]
