"""20,000 rows into a queue, ten kills: none is lost, none is added twice. `make spark` runs it."""

import os
import random
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cluster.processes import Cluster, Fleet, Server, eventually
from tests.cluster.talk import Client, ClosedError, RefusedError
from tests.pipeline.connector.desk import unfinished
from tests.pipeline.connector.killing.harness import Queries

ROWS = 20_000
FILES = 80
KILLS = int(os.environ.get("KILLS", "10"))
SEED = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 32))
"""When whom is killed, as far as the test decides it."""
VICTIMS = ("driver", "worker", "JVM", "a node stands still", "worker", "driver", "a node")
"""With one copy, whoever kills a node loses jobs: there it only stands still."""
STILL_S = 12
"""Longer than the query waits for an answer."""
pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]


class Worker:
    """Takes jobs of the queue `out` at all nodes, and acknowledges them."""

    def __init__(self, cluster: Cluster) -> None:
        self.jobs: defaultdict[int, set[bytes]] = defaultdict(set)
        """The ids under which each row has come."""
        self._cluster = cluster
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="worker")
        self._thread.start()

    def _work(self) -> None:
        while not self._is_over.is_set():
            for server in self._cluster.servers:
                try:
                    client = Client(server.port, patience_s=5.0)
                except OSError:
                    continue
                try:
                    while got := client.get("out", count=500):
                        for job in got:
                            self.jobs[int(job.body)].add(job.id)
                        client.call("ACKJOB", *(job.id for job in got))
                except (OSError, ClosedError, RefusedError):
                    pass
                finally:
                    client.close()
            self._is_over.wait(0.2)

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()


@pytest.fixture
def trio(fleet: Fleet) -> Cluster:
    return fleet.cluster(3, "--cluster-node-timeout", "5000")


@pytest.fixture
def worker(trio: Cluster) -> Iterator[Worker]:
    made = Worker(trio)
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def queries(trio: Cluster, tmp_path: Path) -> Iterator[Queries]:
    made = Queries(("rows",), tmp_path / "spark", trio)
    # A process of Spark that is killed may be missed later.
    made.excuses += ("Python worker exited", "run the batch again", "Writing job failed")
    files = tmp_path / "spark" / "in"
    files.mkdir(parents=True)
    for number in range(FILES):
        part = range(number, ROWS, FILES)
        pq.write_table(pa.table({"body": [str(row) for row in part]}), files / f"{number}.parquet")
    try:
        yield made
    finally:
        made.close()


def harm_node(server: Server, what: str) -> None:
    """Let it stand still for a while, or kill it and start it again."""
    if what == "a node":
        server.kill()
        server.start().wait()
        return
    server.freeze()
    time.sleep(STILL_S)  # that nothing answers meanwhile is what is tried
    server.thaw()


@pytest.mark.parametrize("replicas", [1, 2])
def test_rows_are_added_once_whoever_is_killed(
    queries: Queries, worker: Worker, trio: Cluster, replicas: int
) -> None:
    queries.replicas = replicas
    victims = VICTIMS if replicas > 1 else VICTIMS[:-1]
    rng = random.Random(SEED)
    began = time.monotonic()
    for number in range(KILLS):
        if not queries.is_running():
            queries.start()
        queries.wait_for_batches(1)
        time.sleep(rng.random() * 2)  # when it is killed is what is tried
        victim = victims[number % len(victims)]
        if "node" in victim:
            queries.kills.append(victim)
            harm_node(trio[2], victim)
        else:
            queries.kill(victim)
    queries.close()
    queries.finish()
    eventually(lambda: not unfinished(trio, "out"), 120, "every job has come")

    lost = set(range(ROWS)) - worker.jobs.keys()
    twice = [row for row, jobs in worker.jobs.items() if len(jobs) > 1]
    sys.stdout.write(
        f"\nREPLICATE {replicas}: {ROWS} rows in {queries.batches('rows')} batches, "
        f"{time.monotonic() - began:.0f} s, SEED={SEED}, kills {queries.kills}: "
        f"lost {len(lost)}, added twice {len(twice)}\n"
    )
    assert not lost
    assert not twice
