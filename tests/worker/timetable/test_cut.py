"""Schedules of simulated workers and nodes: what two sides of a partition add, and afterwards."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

import anyio
import pytest

from disque_trio.testing.simulated.cluster import Cluster
from disque_trio.testing.simulated.kit import Sim
from disque_trio.worker import App
from disque_trio.worker.runtime import runtime

RUNS: list[float] = []
"""The instant of the tick of each run, in Unix seconds."""


@asynccontextmanager
async def keeping() -> AsyncIterator[None]:
    """As `disque-trio worker` does beside its jobs."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(app.schedules.keeper().run)
        yield
        tasks.cancel_scope.cancel()


app = App("disque://127.0.0.1:1", lifespan=keeping)


@app.task(name="note", queue="notes", replicate=2)
async def note(*, scheduled: datetime) -> None:
    RUNS.append(scheduled.timestamp())


async def cut_in_the_middle(cluster: Cluster, sync: int) -> tuple[float, float]:
    """Ticks for two minutes, of which 40 s are a cut; when it began and ended."""
    RUNS.clear()
    await app.schedules.add("notes", note.using(sync=sync), every=10)
    await cluster.sleep(45)
    with cluster.partition(["n1", "w1"], ["n2", "w2"]):
        cut = runtime().now()
        await cluster.sleep(40)
    healed = runtime().now()
    await cluster.sleep(45)
    assert await app.schedules.pause("notes")
    paused = runtime().now()
    await cluster.sleep(30)
    await cluster.drained()
    assert max(RUNS) <= paused
    first = min(RUNS)
    assert sorted(set(RUNS)) == [first + 10 * n for n in range(len(set(RUNS)))]
    assert max(RUNS) - first >= 110
    return cut, healed


@pytest.mark.slow
def test_each_side_of_a_cut_adds_the_ticks_and_none_is_lost(disque_sim: Sim) -> None:
    doubled: list[float] = []

    async def story(cluster: Cluster) -> None:
        cut, healed = await cut_in_the_middle(cluster, 1)
        twice = [tick for tick, count in Counter(RUNS).items() if count > 1]
        assert max(Counter(RUNS).values()) <= 2
        assert all(cut < tick < healed + 3 for tick in twice)
        doubled.extend(twice)

    disque_sim.run(story, app, seeds=3, nodes=2, workers=2)

    assert doubled


@pytest.mark.slow
def test_without_a_majority_ticks_wait_for_the_end_of_the_cut(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        await cut_in_the_middle(cluster, 2)
        assert max(Counter(RUNS).values()) == 1

    disque_sim.run(story, app, seeds=3, nodes=2, workers=2)


def test_a_change_after_a_cut_counts_and_the_later_of_two_changes_wins(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        await app.schedules.add("notes", note.using(sync=1), every=10)
        with cluster.partition(["n1", "story"], ["n2"]):
            await cluster.sleep(20)
            await app.schedules.add("notes", note.using(sync=1), every=20)
        with cluster.partition(["n2", "story"], ["n1"]):
            await cluster.sleep(20)
            await app.schedules.add("notes", note.using(sync=1), every=30)
        await cluster.sleep(30)
        assert [each.every for each in await app.schedules.list()] == [30]
        assert await app.schedules.remove("notes")
        await cluster.sleep(30)
        assert await app.schedules.list() == []

    disque_sim.run(story, app, seeds=3, nodes=2, workers=1)
