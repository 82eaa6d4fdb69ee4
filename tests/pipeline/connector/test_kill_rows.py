"""2,000 rows into a queue for each of ten kills: none is lost, none is added twice. `make spark`
runs it, with KILLS=20 for more."""

import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cluster.processes import Cluster, Fleet, Server, eventually
from tests.pipeline.connector.desk import unfinished
from tests.pipeline.connector.killing.harness import Queries, Worker

KILLS = int(os.environ.get("KILLS", "10"))
ROWS_PER_KILL = 2_000
FILES_PER_KILL = 8
ROWS = KILLS * ROWS_PER_KILL
SEED = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 32))
"""When whom is killed, as far as the test decides it."""
VICTIMS = ("driver", "worker", "JVM", "a node stands still", "worker", "driver", "a node")
"""With one copy, whoever kills a node loses jobs: there it only stands still."""
STILL_S = 12
"""Longer than the query waits for an answer."""
pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]


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
    (tmp_path / "spark" / "in").mkdir(parents=True)
    try:
        yield made
    finally:
        made.close()


def feed(folder: Path, number: int) -> None:
    """The rows of a kill, in files that the query may find at any time."""
    first = number * ROWS_PER_KILL
    for file in range(FILES_PER_KILL):
        rows = range(first + file, first + ROWS_PER_KILL, FILES_PER_KILL)
        name = f"{number}-{file}.parquet"
        pq.write_table(pa.table({"body": [str(row) for row in rows]}), folder / f".{name}")
        (folder / f".{name}").rename(folder / name)


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
        feed(queries.folder / "in", number)
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
    twice = worker.twice()
    sys.stdout.write(
        f"\nREPLICATE {replicas}: {ROWS} rows in {queries.batches('rows')} batches, "
        f"{time.monotonic() - began:.0f} s, SEED={SEED}, kills {queries.kills}: "
        f"lost {len(lost)}, added twice {len(twice)}\n"
    )
    assert not lost
    assert not twice
