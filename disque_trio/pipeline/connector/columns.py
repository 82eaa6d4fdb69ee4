"""The columns of jobs as Spark reads them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from disque_trio.client.records import JobDetails
from disque_trio.pipeline.connector.consumer import Job, created
from disque_trio.pipeline.connector.windows import windows
from disque_trio.pipeline.errors import PipelineError

_BATCH: Final = 2_000
"""Most rows of a record batch."""
_BATCH_BYTES: Final = 8 << 20

_DELIVERY: Final = (
    StructField("job_id", StringType()),
    StructField("queue", StringType()),
    StructField("body", BinaryType()),
    StructField("nacks", LongType()),
    StructField("additional_deliveries", LongType()),
    StructField("node", StringType()),
)
"""Columns from GETJOB."""
_COPY: Final = (
    StructField("state", StringType()),
    StructField("ttl", LongType()),
    StructField("delay", LongType()),
    StructField("retry", LongType()),
    StructField("replicate", LongType()),
    StructField("priority", LongType()),
    StructField("created", TimestampType()),
    StructField("next_requeue_ms", LongType()),
    StructField("backing_off_ms", LongType()),
    StructField("reason", StringType()),
    StructField("holders", ArrayType(StringType())),
)
"""Columns from SHOW and JSCAN; all but `created` are null in a stream."""
SCHEMA: Final = StructType([*_DELIVERY, *_COPY])


def checked(schema: StructType) -> StructType:
    """Check a schema that the user gave. Raises `PipelineError` for unknown columns."""
    known = {field.name: field.dataType for field in SCHEMA.fields}
    for field in schema.fields:
        if field.name not in known:
            raise PipelineError(f"jobs have no column {field.name}; they have {', '.join(known)}")
        if field.dataType != known[field.name]:
            raise PipelineError(
                f"the column {field.name} is {known[field.name].simpleString()}, "
                f"not {field.dataType.simpleString()}"
            )
    return schema


def batches(jobs: Iterable[JobDetails], node: str, schema: StructType) -> Iterator[pa.RecordBatch]:
    """What SHOW tells of a node's copies; a column that it does not have is null."""
    arrow = to_arrow_schema(schema, timezone="UTC")
    for part in windows(jobs, _BATCH, _BATCH_BYTES):
        yield pa.RecordBatch.from_pylist([_copied(job, node) for job in part], arrow)


def delivered(jobs: Sequence[Job], schema: StructType) -> bytes:
    """Rows of a stream as an Arrow stream: for 20,000 jobs a tenth of the work of `batches`."""
    arrow = to_arrow_schema(schema, timezone="UTC")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, arrow) as writer:
        for part in windows(jobs, _BATCH, _BATCH_BYTES):
            writer.write_batch(pa.record_batch([_column(part, each) for each in arrow], arrow))
    return bytes(sink.getvalue())


def _column(jobs: Sequence[Job], field: pa.Field) -> pa.Array:
    value = _VALUES.get(field.name)
    if value is None:
        return pa.nulls(len(jobs), field.type)
    return pa.array(list(map(value, jobs)), field.type)


def _copied(job: JobDetails, node: str) -> dict[str, Any]:
    within, waits, reason = job.next_requeue_within, job.backing_off, job.more.get("reason")
    return {
        "job_id": job.id,
        "queue": None if job.queue is None else text(job.queue),
        "body": job.body,
        "nacks": job.nacks,
        "additional_deliveries": job.additional_deliveries,
        "node": node,
        "state": job.state,
        "ttl": job.ttl,
        "delay": job.delay,
        "retry": job.retry,
        "replicate": job.repl,
        "priority": job.more.get("priority", 0),
        "created": created(job),
        "next_requeue_ms": None if within is None else round(within * 1000),
        "backing_off_ms": None if waits is None else round(waits * 1000),
        "reason": reason.decode(errors="backslashreplace") if isinstance(reason, bytes) else None,
        "holders": list(job.nodes_delivered),
    }


@lru_cache
def text(name: str) -> str:
    """A queue's name, which may be any bytes, as a string that Spark can write."""
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")


_VALUES: Final[dict[str, Callable[[Job], Any]]] = {
    "job_id": attrgetter("id"),
    "queue": lambda job: text(job.queue),
    "body": attrgetter("body"),
    "nacks": attrgetter("nacks"),
    "additional_deliveries": attrgetter("additional_deliveries"),
    "node": attrgetter("node"),
    "created": attrgetter("created"),
}
