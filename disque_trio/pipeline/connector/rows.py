"""Rows that become jobs: the columns that are allowed, and the ADDJOB of each row."""

import hashlib
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

from disque_trio.pipeline.connector.options import ADDED, Sink, column
from disque_trio.pipeline.errors import PipelineError
from disque_trio.statemachine import joboptions
from disque_trio.statemachine.joboptions import BY_WORD, Option
from disque_trio.terminal.counting import counted

LONGEST: Final = 256
"""Bytes of a key, as nodes take it."""
_WHOLE: Final = (ByteType, ShortType, IntegerType, LongType)
_COLUMNS: Final[dict[str, tuple[tuple[type[DataType], ...], str]]] = {
    "body": ((BinaryType, StringType), "string or binary"),
    "queue": ((StringType,), "string"),
    "unique": ((BinaryType, StringType), "string or binary"),
    **{column(each): (_WHOLE, "a whole number") for each in ADDED},
}


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


@attrs.frozen
class Keys:
    """The keys of a task's rows, by which nodes recognize a row that is written again (ADDJOB
    UNIQUE, decision 86). A digest of the body is in each key: other rows at the same place are
    other jobs."""

    write: str
    """Names the write: the query and the batch, or the option `writeId`."""
    task: int
    is_content: bool
    """The body alone counts, not its place: equal rows of the write are one job."""

    def of(self, row: int, body: bytes) -> bytes:
        """The key of the row with this number in its task."""
        place = "" if self.is_content else f"{self.task}/{row}/"
        digest = hashlib.blake2b(body, digest_size=16 if self.is_content else 8)
        return f"{self.write}/{place}{digest.hexdigest()}".encode()


def check(schema: StructType, sink: Sink) -> None:
    """Raises `PipelineError` for columns that cannot become jobs."""
    types = {field.name: field.dataType for field in schema.fields}
    for name, kind in types.items():
        if name not in _COLUMNS:
            raise PipelineError(
                f"the sink does not know the column {name}: it takes {', '.join(_COLUMNS)}. "
                "Select the body of the job, such as to_json(struct(*)) as body"
            )
        allowed, what = _COLUMNS[name]
        if not isinstance(kind, allowed):
            raise PipelineError(f"the column {name} is {kind.simpleString()}, and must be {what}")
    if "body" not in types:
        raise PipelineError(
            f"the column body is missing; there is {', '.join(types) or 'no column'}"
        )
    if "queue" not in types and not sink.queue:
        raise PipelineError(
            "the queue is missing: set option queue or a column queue. Statements on a table of "
            "Spark's catalog must give its options: INSERT INTO … WITH ('queue' = '…')"
        )


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
        periods = zip(*(columns.get(column(each), nothing) for each in ADDED), strict=True)
        for queue, value, own, period in zip(queues, bodies, own_keys, periods, strict=True):
            self._count += 1
            body = self._body(value)
            key = b"" if self.keys is None else self.keys.of(self._count, body)
            key = key if own is None else self._key(own)
            yield Row(self._queue(queue), body, self._find_terms(period, own is not None), key)

    def _queue(self, name: str | None) -> bytes:
        if name is None and not self.sink.queue:
            raise self._wrong("its queue is null, and option queue is not set")
        return (self.sink.queue if name is None else name).encode()

    def _body(self, body: Any) -> bytes:
        if body is None:
            raise self._wrong("its body is null")
        return body.encode() if isinstance(body, str) else bytes(body)

    def _key(self, own: str | bytes) -> bytes:
        key = own.encode() if isinstance(own, str) else bytes(own)
        if not 0 < len(key) <= LONGEST:
            raise self._wrong(
                f"its unique has {counted(len(key), 'byte')}, and must have 1 to {LONGEST}"
            )
        return key

    def _find_terms(self, period: tuple[int | None, ...], has_own_key: bool) -> Terms:
        place = (*period, has_own_key)
        terms = self._terms.get(place)
        if terms is None:
            columns = dict(zip([each.name for each in ADDED], period, strict=True))
            terms = self._terms[place] = self._make_terms(columns, has_own_key)
        return terms

    def _make_terms(self, row: dict[str, int | None], has_own_key: bool) -> Terms:
        for option in ADDED:
            value = row[option.name]
            if value is not None and not option.least <= value <= option.most:
                bounds = f"{option.least} to {option.most}"
                raise self._wrong(f"its {column(option)} is {value}, and must be from {bounds}")
        sink = self.sink
        added = {
            name: value if row[name] is None else row[name] for name, value in sink.added.items()
        }
        ttl, delay = added["ttl"], added["delay"]
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
                    f'its ttl is {ttl}, which is too short for the hold; option("hold", 0) does not'
                )
        for option in ADDED:
            if option.needs:
                self._check_least(added, option, BY_WORD[option.needs])
        copies, sync = added["replicate"], added["sync"]
        if copies is not None and sync is not None and sync > copies:
            raise self._wrong(f"its sync is {sync}, and its replicate {copies}")
        words = [
            word if isinstance(word, bytes) else str(word).encode()
            for word in joboptions.words({**added, "delay": delay or None})
        ]
        key_words = (b"KEEP", b"%d" % sink.keep_s, b"IFEXISTS", b"reject", b"UNIQUE")
        return Terms(tuple(words), hold, key_words[0 if sink.keep_s else 2 :])

    def _check_least(self, added: dict[str, int | None], option: Option, other: Option) -> None:
        value, least = added[option.name], added[other.name]
        if least is None:
            added[option.name] = None
        elif value is not None and value < least:
            raise self._wrong(f"its {column(option)} is {value}, and its {column(other)} {least}")

    def _wrong(self, reason: str) -> PipelineError:
        return PipelineError(f"row {self._count} of its task cannot become a job: {reason}")
