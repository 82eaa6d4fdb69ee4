import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.functions import window

from disque_trio.pipeline.connector.columns import SCHEMA
from disque_trio.pipeline.connector.source import DisqueSource
from disque_trio.pipeline.errors import PipelineError
from tests.cluster.processes import SOON_S, Cluster, becomes, eventually
from tests.cluster.talk import as_items, as_text
from tests.pipeline.connector.desk import given, lengths

Rows = list[Any]


def add(cluster: Cluster, queue: str, bodies: list[str], *terms: str | int) -> list[str]:
    servers = cluster.servers
    return [
        servers[at % len(servers)].client.add(queue, body, *terms).decode()
        for at, body in enumerate(bodies)
    ]


def stream(session: Any, cluster: Cluster, queue: str, **more: object) -> Any:
    options = given(cluster, queue=queue, **more)
    return session.readStream.format("disque").options(**options).load()


def all_to(path: Path, frame: Any, **trigger: Any) -> Any:
    """A query that writes files."""
    writer = frame.writeStream.format("parquet").option("path", str(path / "out"))
    return (
        writer.option("checkpointLocation", str(path / "checkpoint"))
        .trigger(**(trigger or {"availableNow": True}))
        .start()
    )


def written(session: Any, path: Path) -> Rows:
    return list(session.read.parquet(str(path / "out")).collect())


def test_a_queue_is_drained_once(session: Any, cluster: Cluster, tmp_path: Path) -> None:
    jobs = add(cluster, "drained", [f"body {n}" for n in range(250)], "REPLICATE", 2)

    query = all_to(tmp_path, stream(session, cluster, "drained", maxJobsPerTrigger=100))
    query.awaitTermination()

    rows = written(session, tmp_path)
    assert sorted(row.job_id for row in rows) == sorted(jobs)
    assert {bytes(row.body).decode() for row in rows} == {f"body {n}" for n in range(250)}
    assert {(row.queue, row.nacks, row.additional_deliveries) for row in rows} == {
        ("drained", 0, 0)
    }
    sizes = [progress["numInputRows"] for progress in query.recentProgress]
    assert max(sizes) <= 100
    assert "backlog" in query.recentProgress[0]["sources"][0]["latestOffset"]
    becomes(
        lambda: [len(cluster.holders(job.encode())) for job in jobs], [0] * 250, SOON_S, "acked"
    )


@pytest.mark.slow
def test_a_stream_has_the_event_times_that_a_table_has(
    session: Any, cluster: Cluster, tmp_path: Path
) -> None:
    jobs = add(cluster, "timed", [str(n) for n in range(30)], "REPLICATE", 2)
    table = session.read.format("disque").options(**given(cluster, queue="timed")).load()
    created = {row.job_id: row.created for row in table.collect()}
    frame = stream(session, cluster, "timed").withWatermark("created", "10 minutes")

    all_to(tmp_path, frame.dropDuplicatesWithinWatermark(["job_id"])).awaitTermination()

    assert {row.job_id: row.created for row in written(session, tmp_path)} == created
    assert created.keys() == set(jobs)
    assert all(isinstance(each, datetime) for each in created.values())


@pytest.mark.slow
def test_windows_of_event_time_count_jobs(session: Any, cluster: Cluster, tmp_path: Path) -> None:
    add(cluster, "windows", [str(n) for n in range(30)])
    frame = stream(session, cluster, "windows").withWatermark("created", "10 minutes")
    writer = frame.groupBy(window("created", "1 day")).count().writeStream.outputMode("update")
    writer = writer.format("memory").queryName("windows").trigger(availableNow=True)

    writer.option("checkpointLocation", str(tmp_path)).start().awaitTermination()

    rows = session.table("windows").collect()
    assert sum(row["count"] for row in rows) == 30
    assert all(row["window"].start <= datetime.now() for row in rows)


