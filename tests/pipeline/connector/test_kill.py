"""Nothing is lost, whoever is killed. `make spark` does it at full length and tells the figures."""

import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.processes import Cluster, Fleet, eventually
from tests.pipeline.connector.desk import drain
from tests.pipeline.connector.killing.harness import (
    Producer,
    Query,
    rows_committed,
    rows_in_files,
)

RETRY_S = 6
HOLD_S = 20


@pytest.fixture
def trio(fleet: Fleet) -> Cluster:
    """Three nodes of one's own, which do not give each other up when the machine is busy."""
    return fleet.cluster(3, "--cluster-node-timeout", "5000")


@pytest.fixture
def queries(trio: Cluster, tmp_path: Path) -> Iterator[Any]:
    """Makes queries of a kind, and ends them."""
    made: list[Query] = []

    def make(kind: str) -> Query:
        made.append(Query(kind, tmp_path / kind, trio))
        return made[-1]

    try:
        yield make
    finally:
        for query in made:
            query.close()


@pytest.fixture
def producer(trio: Cluster) -> Iterator[Producer]:
    """Adds 500 jobs a second once it is started."""
    source = Producer(trio, jobs_per_second=500, retry_s=RETRY_S)
    try:
        yield source
    finally:
        source.stop()


def kill_again_and_again(query: Query, cluster: Cluster, kills: int, node_dies_at: int) -> None:
    """At random times after the query has done something; one node dies for good in between."""
    for number in range(kills):
        query.start()
        query.wait_for_batches(1)
        time.sleep(random.uniform(0.0, 6.0))  # when is what is tried
        if number == node_dies_at:
            cluster[2].kill()
            query.wait_for_batches(1)
        query.kill(("driver", "JVM")[number % 2])


@pytest.mark.timeout(900)
def test_what_goes_through_spark_survives_its_driver(
    session: Any, queries: Any, producer: Producer, trio: Cluster
) -> None:
    query = queries("through")
    producer.start()

    query.start()
    query.wait_for_batches(2)
    query.kill("driver")
    producer.stop()
    arrived: Counter[int] = Counter()

    def all_have_arrived() -> bool:  # what was taken and never logged comes after its RETRY
        query.finish_in(session)
        arrived.update(int(job.body) for job in drain(trio, "out", 0))
        return arrived.keys() >= set(producer.jobs.values())

    eventually(all_have_arrived, 300, "all jobs have come through")


@pytest.mark.spark
@pytest.mark.timeout(3600)
def test_the_source_loses_nothing_in_six_kills(
    queries: Any, producer: Producer, trio: Cluster
) -> None:
    query = queries("source")
    producer.start()
    began = time.monotonic()

    kill_again_and_again(query, trio, kills=6, node_dies_at=2)
    producer.stop()
    seconds = time.monotonic() - began
    time.sleep(RETRY_S + 2)  # until all that was taken and never logged is queued again
    query.finish()

    rows = rows_in_files(query.folder)
    lost = set(producer.jobs) - set(rows)
    twice = sum(rows.values()) - len(rows)
    unconfirmed = len(set(rows) - set(producer.jobs))
    sys.stdout.write(
        f"\nsource: {len(producer.jobs)} jobs in {seconds:.0f} s, kills {query.kills}, a node too; "
        f"{query.batches()} batches; lost {len(lost)}, duplicates {twice}, "
        f"jobs that were added without an answer {unconfirmed}\n"
    )
    assert not lost
    assert len(query.kills) >= 6


@pytest.mark.spark
@pytest.mark.timeout(3600)
def test_the_sink_loses_nothing_in_six_kills(queries: Any, trio: Cluster) -> None:
    query = queries("sink")
    began = time.monotonic()

    kill_again_and_again(query, trio, kills=6, node_dies_at=2)
    query.finish()
    seconds = time.monotonic() - began

    rows = rows_committed(query.folder)
    time.sleep(HOLD_S + 7)  # what nobody committed comes to light, and what only a copy is left of
    arrived = Counter(int(job.body) for job in drain(trio, "out", rows, 300))
    lost = set(range(rows)) - set(arrived)
    twice = sum(arrived.values()) - len(arrived)
    sys.stdout.write(
        f"\nsink: {rows} rows in {seconds:.0f} s, kills {query.kills}, a node too; "
        f"{query.batches()} batches; lost {len(lost)}, duplicates {twice} of "
        f"{sum(1 for n in arrived.values() if n > 1)} rows, "
        f"rows of batches that never were committed {len(set(arrived) - set(range(rows)))}\n"
    )
    assert not lost
    assert len(query.kills) >= 6
