"""A queue as a sink of Spark: `df.write.format("disque")` and `writeStream`.

In two phases: tasks add hidden jobs (`adding`) and return their ids; when all tasks have succeeded
the driver makes the jobs visible, otherwise it removes them.
"""

import logging
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

import attrs
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from disque_trio.pipeline.connector.adding import Added, Adder
from disque_trio.pipeline.connector.ledger import Ledger, TaskNotes, digest, finish, forget
from disque_trio.pipeline.connector.nodes import Nodes
from disque_trio.pipeline.connector.options import Link, Sink
from disque_trio.pipeline.connector.refusing import sentences
from disque_trio.pipeline.connector.releasing import release, release_keyed, undo
from disque_trio.pipeline.connector.rows import Keys, Rows, check
from disque_trio.pipeline.connector.windows import windows
from disque_trio.pipeline.errors import PipelineError
from disque_trio.terminal.counting import counted

_log: Final = logging.getLogger(__name__)
_WINDOW: Final = 512
_WINDOW_BYTES: Final = 4 << 20
"""Limits of a window: what is sent before replies are read."""
_MARGIN: Final = 0.05
"""The part of the hold that is reserved for differences between clocks."""


class Written(WriterCommitMessage):
    """What a task has added: for each window, the digest of the rows and the jobs."""

    def __init__(self, query: str, task: int) -> None:
        self.query = query
        self.task = task
        self.windows: list[tuple[str, Added]] = []


@attrs.define(eq=False)
class Phases:
    """The phases that batch and stream share."""

    link: Link
    sink: Sink
    recognize: str
    """How a row that is written again is recognized (`options.RECOGNIZING`)."""
    write_id: str
    """Names the write, if it is not a batch of a stream."""

    @property
    def has_keys(self) -> bool:
        """Do nodes recognize a row by its key?"""
        return self.recognize in ("keys", "content")

    @sentences()
    def write(self, batches: Iterator[pa.RecordBatch]) -> Written:
        """In a task: add the rows as jobs."""
        with Nodes(self.link) as nodes:
            task, query, batch = _place()
            adder = Adder(nodes, task, self.sink.connections, self.sink.timeout_ms)
            notes = None
            if query and self.recognize == "notes":
                notes = TaskNotes(Ledger(nodes, query, self.sink.added["replicate"]), batch, task)
            try:
                written = Written(query, task)
                rows = Rows(self.sink, self._keys(task, query, batch))
                self._write(batches, rows, adder, notes, written)
            except BaseException:
                # The driver does not learn of these jobs: else they are queued after the hold.
                # Jobs with keys stay: another attempt of this task may have found them.
                if not self.has_keys:
                    _take_back(nodes, adder, notes)
                raise
            finally:
                adder.close()
            return written

    def _keys(self, task: int, query: str, batch: int) -> Keys | None:
        if not self.has_keys:
            return None
        # A write in `foreachBatch` has a name that other queries may have, too.
        names = [query, self.write_id or str(batch)] if query else [self.write_id]
        return Keys("/".join(names), task, self.recognize == "content")

    def _write(
        self,
        batches: Iterator[pa.RecordBatch],
        rows: Rows,
        adder: Adder,
        notes: TaskNotes | None,
        written: Written,
    ) -> None:
        jobs = (row for batch in batches for row in rows.of(batch))
        for window in windows(jobs, _WINDOW, _WINDOW_BYTES):
            place = len(written.windows)
            what = "" if notes is None else digest(window)
            added = None if notes is None else notes.find(place, what)
            if added is None:
                added = adder.add(window)
                if notes is not None:
                    notes.keep(place, what, added, adder.node)
            written.windows.append((what, added))

    @sentences()
    def commit(self, messages: Sequence[WriterCommitMessage | None], batch: int = -1) -> None:
        """In the driver: all tasks have succeeded."""
        done = [message for message in messages if isinstance(message, Written)]
        everything = [added for message in done for _, added in message.windows]
        if again := sum(added.recognized for added in everything):
            # A key that is a column of the rows is expected to repeat.
            level = logging.WARNING if self.has_keys else logging.INFO
            _log.log(
                level,
                "nothing was added for %s: jobs of the queue have, or had, the same keys",
                counted(again, "row"),
            )
        with Nodes(self.link) as nodes:
            held = self._still_held(everything)
            if self.has_keys:
                release_keyed(nodes, held)
            else:
                release(nodes, held.held)
            if ledger := self._ledger(nodes, done):
                tasks = {each.task: [what for what, _ in each.windows] for each in done}
                finish(ledger, batch, tasks)

    def _still_held(self, everything: Sequence[Added]) -> Added:
        """After the hold a job is queued already, and ENQUEUE might queue it again while a worker
        has it."""
        now = time.time() + max(self.sink.hold_s * _MARGIN, 0.5)
        held = Added()
        for added in everything:
            held.include(added if now < added.until else Added(found=added.found))
        return held

    def abort(self, messages: Sequence[WriterCommitMessage | None], batch: int = -1) -> None:
        """In the driver: a task has failed, after it has removed its own jobs. Those with keys
        stay: when the batch runs again they are found, and removed they would keep their keys."""
        if self.has_keys:
            return
        done = [message for message in messages if isinstance(message, Written)]
        with Nodes(self.link) as nodes:
            for _, added in (window for message in done for window in message.windows):
                undo(nodes, added)
            if ledger := self._ledger(nodes, done):
                forget(ledger, batch)

    def _ledger(self, nodes: Nodes, done: Sequence[Written]) -> Ledger | None:
        queries = {message.query for message in done} - {""}
        if not queries or self.recognize != "notes":
            return None
        (query,) = queries
        return Ledger(nodes, query, self.sink.added["replicate"])


def _take_back(nodes: Nodes, adder: Adder, notes: TaskNotes | None) -> None:
    """Remove the jobs of a failed task. An error here must not hide the first one."""
    try:
        undo(nodes, adder.added)
        if notes is not None:
            notes.ledger.drop(notes.mine)
    except PipelineError as error:
        _log.warning(
            "jobs of a failed task were not removed, and are enqueued when their hold ends: %s",
            error,
        )


def _place() -> tuple[int, str, int]:
    """The number of this task, and the stream's id and batch; the id is empty without a stream."""
    context = TaskContext.get()
    if context is None:
        return 0, "", -1
    query = context.getLocalProperty("sql.streaming.queryId") or ""
    batch = context.getLocalProperty("streaming.sql.batchId") or ""
    return context.partitionId(), query if batch else "", int(batch or -1)


class BatchSink(Phases, DataSourceArrowWriter):
    """The sink of a batch."""


class StreamSink(Phases, DataSourceStreamArrowWriter):
    """The sink of a query."""


Kind = TypeVar("Kind", BatchSink, StreamSink)


def sink_for(
    kind: type[Kind], link: Link, sink: Sink, schema: StructType, *, overwrite: bool
) -> Kind:
    """Raises `PipelineError` if the rows cannot become jobs."""
    check(schema, sink)
    if overwrite:
        raise PipelineError(
            'a queue cannot be overwritten: write with mode("append"), '
            'and a stream with outputMode("append") or outputMode("update")'
        )
    is_stream = kind is StreamSink
    if is_stream and sink.write_id:
        raise PipelineError("option writeId names the write of a table; a stream has its batches")
    recognize = sink.recognize or ("keys" if is_stream or sink.write_id else "none")
    if recognize == "notes" and not is_stream:
        raise PipelineError(
            "option recognize: 'notes': a table's write has no notes: use keys and writeId"
        )
    return kind(link, sink, recognize, "" if is_stream else sink.write_id or uuid.uuid4().hex)
