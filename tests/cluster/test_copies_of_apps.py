"""Jobs of an app that names no copies: three, of which the answer waits for two."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from disque_trio.worker import App
from disque_trio.worker.enqueued import Enqueued
from tests.cluster.processes import Cluster, Fleet, becomes
from tests.cluster.test_python_clients import url

PATIENCE_S = 180.0
AT_ONCE_S = 3.0
"""Less than any wait for a node that is gone; the rest is patience with a busy machine."""


@contextmanager
def app_of(cluster: Cluster) -> Iterator[tuple[App[None], Any]]:
    app = App(url(*cluster.servers))

    @app.task(name="t", queue="q")
    async def t() -> None:
        pass

    yield app, t
    app._enqueuer.blocking_client.close()


def copies(cluster: Cluster, job: str) -> int:
    return len(cluster.holders(job.encode()))


@pytest.mark.sample(3)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_there_are_as_many_as_the_cluster_can_hold(fleet: Fleet, size: int) -> None:
    cluster = fleet.cluster(size)
    with app_of(cluster) as (app, task):
        jobs = [task.blocking.enqueue().id]
        for each in app.blocking.enqueue_many([task.call(), task.call()]):
            assert isinstance(each, Enqueued)
            jobs.append(each.id)

        for job in jobs:
            becomes(partial(copies, cluster, job), size, PATIENCE_S, "all copies are there")


@pytest.mark.slow
def test_a_node_that_is_killed_delays_no_job(fleet: Fleet) -> None:
    cluster = fleet.cluster(3)
    with app_of(cluster) as (_, task):
        task.blocking.enqueue()
        cluster[2].kill()

        took, jobs = [], []
        for _ in range(20):
            began = time.monotonic()
            jobs.append(task.blocking.enqueue().id)
            took.append(time.monotonic() - began)

        assert max(took) < AT_ONCE_S
        assert {copies(cluster, job) for job in jobs} == {2}
        cluster[2].start().wait()
        for job in jobs:
            becomes(partial(copies, cluster, job), 3, PATIENCE_S, "the third copy followed")


def test_a_cluster_that_grows_gets_more_copies(fleet: Fleet) -> None:
    cluster = fleet.cluster(1)
    with app_of(cluster) as (_, task):
        assert copies(cluster, task.blocking.enqueue().id) == 1

        for _ in range(2):
            newcomer = fleet.server()
            cluster.servers.append(newcomer)
            cluster[0].client.call("CLUSTER", "MEET", "127.0.0.1", newcomer.port)
        cluster.wait()

        job = task.blocking.enqueue().id  # on the same connection
        becomes(partial(copies, cluster, job), 3, PATIENCE_S, "all copies are there")
