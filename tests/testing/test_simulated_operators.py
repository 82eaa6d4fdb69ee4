"""In a story, operators may do what they do in a cluster, and the nodes are judged rightly."""

from disque_trio.testing.simulated.cluster import Cluster
from disque_trio.testing.simulated.kit import Sim
from disque_trio.worker import App, Dead

app = App[None]()
RUNS: list[int] = []


@app.task(name="dies", queue="w", lease=30)
async def dies() -> None:
    RUNS.append(1)
    if len(RUNS) == 1:
        raise Dead("no such page")


def test_an_operator_lists_dead_jobs_and_redrives_one_by_its_id(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        job = await dies.enqueue()
        await cluster.until(cluster.dead)
        await cluster.sleep(1)
        found = await app.admin.jobs.dead("w")
        assert [copy.job.id for copy in found.items] == [job.id]
        assert [each.name for each in (await app.admin.queues.all()).items] == ["w"]
        cluster.command("n1", "INFO")
        assert (await app.admin.jobs.redrive(job.id)).count == 1
        await cluster.drained()
        assert len(RUNS) == 2

    disque_sim.run(story, app, state=RUNS, seeds=3, workers=1)
