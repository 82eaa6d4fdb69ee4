"""A queue as a stream: `spark.readStream.format("disque")`.

The jobs of a batch are taken here, in the one process that Spark keeps for the source, and not by
tasks: a task may run twice. The offset leads to their ids, and Spark logs it before the batch runs;
their bodies are sent with the tasks. They are acknowledged when Spark asks for the next offset,
because the batch that ended at `start` is in its commit log by then; `commit` is called after the
next batch has begun, or never. `stop` is called when the driver has died too, so it does nothing.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from disque_trio.client.leases import Jobs
from disque_trio.pipeline.connector import offsets
from disque_trio.pipeline.connector.columns import delivered
from disque_trio.pipeline.connector.consumer import Consumer
from disque_trio.pipeline.connector.nodes import UnreachableError
from disque_trio.pipeline.connector.notes import PAUSE_S
from disque_trio.pipeline.connector.offsets import Batches, LostJobsError, Offset
from disque_trio.pipeline.connector.options import Link, Stream
from disque_trio.pipeline.connector.refusing import sentences
from disque_trio.pipeline.errors import PipelineError

_PATIENCE_S: Final = 120.0
"""How long a query that ends by itself tries when no node answers; nodes rest up to a minute."""
_LONGEST_PAUSE_S: Final = 5.0
_log: Final = logging.getLogger(__name__)


class Delivered(InputPartition):
    """A task: rows as an Arrow stream, so that it needs no connection and can be repeated."""

    def __init__(self, rows: bytes) -> None:
        super().__init__(None)
        self.rows = rows


class QueueStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The source of one query."""

    def __init__(self, link: Link, options: Stream, schema: StructType) -> None:
        self._schema = schema
        self._options = options
        self._consumer: Consumer = Consumer(link, options)
        self._batches = Batches(self._consumer.nodes, options.queue)
        self._committed = Offset(0, options.queue)
        """Where the latest batch ended that Spark has committed and nodes have heard of."""
        self._offered: tuple[Offset, Offset] | None = None
        """The last answer with its start, for Spark may ask twice."""
        self._taken: Jobs = {}
        """Jobs whose ids no node has noted yet."""
        self._left: int | None = None
        """How many jobs are still to be taken, if the trigger is availableNow."""
        self._has_met_nodes = False

    def __getstate__(self) -> dict[str, Any]:
        return {"_schema": self._schema}  # all that tasks need

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return Offset(0, self._options.queue).dumped()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._options.max_jobs)

    @sentences()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._left = self._consumer.backlog()
        self._has_met_nodes = True

    @sentences()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        begin = self._load(start)
        if self._offered is not None and self._offered[0] == begin:
            return self._offered[1].dumped()
        try:
            end = self._try(begin, limit)
        except UnreachableError as error:
            # availableNow would end too early; a stream that never began is misconfigured.
            if self._left is not None or not self._has_met_nodes:
                raise
            _log.warning("the stream waits: %s", error)
            return start
        self._has_met_nodes = True
        return end.dumped()

    def _load(self, data: dict[str, Any]) -> Offset:
        return offsets.load(data, self._options.queue)

    def _try(self, begin: Offset, limit: ReadLimit) -> Offset:
        """Advance; with availableNow for a while, since nodes may be slow on a busy machine."""
        deadline = time.monotonic() + _PATIENCE_S
        pause_s = PAUSE_S
        while True:
            try:
                return self._advance(begin, limit)
            except UnreachableError as error:
                if self._left is None or time.monotonic() > deadline:
                    raise
                _log.warning("the stream retries: %s", error)
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _advance(self, begin: Offset, limit: ReadLimit) -> Offset:
        """Acknowledge the committed batch, and take the next."""
        self._acknowledge(begin)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else self._options.max_jobs
        if self._left is not None:
            most = min(most, self._left)
        if not self._taken:
            self._taken = self._consumer.take(most, waits=self._left is None)
        if not self._taken:
            return begin
        end = self._batches.keep(begin.seq + 1, self._taken)
        self._taken = {}
        if self._left is not None:
            self._left -= end.count
        self._offered = (begin, end)
        return end

    def _acknowledge(self, begin: Offset) -> None:
        if begin == self._committed:
            return
        try:
            jobs = self._batches.jobs(begin)
        except LostJobsError as error:
            if self._options.fails_on_loss:
                raise
            _log.warning("jobs of a committed batch will be redelivered: %s", error)
            jobs = {}
        if not self._consumer.acknowledge(jobs):
            raise UnreachableError("no node accepts the acknowledgements of the latest batch")
        self._batches.drop(self._committed)  # the new one is asked for after a crash
        self._committed = begin

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """The backlog, for the query's progress."""
        consumer = self._consumer
        try:
            backlog = consumer.backlog()
        except PipelineError:  # an error here would lose jobs that are not in Spark's log yet
            return None
        return {"backlog": backlog, "held": len(consumer.jobs), "duplicates": consumer.duplicates}

    @sentences()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        last = self._load(end)
        if self._load(start) == last:
            return []
        batch = self._jobs_again(last)
        self._consumer.recover(batch)
        held = self._consumer.jobs
        jobs = [held[job] for job in offsets.flat(batch) if job in held]
        size = self._options.jobs_per_partition
        parts = (jobs[at : at + size] for at in range(0, len(jobs), size))
        return [Delivered(delivered(part, self._schema)) for part in parts]

    def _jobs_again(self, end: Offset) -> Jobs:
        try:
            return self._batches.jobs(end)
        except LostJobsError as error:
            if self._options.fails_on_loss:
                raise
            _log.warning("a batch is skipped; its jobs are redelivered: %s", error)
            return {}

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Delivered), partition
        return iter(pa.ipc.open_stream(partition.rows))

    def commit(self, end: dict[str, Any]) -> None:
        self._consumer.acknowledge(self._batches.known(self._load(end)))
