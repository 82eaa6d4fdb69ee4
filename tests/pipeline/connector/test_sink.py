from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from disque_trio.pipeline.connector import options
from disque_trio.pipeline.connector.sink import BatchSink, sink_for
from disque_trio.pipeline.connector.source import DisqueSource
from disque_trio.pipeline.errors import PipelineError
from tests.cluster.processes import SOON_S, Cluster, eventually
from tests.pipeline.connector.desk import drain, given, lengths


def save(frame: Any, cluster: Cluster, mode: str = "append", **more: object) -> None:
    frame.write.format("disque").mode(mode).options(**given(cluster, **more)).save()


def test_rows_become_jobs(session: Any, cluster: Cluster) -> None:
    frame = session.range(0, 1000, 1, 2).selectExpr("concat('n ', id) as body")

    save(frame, cluster, queue="batch", retry=60)

    bodies = Counter(job.body for job in drain(cluster, "batch", 1000))
    assert bodies == Counter(b"n %d" % n for n in range(1000))


@pytest.mark.slow
def test_a_rows_own_columns_come_first(session: Any, cluster: Cluster) -> None:
    frame = session.createDataFrame(
        [
            ("own", b"\x00\xff", 5, None, 600, 1, -3, 4, 2),
            (None, b"b", None, 7, None, None, None, None, None),
        ],
        "queue string, body binary, retry int, delay bigint, ttl long, replicate short,"
        " priority byte, limit int, backoff long",
    )

    save(frame, cluster, queue="rest", retry=9, ttl=1000, replicate=2, priority=100)

    table = session.read.format("disque").options(**given(cluster)).load()
    jobs = {row.queue: row for row in table.where("queue in ('own', 'rest')").collect()}
    own, rest = jobs["own"], jobs["rest"]
    assert (bytes(own.body), own.retry, own.replicate) == (b"\x00\xff", 5, 1)
    assert 0 < own.ttl <= 600
    assert (rest.retry, rest.delay, rest.replicate) == (9, 7, 2)
    assert (own.priority, rest.priority) == (-3, 100)
    assert 600 < rest.ttl <= 1001


def test_a_job_that_failed_leaves_nothing(session: Any, cluster: Cluster) -> None:
    frame = session.range(0, 100, 1, 1).selectExpr(
        "case when id = 99 then raise_error('spoilt') else cast(id as string) end as body"
    )
    with pytest.raises(PySparkException, match="spoilt"):
        save(frame, cluster, queue="spoilt")

    scan = ("JSCAN", "BUSYLOOP", "QUEUE", "spoilt")
    eventually(
        lambda: not any(server.client.items(*scan)[1] for server in cluster.servers),
        SOON_S,
        "no node has a copy",
    )


def test_a_row_that_cannot_be_a_job_fails_the_batch(session: Any, cluster: Cluster) -> None:
    frame = session.createDataFrame([("a", 5), ("b", -1)], "body string, delay int").coalesce(1)

    with pytest.raises(PySparkException, match=r"row 2 of its task .* its delay is -1"):
        save(frame, cluster, queue="wrong")

    assert lengths(cluster, "wrong") == 0


@pytest.mark.parametrize(
    ("columns", "given", "said"),
    [
        ("body string, size int", {"queue": "q"}, "does not know the column size"),
        ("body int", {"queue": "q"}, "column body is int, and must be string or binary"),
        ("queue string", {"queue": "q"}, "the column body is missing; there is queue"),
        ("body string", {}, "the queue is missing"),
        ("body string", {"queue": "q", "hold": "-1"}, "option hold: '-1'"),
        ("body string", {"queue": "q", "holt": "1"}, "did you mean hold"),
    ],
)
def test_what_cannot_be_written_says_why(
    session: Any, columns: str, given: dict[str, str], said: str
) -> None:
    schema = StructType.fromDDL(columns)

    for make in (DisqueSource(given).writer, DisqueSource(given).streamWriter):
        with pytest.raises(PipelineError, match=said):
            make(schema, False)


def test_a_queue_is_not_overwritten(session: Any, cluster: Cluster) -> None:
    with pytest.raises(PySparkException, match="a queue cannot be overwritten"):
        save(session.sql("select 'a' as body"), cluster, "overwrite", queue="q")


@pytest.mark.slow
def test_without_a_hold_jobs_are_seen_at_once(session: Any, cluster: Cluster) -> None:
    save(session.sql("select 'now' as body"), cluster, queue="at once", hold=0)

    table = session.read.format("disque").options(**given(cluster, queue="at once")).load()
    assert {row.delay for row in table.collect()} == {0}


