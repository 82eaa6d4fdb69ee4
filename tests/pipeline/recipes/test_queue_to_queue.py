"""The stream from one queue to another: each job arrives once, though its driver is killed. With
KILLS=12 more often."""

import json
import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from examples.pipeline.queue_to_queue import start
from tests.cluster.processes import Cluster, Fleet, eventually
from tests.pipeline.connector.desk import names_of
from tests.pipeline.connector.killing.harness import START_S, Producer, Queries, Worker
from tests.pipeline.recipes import HOME

KILLS: Final = int(os.environ.get("KILLS", "1"))
SEED: Final = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 32))
RETRY_S: Final = 5
"""Less than Spark takes to start: the leases of a killed query have ended when the next begins."""


class Recipe(Queries):
    """The file as it is in the docs."""

    def given(self) -> tuple[str, str, str, str]:
        """Its arguments."""
        return ",".join(names_of(self.cluster)), "in", "out", str(self.folder / "checkpoint")

    def _words(self, _: str) -> tuple[str, ...]:
        return str(HOME / "queue_to_queue.py"), *self.given()

    def supervise(self) -> None:
        """Start it if it does not run: it ends when a node gives no answer in time, too."""
        if not self.is_running():
            self.close()
            self.start()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    fleet = Fleet(tmp_path / "servers")
    try:
        yield fleet.cluster(3, "--cluster-node-timeout", "5000")
    finally:
        fleet.close()


@pytest.fixture
def worker(cluster: Cluster) -> Iterator[Worker]:
    made = Worker(cluster, lambda body: int(json.loads(body)["body"]))
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def producer(cluster: Cluster) -> Iterator[Producer]:
    made = Producer(cluster, jobs_per_second=50, retry_s=RETRY_S, seed=SEED)
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def recipe(cluster: Cluster, tmp_path: Path) -> Iterator[Recipe]:
    made = Recipe((), tmp_path / "spark", cluster)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.slow
@pytest.mark.timeout(600 + 120 * KILLS)
def test_each_job_arrives_once_though_the_stream_is_killed(
    spark: Any, recipe: Recipe, producer: Producer, worker: Worker
) -> None:
    rng = random.Random(SEED)
    wanted = 0

    def have_arrived() -> bool:
        recipe.supervise()
        return len(worker.jobs) > wanted

    producer.start()
    for number in range(KILLS):
        wanted = len(worker.jobs)
        eventually(have_arrived, START_S, "a batch has arrived")
        time.sleep(rng.random() * 2)  # when it is killed is what is tried
        recipe.kill(("driver", "JVM")[number % 2])
    producer.stop()
    added = set(producer.jobs.values())
    query = start(spark, *recipe.given())
    try:
        eventually(lambda: worker.jobs.keys() >= added, START_S, "all jobs have arrived")
    finally:
        query.stop()

    sys.stdout.write(f"\n{len(added)} jobs, SEED={SEED}, kills {recipe.kills}\n")
    assert not worker.twice()
