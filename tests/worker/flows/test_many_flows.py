"""More flows and batches than their worker has slots: looks at them leave slots to the members."""

from collections.abc import Awaitable, Callable

import pytest
import trio

from disque_trio.testing.simulated.cluster import Cluster
from disque_trio.testing.simulated.kit import Sim
from disque_trio.worker import App, BatchEnds

app = App("disque://127.0.0.1:7711")
RUN_S = 0.05


@app.task(name="step", queue="q")
async def step(number: int) -> int:
    await trio.sleep(RUN_S)
    return number


@app.task(name="then", queue="q")
async def then(ends: BatchEnds) -> int:
    return ends.size


async def add_flow() -> None:
    flow = app.flow()
    first = flow.add(step.call(0))
    parts = [flow.add(step.call(n), after=[first]) for n in (1, 2, 3)]
    flow.add(step.call(4), after=parts)
    await flow.enqueue()


async def add_batch() -> None:
    await app.batch([step.call(n) for n in range(4)], then=then.partial())


@pytest.mark.slow
@pytest.mark.parametrize("slots", [1, 4])
@pytest.mark.parametrize("add", [add_flow, add_batch])
def test_many_take_little_longer_than_their_members(
    disque_sim: Sim, add: Callable[[], Awaitable[None]], slots: int
) -> None:
    count, jobs = 20, 6

    async def story(cluster: Cluster) -> None:
        for _ in range(count):
            await add()
        await cluster.drained()
        assert cluster.time < 10 + 4 * count * jobs * RUN_S / slots

    disque_sim.run(story, app, workers=1, concurrency=slots, seeds=2)


def test_one_flow_is_over_soon_at_a_worker_with_one_slot(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        await add_flow()
        await cluster.drained()
        assert cluster.time < 5

    disque_sim.run(story, app, workers=1, concurrency=1, seeds=2)
