"""Looks at flows and batches use up no limits of their queues."""

import pytest
import trio

from disque_trio.testing.simulated.cluster import Cluster
from disque_trio.testing.simulated.kit import Sim
from disque_trio.worker import App
from disque_trio.worker.options import LOOKS, Options

app = App("disque://127.0.0.1:1")
app.limit("slow", rate=(1, 20))
app.limit("single", concurrency=1)
RUNS: list[float] = []


@pytest.fixture(autouse=True)
def _anew() -> None:
    RUNS.clear()


@app.task(name="slow", queue="slow")
async def slow() -> None:
    RUNS.append(trio.current_time())


@app.task(name="single", queue="single")
async def single() -> None:
    await trio.sleep(0.1)


@app.task(name="then", queue="slow", result_ttl=600)
async def then() -> str:
    return "last"


def test_members_of_a_flow_have_the_whole_rate_of_their_queue(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        RUNS.clear()
        flow = app.flow()
        first = flow.add(slow.call())
        second = flow.add(slow.call(), after=[first])
        flow.add(slow.call(), after=[second])
        await (await flow.enqueue()).wait(20 * 4)
        assert RUNS[2] - RUNS[0] < 20 * 3

    disque_sim.run(story, app, seeds=2)


def test_members_of_a_batch_and_what_follows_have_it_too(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        batch = await app.batch([slow.call()] * 3, then.call())
        assert batch.then is not None
        assert await batch.then.result(20 * 5) == "last"

    disque_sim.run(story, app, seeds=2)


def test_no_coordinator_keeps_the_only_place_of_a_queue_while_it_waits(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        flow = app.flow()
        last = flow.add(single.call())
        for _ in range(4):
            last = flow.add(single.call(), after=[last])
        await (await flow.enqueue()).wait(5)

    disque_sim.run(story, app, seeds=2)


def test_a_simulated_cluster_is_not_drained_before_the_flow_is_over(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        RUNS.clear()
        flow = app.flow()
        flow.add(slow.call(), after=[flow.add(slow.call())])
        await flow.enqueue()
        await cluster.drained()
        assert len(RUNS) == 2

    disque_sim.run(story, app, seeds=1)


def test_a_worker_serves_the_queues_of_looks_at_its_queues() -> None:
    assert app.queues == [LOOKS + "single", LOOKS + "slow", "single", "slow"]
    assert Options(queue=LOOKS + "slow").queue == LOOKS + "slow"