@pytest.mark.slow
def test_a_batch_that_runs_again_has_the_same_event_times(
    session: Any, cluster: Cluster, tmp_path: Path
) -> None:
    add(cluster, "times again", ["a"])
    seen: list[Any] = []

    def once_bitten(frame: Any, _: int) -> None:
        seen.extend(row.created for row in frame.collect())
        if len(seen) == 1:
            raise ValueError("the first time")

    def attempt() -> None:
        writer = stream(session, cluster, "times again").writeStream.foreachBatch(once_bitten)
        writer = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
        writer.start().awaitTermination()

    with pytest.raises(PySparkException, match="the first time"):
        attempt()
    attempt()

    assert len(seen) == 2
    assert seen[0] == seen[1] is not None


def test_a_checkpoint_of_another_queue_is_refused(
    session: Any, cluster: Cluster, tmp_path: Path
) -> None:
    add(cluster, "b", ["a"])
    all_to(tmp_path, stream(session, cluster, "b")).awaitTermination()

    query = all_to(tmp_path, stream(session, cluster, "b2"))
    with pytest.raises(PySparkException, match="is of a stream of the queue b, not b2"):
        query.awaitTermination()


def test_a_batch_that_failed_comes_again_whole(
    session: Any, cluster: Cluster, tmp_path: Path
) -> None:
    jobs = add(cluster, "failing", [str(n) for n in range(40)], "RETRY", 2)
    seen: list[list[str]] = []

    def once_bitten(frame: Any, _: int) -> None:
        seen.append(sorted(row.job_id for row in frame.collect()))
        if len(seen) == 1:
            raise ValueError("the first time")

    def attempt() -> None:
        writer = stream(session, cluster, "failing").writeStream.foreachBatch(once_bitten)
        writer = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
        writer.start().awaitTermination()

    with pytest.raises(PySparkException, match="the first time") as error:
        attempt()
    assert len(str(error.value)) < 5_000
    attempt()

    assert seen[0] == seen[1]
    assert sorted(job for batch in seen[1:] for job in batch) == sorted(jobs)


def test_a_query_runs_on_as_jobs_come(session: Any, cluster: Cluster, tmp_path: Path) -> None:
    writer = stream(session, cluster, "running").writeStream.format("memory").queryName("running")
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    try:
        jobs = add(cluster, "running", ["one", "two"])
        becomes(lambda: sorted(row.job_id for row in seen(session)), sorted(jobs), 60, "both came")
        # Nothing has come since, and still they are acknowledged.
        eventually(lambda: not any(cluster.holders(job.encode()) for job in jobs), 60, "acked")
    finally:
        query.stop()


def seen(session: Any) -> Rows:
    return list(session.table("running").collect())


def test_a_table_has_a_row_for_each_copy(session: Any, cluster: Cluster) -> None:
    (job,) = add(cluster, "table", ["body"], "REPLICATE", 2, "RETRY", 60, "TTL", 600)

    rows = session.read.format("disque").options(**given(cluster, queue="table")).load().collect()

    assert len(rows) == 2
    assert {row.job_id for row in rows} == {job}
    assert {row.state for row in rows} == {"queued", "active"}
    assert {(row.retry, row.replicate, bytes(row.body)) for row in rows} == {(60, 2, b"body")}
    assert {row.priority for row in rows} == {0}
    assert all(0 < row.ttl <= 601 and len(row.holders) == 2 for row in rows)
    assert len({row.node for row in rows}) == 2
    assert lengths(cluster, "table") == 1


def test_filters_on_queue_and_state_go_to_the_nodes(session: Any, cluster: Cluster) -> None:
    add(cluster, "pushed", [str(n) for n in range(30)], "REPLICATE", 1)
    table = session.read.format("disque").options(**given(cluster)).load()

    with scans(cluster) as asked:
        rows = table.where("queue = 'pushed' and state in ('queued', 'acked')").collect()
    assert len(rows) == 30
    assert len(asked) == 3
    assert all(
        words[4:10] == [b"QUEUE", b"pushed", b"STATE", b"queued", b"STATE", b"acked"]
        for words in asked
    )

    contradiction = table.where("queue = 'pushed' and state = 'active' and state = 'acked'")
    assert contradiction.collect() == []


