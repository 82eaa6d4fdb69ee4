"""How fast: `make spark` tells jobs a second through source and sink."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.processes import Cluster, eventually
from tests.cluster.talk import connection
from tests.pipeline.connector.desk import given, lengths

JOBS = 60_000
BODY = b"x" * 200
pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]


def fill(cluster: Cluster, queue: str) -> None:
    """Jobs on all nodes, with a copy each."""
    for server in cluster.servers:
        with connection(server.port) as client:
            for start in range(0, JOBS // 3, 500):
                del start
                for _ in range(500):
                    client.send("ADDJOB", queue, BODY, 0, "REPLICATE", 1)
                for _ in range(500):
                    client.receive()


def tell(what: str, jobs: int, seconds: float) -> None:
    sys.stdout.write(f"\n{what}: {jobs / seconds:.0f} jobs/s ({jobs} in {seconds:.1f} s)\n")


def timed(action: Callable[[], Any]) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began


@pytest.mark.parametrize("batch", [1000, 5000])
def test_source(session: Any, cluster: Cluster, tmp_path: Path, batch: int) -> None:
    queue = f"speed {batch}"
    fill(cluster, queue)
    options = given(cluster, queue=queue, maxJobsPerTrigger=batch, jobsPerPartition=batch // 2)
    frame = session.readStream.format("disque").options(**options).load()
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path))

    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()

    done = query.recentProgress[1:]  # the first is cold
    rows = sum(progress["numInputRows"] for progress in done)
    seconds = sum(progress["durationMs"]["triggerExecution"] for progress in done) / 1000
    tell(f"source, batches of {batch}", rows, seconds)
    eventually(lambda: lengths(cluster, queue) == 0, 60, "all is taken")


@pytest.mark.parametrize("replicas", [1, 2])
def test_batch_sink(session: Any, cluster: Cluster, replicas: int) -> None:
    frame = session.range(0, JOBS // 3, 1, 2).selectExpr(f"repeat('x', {len(BODY)}) as body")
    options = given(cluster, queue=f"batch {replicas}", replicate=replicas)
    writer = frame.write.format("disque").mode("append").options(**options)
    writer.save()  # cold

    tell(f"batch sink, REPLICATE {replicas}", JOBS // 3, timed(writer.save))


@pytest.mark.parametrize("recognize", ["true", "false"])
def test_stream_sink(session: Any, cluster: Cluster, tmp_path: Path, recognize: str) -> None:
    files = str(tmp_path / "in")
    rows = session.range(0, JOBS // 3, 1, 8).selectExpr(f"repeat('x', {len(BODY)}) as body")
    rows.write.parquet(files)
    frame = session.readStream.schema("body string").option("maxFilesPerTrigger", 2).parquet(files)
    options = given(cluster, queue=f"stream {recognize}", replicate=2, recognize=recognize)
    writer = frame.writeStream.format("disque").options(**options)

    query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    running = query.start()
    running.awaitTermination()

    done = running.recentProgress[1:]
    count = sum(progress["numInputRows"] for progress in done)
    seconds = sum(progress["durationMs"]["triggerExecution"] for progress in done) / 1000
    tell(f"stream sink, REPLICATE 2, recognize {recognize}", count, seconds)
