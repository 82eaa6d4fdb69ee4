"""Nothing is lost, whoever is killed. `make spark` does it at full length and tells the figures."""

import contextlib
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.processes import Cluster, Fleet, eventually
from tests.pipeline.connector.desk import drain, unfinished
from tests.pipeline.connector.killing.harness import (
    Producer,
    Queries,
    rows_committed,
    rows_in_files,
)
from tests.pipeline.connector.killing.query import MASTER, ROWS_PER_SECOND

RETRY_S = 30  # of both queues: each job that waits costs the nodes messages at this interval
HOLD_S = 20
KILLS = int(os.environ.get("KILLS", "6"))
VICTIMS = ("driver", "executor", "JVM", "executor") if "cluster" in MASTER else ("driver", "JVM")
SEED = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 32))
"""When whom is killed, as far as a test decides it. It is told, so that it can be given again."""


@pytest.fixture
def trio(fleet: Fleet) -> Cluster:
    """Three nodes of one's own, which do not give each other up when the machine is busy."""
    return fleet.cluster(3, "--cluster-node-timeout", "5000")


@pytest.fixture
def queries(trio: Cluster, tmp_path: Path) -> Iterator[Any]:
    """Makes queries of some kinds, and ends them."""
    made: list[Queries] = []

    def make(*kinds: str) -> Queries:
        made.append(Queries(kinds, tmp_path / "spark", trio))
        return made[-1]

    try:
        yield make
    finally:
        for each in made:
            each.close()


@pytest.fixture
def producer(trio: Cluster) -> Iterator[Producer]:
    """Adds jobs all the time once it is started."""
    tell(f"SEED={SEED} repeats what is random here")
    source = Producer(trio, jobs_per_second=ROWS_PER_SECOND, retry_s=RETRY_S, seed=SEED)
    try:
        yield source
    finally:
        source.stop()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_goes_through_spark_survives_its_driver(
    session: Any, queries: Any, producer: Producer, trio: Cluster
) -> None:
    query = queries("through")
    producer.jobs_per_second = 50  # enough for a test, and gone through soon
    producer.retry_s = 5
    producer.start()

    query.start()
    query.wait_for_batches(1)
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
def test_source_and_sink_lose_nothing_however_often_they_are_killed(
    queries: Any, producer: Producer, trio: Cluster
) -> None:
    rng = random.Random(SEED)
    both = queries("source", "sink")
    producer.start()
    began = time.monotonic()

    for number in range(KILLS):
        if not both.is_running():
            both.start()
        both.wait_for_batches(1)
        # When it is killed is what is tried: some seconds from now, as jobs come.
        producer.wait_for_more(rng.randrange(6 * ROWS_PER_SECOND))
        if number == KILLS // 3:
            trio[2].kill()  # for good
            both.wait_for_batches(1)
        both.kill(VICTIMS[number % len(VICTIMS)])
    producer.stop()

    def all_are_in_files() -> bool:  # what was taken and never logged is queued after its RETRY
        both.finish()
        return producer.jobs.keys() <= rows_in_files(both.folder).keys()

    with contextlib.suppress(AssertionError):  # told below
        eventually(all_are_in_files, 6 * RETRY_S, "all jobs are in files")
    tell(f"{time.monotonic() - began:.0f} s, kills {both.kills}, and a node")

    rows = rows_in_files(both.folder)
    lost = set(producer.jobs) - set(rows)
    tell(
        f"source: {len(producer.jobs)} jobs in {both.batches('source')} batches; lost {len(lost)}, "
        f"duplicates {sum(rows.values()) - len(rows)}, "
        f"jobs that were added without an answer {len(set(rows) - set(producer.jobs))}"
    )
    assert not lost

    count = rows_committed(both.folder)
    arrived: Counter[int] = Counter()

    def nothing_is_left() -> bool:
        """What nobody committed comes when its hold is over, and what only a copy is left of when
        its RETRY is, too."""
        arrived.update(int(job.body) for job in drain(trio, "out", 0))
        return not unfinished(trio, "out")

    with contextlib.suppress(AssertionError):  # told below
        eventually(nothing_is_left, HOLD_S + 4 * RETRY_S, "all rows have come")
    lost_rows = set(range(count)) - set(arrived)
    tell(
        f"sink: {count} rows in {both.batches('sink')} batches; lost {len(lost_rows)}, "
        f"duplicates {sum(arrived.values()) - len(arrived)} of "
        f"{sum(1 for n in arrived.values() if n > 1)} rows, "
        f"of batches that never were committed {len(set(arrived) - set(range(count)))}"
    )
    assert not lost_rows


def tell(text: str) -> None:
    sys.stdout.write(f"\n{text}\n")
