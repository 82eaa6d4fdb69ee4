"""The data source `format("disque")`."""

from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from disque_trio.pipeline.connector import options
from disque_trio.pipeline.connector.columns import SCHEMA, checked
from disque_trio.pipeline.connector.refusing import Refused, sentences
from disque_trio.pipeline.connector.scan import CopiesTable
from disque_trio.pipeline.connector.sink import BatchSink, StreamSink, sink_for
from disque_trio.pipeline.connector.stream import QueueStream
from disque_trio.pipeline.errors import PipelineError

PUSHES: Final = "spark.sql.python.filterPushdown.enabled"


class DisqueSource(DataSource):
    """Reads and writes queues."""

    @classmethod
    def name(cls) -> str:
        return "disque"

    @sentences()
    def schema(self) -> StructType:
        """Asked for by `load()`, so that a mistake is told there and not when the query begins."""
        options.check_read(self.options)
        return SCHEMA

    @sentences()
    def reader(self, schema: StructType) -> DataSourceReader:
        options.check_names(self.options, "scan")
        link, scan = options.link(self.options), options.scan(self.options)
        return CopiesTable(link, scan, checked(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        try:
            options.check_names(self.options, "stream")
            link, stream = options.link(self.options), options.stream(self.options)
            return QueueStream(link, stream, checked(schema))
        except PipelineError as error:
            return Refused(error)

    @sentences()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        options.check_names(self.options, "sink")
        link, sink = options.link(self.options), options.sink(self.options)
        return sink_for(BatchSink, link, sink, schema, overwrite=overwrite)

    @sentences()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        options.check_names(self.options, "sink")
        link, sink = options.link(self.options), options.sink(self.options)
        return sink_for(StreamSink, link, sink, schema, overwrite=overwrite)


def register(spark: SparkSession) -> None:
    """Register `format("disque")` with the session, and let it push filters down to nodes.

    Where the package is installed, Spark finds the source by `pyspark_disque` without this.
    """
    spark.dataSource.register(DisqueSource)
    spark.conf.set(PUSHES, "true")
