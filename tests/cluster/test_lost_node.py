"""The library right after a node was killed, before the others suspect it."""

from typing import Final

import anyio
import pytest

from disque_trio.worker import App, EnqueuedFlow, Task
from tests.cluster.processes import Cluster, Fleet

UNSUSPECTED: Final = "600000"
"""A node timeout that no test outlives."""
SUSPECTED_SOON: Final = "9000"
"""Longer than a node waits for the others when it is asked about a key."""


def app_of(cluster: Cluster) -> tuple[App[None], Task[[], None]]:
    nodes = ",".join(f"127.0.0.1:{each.port}" for each in cluster.servers)
    app = App[None](f"disque://{nodes}")

    @app.task(name="work", queue="q")
    async def work() -> None: ...

    return app, work


async def flow_of(app: App[None], work: Task[[], None]) -> EnqueuedFlow:
    flow = app.flow()
    flow.add(work.call(), after=[flow.add(work.call())])
    return await flow.enqueue()


def state_in_thread(app: App[None], flow: EnqueuedFlow) -> str:
    try:
        return flow.blocking.status().state
    finally:
        app.blocking.client.close()


async def copied(cluster: Cluster, jobs: int) -> None:
    """Wait until each node has so many jobs."""
    while any(each.client.registered_jobs() < jobs for each in cluster.servers):
        await anyio.sleep(0.05)


@pytest.mark.sample(3)
@pytest.mark.parametrize("killed", range(3))
def test_what_the_other_nodes_know_is_found_before_they_suspect_the_lost_one(
    fleet: Fleet, killed: int
) -> None:
    cluster = fleet.cluster(3, "--cluster-node-timeout", UNSUSPECTED)
    app, work = app_of(cluster)

    async def story() -> None:
        async with app:
            flow = await flow_of(app, work)
            await work.using(unique="mine").enqueue()
            await app.schedules.add("nightly", work, "0 3 * * *")
            await copied(cluster, 3)
            cluster[killed].kill()

            assert (await flow.status()).state == "running"
            assert await anyio.to_thread.run_sync(state_in_thread, app, flow) == "running"
            again = await app.find_flow(flow.id)
            assert again is not None
            with pytest.raises(TimeoutError):
                await again.wait(1)
            unique = await work.find("mine")
            assert unique is not None
            assert (await unique.status()).state != "unknown"

    anyio.run(story)


@pytest.mark.slow
@pytest.mark.parametrize("killed", range(3))
def test_flows_are_added_and_cancelled_as_soon_as_the_lost_node_is_suspected(
    fleet: Fleet, killed: int
) -> None:
    cluster = fleet.cluster(3, "--cluster-node-timeout", SUSPECTED_SOON)
    app, work = app_of(cluster)

    async def story() -> None:
        async with app:
            before = await flow_of(app, work)
            await app.schedules.add("nightly", work, "0 3 * * *")
            await copied(cluster, 2)
            cluster[killed].kill()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(before.cancel)
                tasks.start_soon(app.schedules.pause, "nightly")
                after = await flow_of(app, work)
            assert (await before.status()).state == "cancelled"
            assert (await after.status()).state == "running"

    anyio.run(story)
