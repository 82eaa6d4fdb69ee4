"""Rows that become jobs: the columns that are allowed, and the ADDJOB of each row."""

from collections.abc import Iterator
from typing import Any, Final

import attrs
import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
)

from disque_trio.pipeline.connector.keys import LONGEST, Keys
from disque_trio.pipeline.connector.options import LONGEST_S, Sink
from disque_trio.pipeline.errors import PipelineError
from disque_trio.statemachine.base import LONGEST_PERIOD_S

_WHOLE: Final = (ByteType, ShortType, IntegerType, LongType)
_COLUMNS: Final[dict[str, tuple[tuple[type[DataType], ...], str]]] = {
    "body": ((BinaryType, StringType), "string or binary"),
    "queue": ((StringType,), "string"),
    "unique": ((BinaryType, StringType), "string or binary"),
    "delay": (_WHOLE, "a whole number"),
    "retry": (_WHOLE, "a whole number"),
    "ttl": (_WHOLE, "a whole number"),
    "replicate": (_WHOLE, "a whole number"),
    "sync": (_WHOLE, "a whole number"),
    "maxlen": (_WHOLE, "a whole number"),
    "priority": (_WHOLE, "a whole number"),
    "limit": (_WHOLE, "a whole number"),
    "backoff": (_WHOLE, "a whole number"),
    "maxbackoff": (_WHOLE, "a whole number"),
}
_LIMITS: Final = {
    "delay": (0, LONGEST_PERIOD_S),
    "retry": (0, LONGEST_PERIOD_S),
    "ttl": (1, (1 << 32) - 1),
    "replicate": (1, 65_535),
    "sync": (1, 65_535),
    "maxlen": (1, 1 << 31),
    "priority": (-100, 100),
    "limit": (1, 10_000),
    "backoff": (1, LONGEST_PERIOD_S),
    "maxbackoff": (1, LONGEST_PERIOD_S),
}
_PERIODS: Final = tuple(_LIMITS)


@attrs.frozen
class Terms:
    """The options of an ADDJOB, and for how long they hide the job."""

    words: tuple[bytes, ...]
    hold_s: int | None
    """How long the job is hidden unless ENQUEUE comes; None if it does not wait for the commit."""
    key_words: tuple[bytes, ...] = ()
    """Further options of a job with a key, up to the key."""


@attrs.frozen
class Row:
    """A job to be added."""

    queue: bytes
    body: bytes
    terms: Terms
    key: bytes = b""
    """By which nodes recognize it; empty is none."""

    def request(self, timeout: bytes) -> list[bytes]:
        """The ADDJOB."""
        words = [b"ADDJOB", self.queue, self.body, timeout, *self.terms.words]
        return [*words, *self.terms.key_words, self.key] if self.key else words


def check(schema: StructType, sink: Sink) -> None:
    """Raises `PipelineError` for columns that cannot become jobs."""
    types = {field.name: field.dataType for field in schema.fields}
    for name, kind in types.items():
        if name not in _COLUMNS:
            raise PipelineError(
                f"the sink does not know the column {name}: it takes {', '.join(_COLUMNS)}. "
                "Select what the job's body shall be, such as to_json(struct(*)) as body"
            )
        allowed, what = _COLUMNS[name]
        if not isinstance(kind, allowed):
            raise PipelineError(f"the column {name} is {kind.simpleString()}, and must be {what}")
    if "body" not in types:
        raise PipelineError(f"there is no column body, but {', '.join(types) or 'none at all'}")
    if "queue" not in types and not sink.queue:
        raise PipelineError("option queue is missing, and there is no column queue: where to?")