@contextmanager
def scans(cluster: Cluster) -> Iterator[list[list[bytes]]]:
    """The JSCANs that come meanwhile."""
    found: list[list[bytes]] = []
    for server in cluster.servers:
        server.client.call("CONFIG", "SET", "slowlog-log-slower-than", 0)
        server.client.call("SLOWLOG", "RESET")
    yield found
    for server in cluster.servers:
        entries = [as_items(as_items(entry)[3]) for entry in server.client.items("SLOWLOG", "GET")]
        words = [[as_text(word) for word in entry] for entry in entries]
        found += [entry for entry in words if entry[0] == b"JSCAN"]
        server.client.call("CONFIG", "SET", "slowlog-log-slower-than", 10_000)


def test_without_push_down_spark_filters(session: Any, cluster: Cluster) -> None:
    add(cluster, "plain", ["a", "b"], "REPLICATE", 1)
    session.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    try:
        table = session.read.format("disque").options(**given(cluster)).load()
        assert table.where("queue = 'plain' and state = 'queued'").count() == 2
    finally:
        session.conf.set("spark.sql.python.filterPushdown.enabled", "true")


def test_a_schema_may_leave_columns_out(session: Any, cluster: Cluster) -> None:
    add(cluster, "narrow", ["a"], "REPLICATE", 1)
    reader = session.read.format("disque").options(**given(cluster, queue="narrow"))

    assert [tuple(row) for row in reader.schema("body binary, queue string").load().collect()] == [
        (b"a", "narrow")
    ]
    for schema, said in [("size int", "no column size"), ("body string", "body is binary")]:
        with pytest.raises(PySparkException, match=said):
            reader.schema(schema).load().collect()


def test_a_stream_has_the_same_columns(session: Any, cluster: Cluster) -> None:
    assert stream(session, cluster, "any").schema == SCHEMA


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"queue": "q", "lease": "long"}, "option lease: 'long'"),
        ({}, "option queue is missing"),
        ({"queue": "q", "maxJobPerTrigger": "5"}, "did you mean maxJobsPerTrigger"),
    ],
)
def test_a_stream_that_cannot_be_says_why(given: dict[str, str], said: str) -> None:
    with pytest.raises(PipelineError, match=said):
        DisqueSource(given).streamReader(SCHEMA).initialOffset()


def test_a_cluster_out_of_reach_is_named(session: Any, cluster: Cluster, tmp_path: Path) -> None:
    frame = stream(session, cluster, "q", nodes="127.0.0.1:1")

    query = all_to(tmp_path, frame)
    with pytest.raises(PySparkException, match=r"no node answers .*Connection refused"):
        query.awaitTermination()


@pytest.mark.slow
def test_a_checkpoint_of_another_source_is_refused(
    session: Any, cluster: Cluster, tmp_path: Path
) -> None:
    rate = session.readStream.format("rate").option("rowsPerSecond", 10).load()
    query = all_to(tmp_path, rate, processingTime="0 seconds")
    eventually(lambda: query.lastProgress is not None, 60, "it has run")
    query.stop()

    query = all_to(tmp_path, stream(session, cluster, "other"))
    with pytest.raises(PySparkException, match="belong to another query"):
        query.awaitTermination()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"nods": "127.0.0.1:7711"}, "there is no option 'nods'; did you mean nodes?"),
        ({"maxJobsPerTrigger": "many"}, "option maxJobsPerTrigger: 'many'"),
        ({"state": "asleep"}, "option state: 'asleep'"),
        ({"retry": "5"}, "option retry is only for what writes jobs"),
        ({"state": "queued", "lease": "5"}, "option lease is only for a stream"),
    ],
)
def test_a_mistake_is_told_by_load(session: Any, given: dict[str, str], said: str) -> None:
    with pytest.raises(PySparkException, match=re.escape(said)):
        session.readStream.format("disque").options(**given).load()


def test_a_mistake_of_tables_alone_is_told_by_load(session: Any) -> None:
    with pytest.raises(PySparkException, match="option timeout: '-3'"):
        session.read.format("disque").option("timeout", "-3").load()
