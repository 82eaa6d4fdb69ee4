"""Ticks of three workers on three nodes."""

import json
from datetime import datetime, timedelta

import anyio

from disque_trio.client.client import Client
from disque_trio.worker.app import App
from tests.cluster.processes import CALM, Fleet, Server
from tests.cluster.test_python_clients import url


def app_at(server: Server) -> App[None]:
    app = App(url(server))

    @app.cron(every=1, missed="all", within=300, backfill=True)
    @app.task(name="tick", queue="ticks")
    async def tick(*, scheduled: datetime) -> None: ...

    return app


async def scheduled(client: Client) -> list[datetime]:
    """The ticks that have jobs in the cluster, of which each node has all, in order."""
    jobs = (await client.jscan(count=10_000, queue="ticks")).items
    bodies = [json.loads(job.body or b"") for job in jobs]
    return sorted(datetime.fromisoformat(body["kwargs"]["scheduled"]) for body in bodies)


def test_each_tick_has_one_job_also_when_a_worker_dies(fleet: Fleet) -> None:
    cluster = fleet.cluster(3, *CALM)

    async def work(server: Server, until: anyio.Event) -> None:
        async with app_at(server).handler():
            await until.wait()

    found: list[datetime] = []

    async def story() -> None:
        dies, ends = anyio.Event(), anyio.Event()
        async with Client(url(cluster.servers[0])) as client, anyio.create_task_group() as workers:
            for server, until in zip(cluster.servers, (dies, ends, ends), strict=True):
                workers.start_soon(work, server, until)
            for event, count in ((dies, 8), (ends, 16)):
                while len(found) < count:
                    await anyio.sleep(0.1)
                    found[:] = await scheduled(client)
                event.set()

    async def told() -> None:
        with anyio.fail_after(300):
            await story()

    anyio.run(told, backend="trio")
    # Those of five minutes before the start come at once, so the worker ends in the midst of them.
    assert len(set(found)) == len(found)
    assert found[-8:] == [found[-8] + timedelta(seconds=n) for n in range(8)]
