"""A snoozed job keeps its id, whatever has become of its node."""

import pytest
import trio

from disque_trio.testing.simulated.cluster import Cluster
from disque_trio.testing.simulated.kit import Sim
from disque_trio.worker import App, Job, Snooze

SEEN: list[tuple[str, float]] = []
"""The runs: id and time."""
CLUSTERS: list[Cluster] = []
app = App[None]()


@app.task(name="first", queue="w", lease=30, replicate=3)
async def first() -> None: ...


@app.task(name="off", queue="w", lease=30, replicate=3, bind=True)
async def off(job: Job[None], _: None) -> None:
    [cluster] = CLUSTERS
    SEEN.append((job.id, cluster.time))
    if len(SEEN) == 1:
        cluster.crash(cluster.node_of("w1"))
        await trio.sleep(0.1)
        raise Snooze(5)


@pytest.mark.parametrize("of", ["job", "step"])
def test_it_keeps_its_id_also_if_its_node_crashes_while_it_runs(disque_sim: Sim, of: str) -> None:
    async def story(cluster: Cluster) -> None:
        CLUSTERS.append(cluster)
        await (off.call(None) if of == "job" else first.call() | off.partial()).enqueue()
        await cluster.until(lambda: len(SEEN) == 2, 60)
        await cluster.drained()
        (one, began), (other, again) = SEEN
        assert one == other
        assert 5 <= again - began < 7

    disque_sim.run(story, app, state=(SEEN, CLUSTERS), seeds=3, workers=1)
