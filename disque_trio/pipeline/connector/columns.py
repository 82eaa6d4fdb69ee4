"""The columns of jobs as Spark reads them."""

from collections.abc import Callable, Iterable, Sequence
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

from disque_trio.pipeline.connector.consumer import Job
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
    StructField("holders", ArrayType(StringType())),
)
"""Columns from SHOW and JSCAN; null in a stream."""
SCHEMA: Final = StructType([*_DELIVERY, *_COPY])

Row = dict[str, Any]


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


def batches(rows: Iterable[Row], schema: StructType) -> Iterable[pa.RecordBatch]:
    """Rows as record batches; a column that a row does not have is null."""
    arrow = to_arrow_schema(schema, timezone="UTC")
    part: list[Row] = []
    size = 0
    for row in rows:
        part.append(row)
        size += len(row["body"] or b"")
        if len(part) == _BATCH or size > _BATCH_BYTES:
            yield _batch(part, arrow)
            part, size = [], 0
    if part:
        yield _batch(part, arrow)


def _batch(rows: Sequence[Row], arrow: pa.Schema) -> pa.RecordBatch:
    columns = [
        pa.array([row.get(name) for row in rows], arrow.field(name).type) for name in arrow.names
    ]
    return pa.RecordBatch.from_arrays(columns, schema=arrow)


def delivered(job: Job) -> Row:
    """A row of a stream."""
    return {
        "job_id": job.id,
        "queue": text(job.queue),
        "body": job.body,
        "nacks": job.nacks,
        "additional_deliveries": job.additional_deliveries,
        "node": job.node,
    }


def copied(facts: dict[bytes, Any], node: str) -> Row:
    """A row of a table: SHOW's facts about one copy."""
    return {name: get(facts.get(fact)) for name, (fact, get) in _FACTS.items()} | {"node": node}


def text(name: bytes) -> str:
    """A queue's name, which may be any bytes, as a string."""
    return name.decode(errors="backslashreplace")


def _ctime(value: int) -> int:
    return value // 1000  # milliseconds and a counter of six digits, to microseconds


def _texts(values: list[bytes]) -> list[str]:
    return [text(value) for value in values]


def _same(value: Any) -> Any:
    return value


def _or_zero(value: int | None) -> int:
    return value or 0


_FACTS: Final[dict[str, tuple[bytes, Callable[[Any], Any]]]] = {
    "job_id": (b"id", text),
    "queue": (b"queue", text),
    "body": (b"body", _same),
    "nacks": (b"nacks", _same),
    "additional_deliveries": (b"additional-deliveries", _same),
    "state": (b"state", text),
    "ttl": (b"ttl", _same),
    "delay": (b"delay", _same),
    "retry": (b"retry", _same),
    "replicate": (b"repl", _same),
    "priority": (b"priority", _or_zero),
    "created": (b"ctime", _ctime),
    "next_requeue_ms": (b"next-requeue-within", _same),
    "holders": (b"nodes-delivered", _texts),
}