def test_a_stream_of_files_becomes_jobs(session: Any, cluster: Cluster, tmp_path: Path) -> None:
    source = str(tmp_path / "in")
    for first in (0, 100):
        session.range(first, first + 100).selectExpr("cast(id as string) as body").write.mode(
            "append"
        ).parquet(source)
    frame = session.readStream.schema("body string").option("maxFilesPerTrigger", 1).parquet(source)
    writer = frame.writeStream.format("disque").options(**given(cluster, queue="filled"))

    query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    query.start().awaitTermination()

    assert Counter(int(job.body) for job in drain(cluster, "filled", 200)) == Counter(range(200))


@pytest.mark.sample(2)
@pytest.mark.parametrize("recognize", ["keys", "notes"])
def test_a_streams_batch_that_runs_again_adds_nothing(
    session: Any, cluster: Cluster, tmp_path: Path, recognize: str
) -> None:
    """As after a crash between the commit of the sink and Spark's, though workers were fast."""
    source = str(tmp_path / "in")
    session.range(0, 30, 1, 2).selectExpr("cast(id as string) as body").write.parquet(source)

    def run(recognize: str) -> None:
        frame = session.readStream.schema("body string").parquet(source)
        writer = frame.writeStream.format("disque").options(
            **given(cluster, queue=f"again {recognize}", recognize=recognize)
        )
        writer = writer.option("checkpointLocation", str(tmp_path / "c"))
        writer.trigger(availableNow=True).start().awaitTermination()

    def forget_commit() -> None:
        for path in (tmp_path / "c" / "commits").glob("*0*"):
            path.unlink()

    run(recognize)
    assert len(drain(cluster, f"again {recognize}", 30)) == 30
    forget_commit()
    run(recognize)
    assert lengths(cluster, f"again {recognize}") == 0
    if recognize == "keys":
        forget_commit()
        run("none")
        assert len(drain(cluster, "again none", 30)) == 30


def test_a_write_with_a_name_adds_its_rows_once(session: Any, cluster: Cluster) -> None:
    """What `foreachBatch` repeats, for instance."""
    frame = session.range(0, 40, 1, 2).selectExpr("'same' as body")

    for _ in range(2):
        save(frame, cluster, queue="named", writeId="batch 7", hold=60)
    save(frame, cluster, queue="named", writeId="batch 8", recognize="content")

    assert len(drain(cluster, "named", 41)) == 41


def test_two_queries_that_give_their_writes_the_same_names_add_all_their_rows(
    session: Any, cluster: Cluster, tmp_path: Path
) -> None:
    """As one that is run with a new checkpoint, or copied."""
    source = str(tmp_path / "in")
    session.range(0, 5, 1, 1).selectExpr("cast(id as string) as body").write.parquet(source)

    def add(frame: Any, number: int) -> None:
        save(frame, cluster, queue="copied", writeId=f"counts-{number}", recognize="content")

    for checkpoint in ("first", "second"):
        writer = session.readStream.schema("body string").parquet(source).writeStream
        writer = writer.option("checkpointLocation", str(tmp_path / checkpoint))
        writer.foreachBatch(add).trigger(availableNow=True).start().awaitTermination()

    assert len(drain(cluster, "copied", 10)) == 10


def test_rows_that_are_recognized_are_counted_and_logged(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    everything = given(cluster, queue="recognized", writeId="w")
    schema = StructType.fromDDL("body string")
    batch = pa.record_batch({"body": ["a", "b", "c"]})

    def write() -> None:
        link, sink = options.link(everything), options.sink(everything)
        done = sink_for(BatchSink, link, sink, schema, overwrite=False)
        done.commit([done.write(iter([batch]))])

    write()
    assert caplog.messages == []
    write()

    assert caplog.messages == [
        "nothing was added for 3 rows: jobs of the queue have, or had, the same keys"
    ]
    assert len(drain(cluster, "recognized", 3)) == 3


def test_a_rows_own_key_is_its_key(session: Any, cluster: Cluster) -> None:
    frame = session.sql(
        "values ('a', 'k'), ('b', 'k'), ('c', null), ('d', null) as t(body, unique)"
    )

    save(frame.coalesce(1), cluster, queue="own keys")

    assert sorted(job.body for job in drain(cluster, "own keys", 3)) == [b"a", b"c", b"d"]


@pytest.mark.parametrize(
    ("given", "is_stream", "said"),
    [
        ({"writeId": "w"}, True, "a stream has its batches"),
        ({"recognize": "notes"}, False, "a table's write has no notes"),
    ],
)
def test_what_recognizes_nothing_is_refused(
    given: dict[str, str], is_stream: bool, said: str
) -> None:
    source = DisqueSource({"queue": "q", **given})
    schema = StructType.fromDDL("body string")

    with pytest.raises(PipelineError, match=said):
        (source.streamWriter if is_stream else source.writer)(schema, False)