@attrs.define(eq=False)
class Rows:
    """Makes jobs of record batches."""

    sink: Sink
    keys: Keys | None = None
    """Of rows without a key of their own."""
    _count: int = attrs.field(init=False, default=0)
    _terms: dict[tuple[int | None, ...], Terms] = attrs.field(init=False, factory=dict)
    """By the columns, and whether the row has a key of its own."""

    def of(self, batch: pa.RecordBatch) -> Iterator[Row]:
        """The batch's rows. Raises `PipelineError` for one that cannot be a job."""
        columns = dict(zip(batch.schema.names, (c.to_pylist() for c in batch.columns), strict=True))
        nothing = [None] * batch.num_rows
        queues, bodies = columns.get("queue", nothing), columns["body"]
        own_keys = columns.get("unique", nothing)
        periods = zip(*(columns.get(name, nothing) for name in _PERIODS), strict=True)
        for queue, value, own, period in zip(queues, bodies, own_keys, periods, strict=True):
            self._count += 1
            body = self._body(value)
            key = b"" if self.keys is None else self.keys.of(self._count, body)
            key = key if own is None else self._key(own)
            yield Row(self._queue(queue), body, self._find_terms(period, own is not None), key)

    def _queue(self, name: str | None) -> bytes:
        if name is None and not self.sink.queue:
            raise self._wrong("its queue is null, and there is no option queue")
        return (self.sink.queue if name is None else name).encode()

    def _body(self, body: Any) -> bytes:
        if body is None:
            raise self._wrong("its body is null")
        return body.encode() if isinstance(body, str) else bytes(body)

    def _key(self, own: str | bytes) -> bytes:
        key = own.encode() if isinstance(own, str) else bytes(own)
        if not 0 < len(key) <= LONGEST:
            raise self._wrong(f"its unique has {len(key)} bytes, and must have 1 to {LONGEST}")
        return key

    def _find_terms(self, period: tuple[int | None, ...], has_own_key: bool) -> Terms:
        place = (*period, has_own_key)
        terms = self._terms.get(place)
        if terms is None:
            columns = dict(zip(_PERIODS, period, strict=True))
            terms = self._terms[place] = self._make_terms(columns, has_own_key)
        return terms

    def _make_terms(self, row: dict[str, int | None], has_own_key: bool) -> Terms:
        for name, (least, most) in _LIMITS.items():
            value = row[name]
            if value is not None and not least <= value <= most:
                raise self._wrong(f"its {name} is {value}, and must be from {least} to {most}")
        sink = self.sink
        ttl = _first(row["ttl"], sink.ttl_s)
        delay = _first(row["delay"], sink.delay_s)
        assert ttl is not None
        assert delay is not None
        if delay >= ttl:
            raise self._wrong(f"its delay is {delay}, and must be less than its ttl, {ttl}")
        hold = None
        # A job with a key of its own may be somebody else's, which the commit must not queue.
        if sink.hold_s and not delay and not has_own_key:
            # Leave half of a short TTL for the consumers.
            hold = delay = min(sink.hold_s, ttl // 2) if sink.hold_s >= ttl else sink.hold_s
            if not hold:
                raise self._wrong(
                    f'its ttl is {ttl}, too short to wait; option("hold", 0) does not'
                )
        backoff = _first(row["backoff"], sink.backoff_s)
        longest = _first(row["maxbackoff"], sink.max_backoff_s)
        if backoff is not None and longest is not None and longest < backoff:
            raise self._wrong(f"its maxbackoff is {longest}, and its backoff {backoff}")
        copies, sync = _first(row["replicate"], sink.replicas), _first(row["sync"], sink.sync)
        if copies is not None and sync is not None and sync > copies:
            raise self._wrong(f"its sync is {sync}, and its replicate {copies}")
        retry, priority = _first(row["retry"], sink.retry_s), _first(row["priority"], sink.priority)
        if priority is None and max(delay, retry or 0) > LONGEST_S:
            # A node takes long times only beside an option of ours.
            priority = 0
        given = {
            b"REPLICATE": copies,
            b"SYNC": sync,
            b"DELAY": delay or None,
            b"RETRY": retry,
            b"TTL": ttl,
            b"MAXLEN": _first(row["maxlen"], sink.maxlen),
            b"PRIORITY": priority,
            b"LIMIT": _first(row["limit"], sink.limit),
            b"BACKOFF": backoff,
            b"MAXBACKOFF": None if backoff is None else longest,
        }
        words = [w for k, v in given.items() if v is not None for w in (k, b"%d" % v)]
        key_words = (b"KEEP", b"%d" % sink.keep_s, b"IFEXISTS", b"reject", b"UNIQUE")
        return Terms(tuple(words), hold, key_words[0 if sink.keep_s else 2 :])

    def _wrong(self, reason: str) -> PipelineError:
        return PipelineError(f"row {self._count} of its task cannot become a job: {reason}")


def _first(row: int | None, option: int | None) -> int | None:
    return option if row is None else row
