"""Jobs and the workers that wait for them, at different nodes of a cluster.

How soon they meet is judged in the simulator (L9). Here the nodes' traces show that a job is
offered at once to a node that has not asked again.
"""

import time

import pytest

from disque_trio.sim.traces import files
from disque_trio.tracing.rows import Row
from tests.cluster.processes import (
    CALM,
    SOON_S,
    START_S,
    Cluster,
    Fleet,
    Server,
    becomes,
    eventually,
)
from tests.cluster.talk import Client, Delivery, as_items, connection, deliveries

TRACE = "trace.jsonl"


@pytest.fixture(scope="module")
def three(shared_fleet: Fleet) -> Cluster:
    return shared_fleet.cluster(3, *CALM, "--trace-file", TRACE)


def wait_for(client: Client, queue: str) -> None:
    client.send("GETJOB", "FROM", queue)


def comes(client: Client) -> Delivery:
    """The job that a worker waits for."""
    (job,) = deliveries(as_items(client.receive()))
    return job


def lengths(cluster: Cluster, queue: str) -> list[int]:
    return [server.client.number("QLEN", queue) for server in cluster.servers]


def rows_of(server: Server, queue: str) -> list[Row]:
    rows = files.read(str(server.directory / TRACE)).rows
    return [row for row in rows if row.queue == queue]


def messages(rows: list[Row]) -> list[tuple[str, str]]:
    return [(row.kind, row.cause) for row in rows if row.kind in {"send", "recv"}]


def test_a_job_stays_where_it_was_added_once_the_worker_elsewhere_has_gone(three: Cluster) -> None:
    at_a, at_b = three[0].client, three[1].client
    with connection(three[1].port) as worker:
        wait_for(worker, "stays")
        becomes(lambda: at_b.info("clients")["blocked_clients"], "1", START_S, "workers that wait")
        first = at_a.add("stays", "first", "REPLICATE", 1)
        job = comes(worker)
        assert job.id == first
        assert worker.number("ACKJOB", job.id) == 1

    second = at_a.add("stays", "second", "REPLICATE", 1)
    time.sleep(0.5)
    assert lengths(three, "stays") == [1, 0, 0]

    with connection(three[0].port) as worker:
        wait_for(worker, "stays")
        assert comes(worker).id == second
    moved = [row.job for row in rows_of(three[0], "stays") if row.kind == "give"]
    assert moved == [first.decode()]


def test_a_job_that_is_nacked_comes_to_a_worker_at_another_node(three: Cluster) -> None:
    with connection(three[0].port) as waiting, connection(three[1].port) as giving_up:
        mine = three[1].client.add("nacked", "body", "REPLICATE", 1)
        (job,) = giving_up.get("nacked", timeout=60_000)
        assert job.id == mine
        wait_for(waiting, "nacked")
        eventually(
            lambda: ("recv", "waiting") in messages(rows_of(three[1], "nacked")),
            SOON_S,
            "its node hears that a worker waits elsewhere",
        )
        before = messages(rows_of(three[0], "nacked"))

        giving_up.call("NACK", job.id)

        again = comes(waiting)
        assert again.id == job.id
        assert waiting.number("ACKJOB", again.id) == 1
    said = messages(rows_of(three[0], "nacked"))[len(before) :]
    assert said[:2] == [("recv", "havejobs"), ("send", "needjobs")]
    # In the batch in which the NACK came.
    at_b = rows_of(three[1], "nacked")
    nacked = next(row.time for row in at_b if (row.kind, row.cause) == ("queue", "nack"))
    assert next(row.time for row in at_b if row.cause == "havejobs") == nacked
