"""Jobs and the workers that wait for them, at different nodes of a cluster."""

import time

import pytest

from tests.cluster.processes import CALM, START_S, Cluster, Fleet, becomes
from tests.cluster.talk import Client, Delivery, as_items, connection, deliveries

SOON_S = 5.0
"""The guarantee is a second, on an idle machine."""
WAITED_S = 5.0
"""A node that asks as original nodes do would ask next seven seconds later."""


@pytest.fixture(scope="module")
def three(shared_fleet: Fleet) -> Cluster:
    return shared_fleet.cluster(3, *CALM)


def wait_for(client: Client, queue: str) -> None:
    client.send("GETJOB", "FROM", queue)


def comes(client: Client) -> tuple[Delivery, float]:
    """The job that a worker waits for, and how many seconds it took."""
    began = time.monotonic()
    (job,) = deliveries(as_items(client.receive()))
    return job, time.monotonic() - began


def lengths(cluster: Cluster, queue: str) -> list[int]:
    return [server.client.number("QLEN", queue) for server in cluster.servers]


def test_a_job_stays_where_it_was_added_once_the_worker_elsewhere_has_gone(three: Cluster) -> None:
    at_a, at_b = three[0].client, three[1].client
    with connection(three[1].port) as worker:
        wait_for(worker, "stays")
        becomes(lambda: at_b.info("clients")["blocked_clients"], "1", START_S, "workers that wait")
        first = at_a.add("stays", "first", "REPLICATE", 1)
        job, took = comes(worker)
        assert (job.id, took < SOON_S) == (first, True), took
        assert worker.number("ACKJOB", job.id) == 1

    second = at_a.add("stays", "second", "REPLICATE", 1)
    time.sleep(0.5)
    assert lengths(three, "stays") == [1, 0, 0]

    with connection(three[0].port) as worker:
        wait_for(worker, "stays")
        job, took = comes(worker)
        assert (job.id, took < SOON_S) == (second, True), took


def test_a_job_that_is_nacked_comes_to_a_worker_at_another_node(three: Cluster) -> None:
    with connection(three[0].port) as waiting, connection(three[1].port) as giving_up:
        mine = three[1].client.add("nacked", "body", "REPLICATE", 1)
        (job,) = giving_up.get("nacked", timeout=60_000)
        assert job.id == mine
        wait_for(waiting, "nacked")
        time.sleep(WAITED_S)

        giving_up.call("NACK", job.id)

        again, took = comes(waiting)
        assert (again.id, took < SOON_S) == (job.id, True), took
        assert waiting.number("ACKJOB", again.id) == 1
