"""Lists of jobs of a cluster."""

from disque_trio.client import commands
from disque_trio.client.client import Client
from disque_trio.testing.server.kit import Server
from disque_trio.worker.operating.jobs import Jobs
from disque_trio.worker.operating.states import JobStatus


async def test_of_jobs_that_are_added_at_once_the_last_is_listed_first(
    disque_server: Server,
) -> None:
    async with Client(disque_server.url) as client:
        await client.run(commands.ping())
        [node] = client.nodes.order(0)
        ids = await client.ask(node, [commands.addjob("at-once", "x") for _ in range(50)])

        found = await Jobs(client).listed("at-once")

    assert [job.id for job in found.items] == ids[::-1]


def test_an_unknown_job_is_over_if_every_node_was_asked() -> None:
    assert JobStatus(id="D-1", state="unknown").is_over
    assert not JobStatus(id="D-1", state="unknown", unreached={"n1": "no answer"}).is_over
